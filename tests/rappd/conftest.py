"""Daemons for tests."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fixtures.chromium import CHROMIUM, chromium
from fixtures.loopback_server import FakeAzure, FakeGitHub, FakeModel
from fixtures.operation_answers import answers_are_as_declared
from fixtures.running_daemon import RunningDaemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["answers_are_as_declared"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs behind
    # Else every program that a test starts would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Chromium for the tests of a module, or the program that its ``BROWSER`` names."""
    with chromium(getattr(request.module, "BROWSER", CHROMIUM)) as browser:
        yield browser


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Callable[..., RunningDaemon]]:
    """A factory of daemons (not started); each is stopped at the end."""
    made: list[RunningDaemon] = []

    def make(name: str = "home", **environment: str) -> RunningDaemon:
        daemon = RunningDaemon(tmp_path / name, **environment)
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        daemon.stop()


@pytest.fixture(scope="module")
def fake_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon with the scripted model, shared by the tests of a module."""
    folder = tmp_path_factory.mktemp("shared")
    daemon = RunningDaemon(folder / "home", LLM_FAKE="1").start()
    yield daemon
    daemon.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    """A scripted model server that the tests of a module share."""
    server = FakeModel()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def fake_model() -> Iterator[FakeModel]:
    """A scripted model server."""
    server = FakeModel()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def fake_azure() -> Iterator[FakeAzure]:
    """A stand-in for a deployment at Azure."""
    server = FakeAzure()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def fake_github() -> Iterator[FakeGitHub]:
    """A stand-in for GitHub, with Copilot's model server."""
    server = FakeGitHub()
    server.start()
    yield server
    server.stop()
