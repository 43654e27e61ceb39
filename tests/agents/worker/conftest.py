from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop

from agents.worker.crew import Crew
from agents.worker.plan import CrewPlan
from agents.worker.workforce import Workforce

ROOM = "tests.agents.worker.trial_room"


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test here runs on both event loops, unless it names one."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@dataclass
class Home:
    """A rappd home with things no worker may read, and two workspaces."""

    path: Path
    printed: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.path / "twins" / "a"

    @property
    def secrets(self) -> list[Path]:
        names = ("keys/identity", "rappd.toml", ".env", "rappd.db", "twins/b/soul.md", "twins/b/.env")
        return [self.path / name for name in names]

    def lines(self) -> list[str]:
        return [line for _, _, line in self.printed]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.workspace.mkdir(parents=True)
    for secret in made.secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("a secret")
    return made


@pytest.fixture
async def workforce(home: Home) -> AsyncIterator[Workforce]:
    made = Workforce(on_output=lambda *said: home.printed.append(said), preload=(ROOM,))
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def plan(home: Home) -> Callable[..., CrewPlan]:
    def make(**changes: Any) -> CrewPlan:
        env = {"PATH": os.environ["PATH"], "HOME": str(home.path)}
        usual: dict[str, Any] = {"env": env, "private_root": home.path, "room": f"{ROOM}:Room"}
        return CrewPlan(home.workspace, **(usual | changes))

    return make


@pytest.fixture
def crew(workforce: Workforce, plan: Callable[..., CrewPlan]) -> Crew:
    return workforce.crew("a", plan())
