"""A refresh of the roster that is cut off half-way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents.contract.agent import Folder
from agents.contract.agent_describer import AgentDescriber, AgentStorage
from agents.contract.file_discovery import find_agent_files
from agents.contract.imported_files import Neighbours
from agents.contract.may_run import YOURS, Allowed, Quarantined, Verdict
from agents.contract.registry import AgentRegistry
from agents.errors import AgentError
from agents.runtimes.python.sandbox.needs import UNCONFINED, Confines
from agents.storage.safe_fs import SafeTree


class Rules:
    """Trust that quarantines everything until it is told otherwise."""

    def __init__(self) -> None:
        self.current: list[str] = ["held"]

    def look(self) -> Sequence[object]:
        return (self.current,)

    def may_run(self, origin: str, path: Path, sha256: str, needs: object = ...) -> Verdict:
        return Quarantined("held") if self.current else Allowed()


class StuckPools:
    """Workers that are asked, and answer once they are let go."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    def program(self) -> Any:
        raise AssertionError("there are no files of the program here")

    @asynccontextmanager
    async def apart(self, confines: Confines = UNCONFINED) -> AsyncIterator[StuckPools]:
        yield self

    async def request(self, op: str, body: dict[str, Any], **_: object) -> Any:
        self.asked.set()
        await self.go.wait()
        raise AgentError("asked")


async def test_refresh_that_is_cut_off_leaves_other_rules_to_the_next(tmp_path: Path) -> None:
    agents, rules, pools = tmp_path / "agents", Rules(), StuckPools()
    agents.mkdir()
    (agents / "cook_agent.py").write_text("cook")
    files = SafeTree(tmp_path)
    storage = AgentStorage(files, tmp_path / "kept", tmp_path / "deps", Neighbours(files, agents, ()))
    registry = AgentRegistry(pools, lambda: [Folder(YOURS, agents, files=files)], storage, rules)
    await registry.refresh()
    assert registry.waiting() == ["cook_agent.py"]

    rules.current = []
    cut_off = asyncio.create_task(registry.refresh())
    await pools.asked.wait()
    assert registry.rules_seen[0] is not rules.current, "who asks meanwhile has to wait for it"
    cut_off.cancel()
    await asyncio.wait([cut_off])
    pools.go.set()
    await registry.refresh()
    assert (registry.waiting(), registry.unavailable()) == ([], ["cook_agent.py"])
    assert registry.rules_seen[0] is rules.current


class SwiftPools(StuckPools):
    """Workers that find an agent in each file."""

    async def request(self, op: str, body: dict[str, Any], **_: object) -> Any:
        cook = {
            "name": "Cook",
            "tool_name": "Cook",
            "description": "",
            "parameters": {},
            "class_name": "Cook",
        }
        return [{"agents": [cook], "quarantined": [], "failure": None, "waits": False} for _ in body["files"]]


async def test_version_is_kept_while_calls_of_it_may_have_begun(tmp_path: Path) -> None:
    agents, rules = tmp_path / "agents", Rules()
    rules.current = []
    agents.mkdir()
    files = SafeTree(tmp_path)
    storage = AgentStorage(files, tmp_path / "kept", tmp_path / "deps", Neighbours(files, agents, ()))
    describer = AgentDescriber(SwiftPools(), storage, rules, None)
    before = None
    for text in ("first", "second", "third"):
        (agents / "cook_agent.py").write_text(text)
        (file,) = find_agent_files(agents, files)
        ((agent,),) = [
            state.agents for state in (await describer.describe([((YOURS, file.rel), file)], {})).values()
        ]
        assert Path(agent.kept).read_text() == text
        if before is not None:
            assert Path(before[0].kept).read_text() == before[1], "a call of it finds what it was made for"
        before = agent, text
    assert len(list((tmp_path / "kept").rglob("*.py"))) == 2, "those before are gone"
