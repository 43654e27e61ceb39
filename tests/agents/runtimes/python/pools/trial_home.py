"""A rappd home to run workers in, and waiting for what they do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.supervisor import WorkerSupervisor

ROOM = "tests.agents.runtimes.python.pools.trial_room"
MakePlan = Callable[..., PoolConfig]


@dataclass
class Home:
    """A rappd home with things no worker may read, and two workspaces, ``a`` and ``b``."""

    path: Path
    printed: list[tuple[str, int, str]] = field(default_factory=list)

    def furnish(self) -> Home:
        for folder in (self.workspace, self.path / "twins" / "b"):
            folder.mkdir(parents=True)
        for secret in self.secrets:
            secret.parent.mkdir(parents=True, exist_ok=True)
            secret.write_text("a secret")
        return self

    @property
    def workspace(self) -> Path:
        return self.path / "twins" / "a"

    @property
    def secrets(self) -> list[Path]:
        names = ("keys/identity", "rappd.toml", ".env", "rappd.db", "twins/b/soul.md", "twins/b/.env")
        return [self.path / name for name in names]

    def lines(self) -> list[str]:
        return [line for _, _, line in self.printed]

    def plan(self, **changes: Any) -> PoolConfig:
        usual: dict[str, Any] = {
            "env": {"PATH": "/usr/bin:/bin", "HOME": str(self.path)},
            "private_root": self.path,
            "room": f"{ROOM}:Room",
        }
        return PoolConfig(self.workspace, **(usual | changes))


@asynccontextmanager
async def supervised(kind: str, *more: str, **how: Any) -> AsyncIterator[WorkerSupervisor]:
    """A supervisor that has started with a sandbox of that kind, else the end of the test.

    ``more`` are modules that its zygote loads first, ``how`` is for ``WorkerSupervisor``.
    """
    from fixtures import warm_zygote  # here: what an ordinary account runs imports this file, too
    from fixtures.kernel_features import end_without

    made = WorkerSupervisor(preload=(*more, ROOM), sandbox=kind, **{"launch": warm_zygote.launch, **how})
    await made.start()
    try:
        if (report := made.sandbox_report())["kind"] != kind:
            end_without(kind, report)
        yield made
    finally:
        await made.close()


async def until(condition: Callable[[], Any], seconds: float = 100) -> None:
    """Wait for ``condition``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition never came true"
        await asyncio.sleep(0.01)


def is_gone(pid: int) -> bool:
    """True when no process of that number is alive; ended ones that nobody collected count as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
