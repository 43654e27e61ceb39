"""Calls that share a pool of workers, and what the pools of the program's own files can load."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fixtures import warm_zygote

from agents.contract.agent import Agent
from agents.contract.file_discovery import AgentFile
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.runner import WorkerPools
from agents.runtimes.python.pools.supervisor import WorkerSupervisor

FILE = AgentFile("a_agent.py", Path("a_agent.py"), (1, 2, 3))


def agent(name: str = "A", origin: str = "yours", *, file: AgentFile = FILE, **more: bool) -> Agent:
    return Agent(name, name, "", {}, file, origin, "", "", class_name=name, **more)


@pytest.fixture
async def pools(tmp_path: Path) -> AsyncIterator[WorkerPools]:
    root = tmp_path / "home" / "workspace"
    settings = {name: str(root / name) for name in ("agents", "data", "deps")}
    for folder in settings.values():
        Path(folder).mkdir(parents=True)
    named = {"agents_dir": settings["agents"], "data_dir": settings["data"], "deps_dir": settings["deps"]}
    supervisor = WorkerSupervisor(launch=warm_zygote.launch)
    plan = PoolConfig(root, {**named, "workspace": str(root)}, private_root=tmp_path / "home")
    yield WorkerPools(supervisor, "w", plan)
    await supervisor.close()


async def test_pools_are_shared_by_one_principal_or_by_the_program(pools: WorkerPools) -> None:
    assert pools.of(agent(), "p") is pools.of(agent(), "p")
    assert pools.of(agent(), "p") is not pools.of(agent(), "q")
    assert pools.of(agent(trusted=True), "p") is not pools.of(agent(trusted=True), "q")
    assert pools.of(agent("B", "shipped"), "p") is pools.of(agent("C", "shipped"), "q")
    runs_files = agent("SwarmFactory", "shipped", trusted=True)
    assert pools.of(runs_files, "p") is not pools.of(runs_files, "q")
    other_version = AgentFile(FILE.rel, FILE.path, (9, 9, 9))
    keeps = [agent(one_worker=True), agent("Z", one_worker=True), agent(one_worker=True, file=other_version)]
    found = [pools.of(one, who) for one, who in zip(keeps, "pqr", strict=True)]
    assert found[0] is found[1], "agents of one file share their state"
    assert found[2] is not found[0]


async def test_program_loads_no_module_of_the_workspace(pools: WorkerPools, tmp_path: Path) -> None:
    root = tmp_path / "home" / "workspace"
    for planted in ("deps/planted.py", "agents/neighbour.py", "utils/own.py", "deps/wave.py"):
        path = root / planted
        path.parent.mkdir(exist_ok=True)
        path.write_text("HERE = 1\n")
    shown = {}
    for line in (
        "import planted",
        "import neighbour",
        "import agents.neighbour",
        "import utils.own",
        "from wave import HERE",
    ):
        file = root / "agents" / "tries_agent.py"
        file.write_text(
            f"{line}\nclass Tries:\n    metadata = {{'name': 'Tries'}}\n    def perform(self): ...\n"
        )
        body = {
            "files": [{"rel": file.name, "path": str(file), "stamp": [0, 0, 0], "source_path": str(file)}]
        }
        async with pools.apart() as apart:
            everyday = (await apart.request("describe", body, timeout=100))["files"][0]
        assert everyday["agents"], everyday
        found = (await pools.program().request("describe", body, timeout=100))["files"][0]
        shown[line] = found["failure"]["reason"] if found["failure"] else "loaded"
        await pools.program().request("describe", {"files": []}, timeout=100)
        pools.retire()
    assert all("No module named" in reason or "cannot import name" in reason for reason in shown.values()), (
        shown
    )


async def test_unused_pools_are_forgotten(pools: WorkerPools) -> None:
    for number in range(8):
        await pools.of(agent(), number).request("describe", {"files": []}, timeout=100)
    assert len(pools._pools) <= 8
    while len(pools._pools) > 4:  # the longest idle of four workers makes room for the next
        await asyncio.sleep(0.01)
