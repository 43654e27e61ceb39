"""Commands without a daemon: describe and test agents in workers of their own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rappd.daemon.home import Home
from rappd.errors import NotFoundError
from rappd.settings.load import Settings
from twins.workspace.workspace import Workspace

if TYPE_CHECKING:
    from agents.runtime.registry import AgentRegistry
    from agents.runtime.runner import WorkerPools

T = TypeVar("T")
Tell = Callable[[str], None]
"""Is told every now and then what is being worked on."""

_TELL_SECONDS = 0.2


def workspace_of(home: Home, settings: Settings) -> Workspace:
    """The host workspace as settings place it."""
    return Workspace.at(home.brainstem, soul=settings.text("soul_path"), agents=settings.text("agents_path"))


def list_agents(home: Home, tell: Tell) -> list[dict[str, Any]]:
    """The rows of ``rappd agents list``, from agents described in workers started for this."""
    from rappd.tenants.agent_summary import listing

    async def describe(roster: AgentRegistry, pools: WorkerPools) -> list[dict[str, Any]]:
        await roster.refresh()
        return listing(roster)

    return _with_workers(home, describe, tell, "Reading agent files")


def test_agent(home: Home, name: str, tell: Tell) -> list[dict[str, Any]]:
    """Contract tests over an agent by its name or its file's."""

    async def test(roster: AgentRegistry, pools: WorkerPools) -> list[dict[str, Any]]:
        await roster.refresh()
        agent = roster.named(name)
        files = [agent.file] if agent else [state.file for state in roster.states() if state.file.rel == name]
        if not files:
            raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
        return await _tests(pools, files[0].rel, files[0].path, files[0].stamp)

    return _with_workers(home, test, tell, f"Testing {name}")


def test_file(home: Home, path: Path, tell: Tell) -> list[dict[str, Any]]:
    """Contract tests over a file, wherever it lies."""
    found = path.stat()
    whole = path.absolute()
    stamp = (found.st_mtime_ns, found.st_size, found.st_ino)

    async def test(roster: AgentRegistry, pools: WorkerPools) -> list[dict[str, Any]]:
        return await _tests(pools, path.name, whole, stamp)

    return _with_workers(home, test, tell, f"Testing {path.name}")


async def _tests(
    pools: WorkerPools, rel: str, path: Path, stamp: tuple[int, int, int]
) -> list[dict[str, Any]]:
    from agents.runtime.answers import read_tests

    reference = {"rel": rel, "path": str(path), "stamp": list(stamp)}
    async with pools.apart() as pool:
        found = await pool.request("test", {"file": reference}, timeout=60.0, read=read_tests)
    tests: list[dict[str, Any]] = found["tests"]
    return tests


def _with_workers(
    home: Home, work: Callable[[AgentRegistry, WorkerPools], Awaitable[T]], tell: Tell, what: str
) -> T:
    from agents.contract.description import AgentStorage, CodeRules
    from agents.runtime.registry import AgentRegistry
    from agents.runtime.runner import WorkerPools
    from agents.workers.supervisor import WorkerSupervisor
    from rappd.tenants.quarantine import Quarantine
    from rappd.tenants.tenant_config import LIBRARY, folders_of, pool_config, sandbox_wish, trusted_plan
    from twins.installer.code_origins import CodeOrigins
    from twins.installer.quarantine import QuarantineList
    from twins.workspace.sources import Sources

    settings = Settings.load(home)

    async def run(home: Home) -> T:
        workspace = workspace_of(home, settings)
        workspace.create()
        sources = Sources(workspace)
        telling = asyncio.create_task(_keep_telling(tell, what))
        supervisor = WorkerSupervisor(
            on_output=lambda pool, pid, line: None,
            sandbox=sandbox_wish(settings),
            may_read=settings.items("agents.may_read"),
        )
        try:
            await supervisor.start()
            quarantine = Quarantine(QuarantineList(home.held, home.root), workspace)
            plan = pool_config(workspace, settings, home.root, quarantine)
            await asyncio.to_thread(quarantine.look)
            pools = WorkerPools(
                supervisor, "offline", plan, trusted=trusted_plan, request_context=quarantine.standing
            )
            roster = AgentRegistry(
                pools,
                lambda: folders_of(workspace, sources),
                AgentStorage(workspace.files, workspace.kept / "good", workspace.deps),
                CodeRules(lambda origin, digest: origin == LIBRARY, quarantine, CodeOrigins(home.root)),
            )
            return await work(roster, pools)
        finally:
            telling.cancel()
            await supervisor.close()

    with _home_or_temporary(home) as made:
        return asyncio.run(run(made))


@contextmanager
def _home_or_temporary(home: Home) -> Iterator[Home]:
    """The home; one that is removed afterwards where there is none, because looking makes nothing."""
    if home.is_read_only():
        yield home
        return
    home.require_usable()
    if home.root.exists():
        home.create()
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="rappd-") as folder:
        made = Home(Path(folder))
        made.create()
        yield made


async def _keep_telling(tell: Tell, what: str) -> None:
    begin = time.monotonic()
    while True:
        await asyncio.sleep(_TELL_SECONDS)
        tell(f"{what}, {time.monotonic() - begin:.0f} s…")
