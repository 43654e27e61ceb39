from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fixtures import warm_zygote

from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from tests.agents.runtimes.python.pools.trial_home import ROOM, Home, MakePlan


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").furnish()


@pytest.fixture
async def supervisor(home: Home) -> AsyncIterator[WorkerSupervisor]:
    made = WorkerSupervisor(
        on_output=lambda *said: home.printed.append(said), preload=(ROOM,), launch=warm_zygote.launch
    )
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def plan(home: Home) -> MakePlan:
    return home.plan


@pytest.fixture
def pool(supervisor: WorkerSupervisor, plan: MakePlan) -> WorkerPool:
    return supervisor.pool("a", plan())
