"""The contract that shipped agents keep, and their descriptions, known before any worker has loaded them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import agents.library
import agents.rapps
from agents.contract import shipped_descriptions
from agents.contract.file_discovery import find_shipped_files
from agents.contract.manifest import essentials, find_manifest
from agents.providers.offline.responses import imperative

FILES = sorted(path.name for path in Path(agents.library.__path__[0]).glob("*_agent.py"))

SECOND_VERB = re.compile(r"\b(?:and|or) [a-z]+s\b (?:a|how|the|them|things)\b")


def test_fifteen_agents_come_with_rappd() -> None:
    assert FILES == [
        "ask_peer_agent.py",
        "buddy_agent.py",
        "context_memory_agent.py",
        "fleet_agent.py",
        "hacker_news_agent.py",
        "hatch_egg_agent.py",
        "lay_egg_agent.py",
        "learn_new_agent.py",
        "manage_memory_agent.py",
        "neighborhood_run_agent.py",
        "neighborhood_snapshot_agent.py",
        "quick_answers_agent.py",
        "swarm_factory_agent.py",
        "timer_agent.py",
        "twin_agent.py",
    ]


@pytest.mark.parametrize("file", FILES)
async def test_it_passes_the_ten_contract_tests(desk: Any, file: str) -> None:
    assert await desk.test(file) == {}


@pytest.mark.parametrize("file", FILES)
def test_it_runs_as_a_script_where_there_is_no_brainstem(elsewhere: Any, file: str) -> None:
    assert elsewhere.python(str(elsewhere.agents / file))


@pytest.mark.parametrize("file", FILES)
def test_imports_are_standard_library_or_published(file: str) -> None:
    tree = ast.parse((Path(agents.library.__path__[0]) / file).read_text())
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            roots.add((node.module or "").partition(".")[0])
    assert roots - sys.stdlib_module_names <= {"agents", "openrappter", "utils"}


SINGLETONS = sorted(Path(agents.rapps.__path__[0]).glob("*/singleton/*_agent.py"))


@pytest.mark.parametrize(
    "path",
    [*(Path(agents.library.__path__[0]) / file for file in FILES), *SINGLETONS],
    ids=lambda path: path.name,
)
def test_shipped_agent_has_a_line_for_people(path: Path) -> None:
    shown = find_manifest(path.read_bytes())
    assert shown is not None
    summary = essentials(shown)["summary"]
    assert summary.endswith(".")
    assert len(summary) <= 60
    ordered = imperative(summary)
    assert ordered, "an answer says: I can …"
    assert not SECOND_VERB.search(ordered), "it says: I can log numbers and compare them"


LIBRARY = Path(agents.library.__path__[0])


def test_descriptions_are_those_of_the_files() -> None:
    now = subprocess.run([sys.executable, "-m", "agents.library"], capture_output=True, check=True).stdout
    assert shipped_descriptions.PATH.read_bytes() == now, "make descriptions"


def test_each_shipped_file_is_known_and_a_changed_one_is_not() -> None:
    files = find_shipped_files(LIBRARY)
    for file in files:
        known = shipped_descriptions.description_of(file.rel, sha256(file.content()).hexdigest())
        assert known is not None and known["rel"] == file.rel and known["agents"], file.rel
    changed = sha256(files[0].content() + b"\n").hexdigest()
    assert shipped_descriptions.description_of(files[0].rel, changed) is None
