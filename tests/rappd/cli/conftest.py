"""Homes for the command line's tests: one at rest, one with something of everything."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from tests.rappd.cli.gardener import Gardener
from tests.rappd.cli.module_traps import Traps, make_traps


@pytest.fixture
def idle(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A home whose daemon is not running."""
    return make_daemon("idle", LLM_FAKE="1", RAPPD_NAME="desk")


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    """A folder of traps, and the file in which each writes its name when it is run."""
    return make_traps(tmp_path)


@pytest.fixture
def kitchen(make_daemon: Callable[..., RunningDaemon], tmp_path: Path) -> Gardener:
    """The home that the eggs come from."""
    return Gardener(make_daemon("kitchen", LLM_FAKE="1", RAPPD_NAME="kitchen"), tmp_path)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A running daemon without a model. Tests of a module share it; each speaks of twins of its own."""
    daemon = RunningDaemon(tmp_path_factory.mktemp("desk") / "home", RAPPD_NAME="desk").start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon with agents, a fault, conversations and a rapplication.

    Tests of a module share it: what they add, they take away.
    """
    folder = tmp_path_factory.mktemp("busy")
    daemon = RunningDaemon(folder / "home", LLM_FAKE="1", RAPPD_NAME="desk")
    long = "Answers whatever is asked about the weather, here and elsewhere, now and later. More follows."
    daemon.drop("weather_agent.py", agent_source("Weather", 'return "rain"', description=long))
    daemon.drop("broken_agent.py", "x = 1\nclass A(:\n")
    daemon.home.chmod(0o700)
    daemon.start()
    daemon.chat("What is the weather like in a town with a name that is rather long, and will it stay so?")
    daemon.chat("長い話の始まりはここにあります、それはとても長いので切られます")
    daemon.chat("turn \x1b[2J\x1b[31mred\x07 and\ttabs\nand lines")
    assert daemon.cli("rapps", "install", "kanban").returncode == 0
    yield daemon
    daemon.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def talked_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which two conversations were held; its daemon is stopped."""
    daemon = RunningDaemon(
        tmp_path_factory.mktemp("talked") / "home", LLM_FAKE="1", RAPPD_NAME="desk"
    ).start()
    daemon.chat("first", session_id="one")
    daemon.chat("second\nwith two lines", session_id="one")
    daemon.chat("other", session_id="two")
    daemon.stop()
    return daemon.home


@pytest.fixture
def talked(idle: RunningDaemon, talked_before: Path) -> RunningDaemon:
    """Such a home to do with as a test likes."""
    shutil.copytree(talked_before, idle.home)
    return idle
