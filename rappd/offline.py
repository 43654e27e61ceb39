"""What the command line can do without a daemon: describe and test agents in workers of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from agents.roster import Roster
from agents.worker.crew import Crew
from agents.worker.workforce import Workforce
from rappd.errors import NotFound
from rappd.home import Home
from rappd.listing import listing
from rappd.settings.load import Settings
from rappd.tenant import LIBRARY, crew_plan, folders_of
from twins.sources import Sources
from twins.workspace import Workspace

T = TypeVar("T")


def workspace_of(home: Home, settings: Settings) -> Workspace:
    """The host workspace as settings place it."""
    return Workspace.at(home.brainstem, soul=settings.text("soul_path"), agents=settings.text("agents_path"))


def list_agents(home: Home) -> list[dict[str, Any]]:
    """The rows of ``rappd agents list``, from agents described in workers started for this."""

    async def describe(roster: Roster, crew: Crew) -> list[dict[str, Any]]:
        await roster.refresh()
        return listing(roster)

    return _with_workers(home, describe)


def test_agent(home: Home, name: str) -> list[dict[str, Any]]:
    """Contract tests over an agent by name, or over a file by path."""

    async def test(roster: Roster, crew: Crew) -> list[dict[str, Any]]:
        reference = await asyncio.to_thread(_file_reference, name)
        if reference is None:
            await roster.refresh()
            agent = roster.named(name)
            state = next((found for found in roster.states() if found.file.rel == name), None)
            if agent is None and state is None:
                raise NotFound(f'No agent "{name}".', do="rappd agents list")
            file = agent.file if agent else state.file  # type: ignore[union-attr]  # one of them is there
            reference = {"rel": file.rel, "path": str(file.path), "stamp": list(file.stamp)}
        found = await crew.request("test", {"file": reference}, timeout=60.0)
        tests: list[dict[str, Any]] = found["tests"]
        return tests

    return _with_workers(home, test)


def _file_reference(name: str) -> dict[str, Any] | None:
    path = Path(name)
    if not name.endswith(".py") or not path.is_file():
        return None
    found = path.stat()
    return {
        "rel": path.name,
        "path": str(path.absolute()),
        "stamp": [found.st_mtime_ns, found.st_size, found.st_ino],
    }


def _with_workers(home: Home, work: Callable[[Roster, Crew], Awaitable[T]]) -> T:
    settings = Settings.load(home)
    home.create()
    workspace = workspace_of(home, settings)
    workspace.create()
    sources = Sources(workspace)

    async def run() -> T:
        workforce = Workforce(on_output=lambda crew, pid, line: None)
        await workforce.start()
        try:
            crew = workforce.crew("offline", crew_plan(workspace, settings, home.root, os.environ))
            roster = Roster(
                crew=crew,
                folders=lambda: folders_of(workspace, sources),
                kept=workspace.kept / "good",
                deps=workspace.deps,
                trusted=lambda origin, digest: origin == LIBRARY,
            )
            return await work(roster, crew)
        finally:
            await workforce.close()

    return asyncio.run(run())
