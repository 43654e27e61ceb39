"""A rappd home to run workers in, and waiting for what they do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.workers.config import PoolConfig

ROOM = "tests.agents.workers.trial_room"
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


async def until(condition: Callable[[], Any], seconds: float = 30) -> None:
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
