"""A workspace with the shipped rapplications dropped into it, as an installation does it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fixtures import warm_zygote

from agents.contract.file_discovery import stamp_of
from agents.rapps.rapplication import read_rapplication
from agents.rapps.shipped_bundle import SHIPPED
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.supervisor import WorkerSupervisor


class Shop:
    """Asks agents by ``perform`` and services by method and path, in a real worker."""

    def __init__(self, root: Path, supervisor: WorkerSupervisor) -> None:
        self.root = root
        self.data = root / ".brainstem_data"
        for folder in ("agents", "services", ".brainstem_data"):
            (root / folder).mkdir(parents=True)
        for name in ("kanban", "webhook", "dashboard"):
            for file in read_rapplication(SHIPPED / name).files:
                path = root / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.content)
        settings = {"workspace": str(root), "agents_dir": str(root / "agents"), "data_dir": str(self.data)}
        env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "LANG": "C.UTF-8"}
        self.pool = supervisor.pool(str(root), PoolConfig(root, settings, env, max_workers=2))

    async def ask(self, op: str, body: dict[str, Any]) -> Any:
        return await self.pool.request(op, body, timeout=100)

    async def agent(self, agent: str, /, **arguments: Any) -> dict[str, Any]:
        body = {"file": self.file(agent), "name": agent, "arguments": arguments, "user_guid": ""}
        found: dict[str, Any] = json.loads((await self.ask("perform", body))["result"])
        return found

    async def service(self, name: str, method: str, path: str = "", body: Any = None) -> tuple[int, Any]:
        place = self.root / "services" / f"{name}_service.py"
        file = {**self._placed(place), "sha256": sha256(place.read_bytes()).hexdigest()}
        answer = await self.ask("service", {"file": file, "method": method, "path": path, "body": body})
        return answer["status"], json.loads(base64.b64decode(answer["body"]))

    def file(self, agent: str) -> dict[str, Any]:
        return self._placed(self.root / "agents" / f"{agent.lower()}_agent.py")

    def _placed(self, path: Path) -> dict[str, Any]:
        return {"rel": path.name, "path": str(path), "stamp": list(stamp_of(path.stat()))}


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    supervisor = WorkerSupervisor(on_output=lambda key, pid, line: print(line), launch=warm_zygote.launch)
    yield Shop(tmp_path / "workspace", supervisor)
    await supervisor.close()
