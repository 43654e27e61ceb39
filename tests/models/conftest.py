"""A daemon with a real model server behind it. Skipped, with the reason, where the packages cannot be had."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from tests.models.packages import MissingPackageError, Packages
from tests.models.real_server import RealServer
from tests.rappd.conftest import browser

__all__ = ["browser"]

SILENCE = "120"
"""Seconds: one processor may be busy with something else."""


@pytest.fixture(scope="session")
def packages() -> Packages:
    found = Packages()
    try:
        found.model(), found.server()
    except MissingPackageError as missing:
        pytest.skip(str(missing))
    return found


@pytest.fixture(scope="module")
def server(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    server = RealServer(packages, tmp_path_factory.mktemp("server")).start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def desk(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    home = tmp_path_factory.mktemp("desk") / "home"
    daemon = RunningDaemon(home, OPENAI_BASE_URL=server.url, RAPPD_MODEL_TIMEOUT=SILENCE)
    weather = "return f\"{kwargs.get('city')}: rain in the afternoon, 14 °C\""
    properties = '{"city": {"type": "string", "description": "City to look up"}}'
    daemon.drop(
        "weather_agent.py", agent_source("Weather", weather, "Gets the weather for a city.", properties)
    )
    daemon.start()
    yield daemon
    daemon.stop()
