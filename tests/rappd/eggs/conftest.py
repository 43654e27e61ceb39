"""Homes that eggs go between, each with its daemon running."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from fixtures.loopback_server import FakeModel
from fixtures.running_daemon import RunningDaemon
from fixtures.twin_workspace import Place, thinks_with


@pytest.fixture
def make_place(make_daemon: Callable[..., RunningDaemon], model: FakeModel) -> Callable[..., Place]:
    """Homes of the test's own, running."""

    def make(name: str) -> Place:
        return Place(make_daemon(name, **thinks_with(model), RAPPD_NAME=name).start(), model)

    return make


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[tuple[Place, Place]]:
    """Two homes for the tests that leave them running: eggs go from desk to kitchen."""
    folder = tmp_path_factory.mktemp("two")
    daemons = [
        RunningDaemon(folder / name / "home", **thinks_with(model), RAPPD_NAME=name)
        for name in ("desk", "kitchen")
    ]
    desk, kitchen = (Place(daemon.start(), model) for daemon in daemons)
    yield desk, kitchen
    for daemon in daemons:
        daemon.stop()
    shutil.rmtree(folder, ignore_errors=True)
