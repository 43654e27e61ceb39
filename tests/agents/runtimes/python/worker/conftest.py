"""A workspace with a real worker behind it."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fixtures import warm_zygote

from agents.contract.file_discovery import find_agent_files, stamp_of
from agents.runtimes.python.pools.call import OnCallback
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.pool import PoolHooks
from agents.runtimes.python.pools.supervisor import WorkerSupervisor

COLLECTION = Path(__file__).parents[3] / "fixtures" / "collection"

SIMPLE = """
from agents.basic_agent import BasicAgent


class Simple(BasicAgent):
    def __init__(self):
        super().__init__("Simple", {{"name": "Simple", "description": "{text}"}})

    def perform(self, **kwargs):
        return "{text}"
"""


class WorkerHostClient:
    """A workspace and a way to ask its worker. Site-packages stand in for its ``.deps``."""

    def __init__(self, root: Path, supervisor: WorkerSupervisor) -> None:
        self.root = root
        self.agents = root / "agents"
        self.services = root / "services"
        self.data = root / ".brainstem_data"
        for folder in (self.agents, self.services, self.data):
            folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "workspace": str(root),
            "agents_dir": str(self.agents),
            "data_dir": str(self.data),
            "deps_dir": sysconfig.get_path("purelib"),
        }
        env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "LANG": "C.UTF-8"}
        self.standing: Mapping[str, Any] = {}
        """Fields of every request."""
        plan = PoolConfig(root, settings, env, max_workers=1)
        self.pool = supervisor.pool(str(root), plan, hooks=PoolHooks(lambda: self.standing))

    async def ask(self, op: str, body: dict[str, Any], on_callback: OnCallback | None = None) -> Any:
        return await self.pool.request(op, body, timeout=100, on_callback=on_callback)

    async def describe(self, rel: str) -> dict[str, Any]:
        answer = await self.ask("describe", {"files": [self.file(rel)]})
        found: dict[str, Any] = answer["files"][0]
        return found

    async def perform(self, file: dict[str, Any], name: str, user_guid: str = "", **arguments: Any) -> Any:
        answer = await self.ask(
            "perform",
            {
                "file": file,
                "name": name,
                "arguments": arguments,
                "user_guid": user_guid,
                "upstream_slush": None,
            },
        )
        return answer["result"]

    def write(self, rel: str, text: str) -> dict[str, Any]:
        path = self.agents / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".tmp").write_text(text)
        path.with_suffix(".tmp").replace(path)
        return self.file(rel)

    def file(self, rel: str) -> dict[str, Any]:
        path = self.agents / rel
        return {"rel": rel, "path": str(path), "stamp": list(stamp_of(path.stat()))}

    def files(self) -> list[dict[str, Any]]:
        return [self.file(found.rel) for found in find_agent_files(self.agents)]


@pytest.fixture
async def worker_host(tmp_path: Path) -> AsyncIterator[WorkerHostClient]:
    supervisor = WorkerSupervisor(on_output=lambda key, pid, line: print(line), launch=warm_zygote.launch)
    yield WorkerHostClient(tmp_path / "workspace", supervisor)
    await supervisor.close()


@pytest.fixture
async def collection(worker_host: WorkerHostClient) -> WorkerHostClient:
    shutil.copytree(COLLECTION, worker_host.agents, dirs_exist_ok=True)
    return worker_host


@pytest.fixture
def simple() -> str:
    return SIMPLE
