"""A daemon with twins: one for those who leave it running, one of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fixtures.loopback_server import FakeModel
from fixtures.running_daemon import RunningDaemon
from fixtures.twin_farm import Farm


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Farm]:
    """A daemon for the tests that leave it running."""
    yield from _running(tmp_path_factory, model)


@pytest.fixture(scope="module")
def other_farm(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Farm]:
    """Another one: a daemon slows down a source of many refusals."""
    yield from _running(tmp_path_factory, model)


def _running(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Farm]:
    home = tmp_path_factory.mktemp("farm") / "home"
    daemon = RunningDaemon(home, OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", RAPPD_NAME="desk").start()
    yield Farm(daemon, model)
    daemon.stop()


@pytest.fixture
def lone(make_daemon: Callable[..., RunningDaemon], model: FakeModel) -> Farm:
    """A daemon of the test's own, not started."""
    return Farm(make_daemon(OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", RAPPD_NAME="desk"), model)
