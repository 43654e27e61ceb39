"""Twins to pack."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.twins.eggs.writers.nest import Nest


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Nest]:
    """A newborn twin; in memory where there is such a disk, since every packing waits for the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Nest(Path(folder))


@pytest.fixture
def nest(bare: Nest) -> Nest:
    """A twin with agents, a service, a rapplication, memory, and much that must not travel."""
    bare.put("agents/mail_agent.py", "MAIL = 1\n")
    bare.put("agents/workspace_agents/draft_agent.py", "DRAFT = 1\n")
    bare.put("agents/kanban_agent.py", "KANBAN = 1\n")
    bare.put("agents/basic_agent.py", "KERNEL = 1\n")
    bare.put("agents/__init__.py", "")
    bare.put("services/kanban_service.py", "SERVICE = 1\n")
    bare.put("senses/smell.py", "SENSE = 1\n")
    bare.put("rapps/kanban/manifest.json", '{"schema":"rapp-application/1.0","id":"kanban","name":"Kanban",'
             '"version":"1.0.0","publisher":"kody-w","agent":"singleton/kanban_agent.py"}')  # fmt: skip
    bare.put("rapps/kanban/placed.json", '["agents/kanban_agent.py","services/kanban_service.py"]')
    bare.put("rapps/kanban/ui/index.html", "<p>board</p>")
    bare.put("rapps/kanban/ui/app.js", "board()")
    bare.put(".brainstem_data/memory.json", '{"1":"Likes tomatoes"}')
    bare.put(".brainstem_data/kanban/board.json", '["a card"]')
    bare.put(".brainstem_data/kept/good/mail_agent.py", "KEPT = 1\n")
    bare.put(".brainstem_data/soul_history/2026-11-01T00-00-00Z.md", "Once I was a fox.")
    bare.put(".brainstem_data/private/diary.md", "Nobody reads this.")
    bare.put("README.md", "My twin.\n")
    bare.put(".env", "TOKEN=hunter2hunter2\nPORT=7071\n")
    bare.put(".deps/requests/__init__.py", "")
    bare.put(".remote_agents/o__r/far_agent.py", "")
    return bare
