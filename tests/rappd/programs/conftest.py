"""A daemon that foreign programs ask: on loopback, and at its listener for other machines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rappd.federation.conftest import Node, make_node
from tests.rappd.federation.plain_machine import PlainMachine, Reply
from tests.rappd.sessions.workflows.conftest import THREE, Desk
from tests.rappd.sessions.workflows.held_model import HeldModel


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A machine without a model, and with a twin, Gardener, shared by the tests of a module."""
    folder = tmp_path_factory.mktemp("programs")
    found = make_node(folder).start()
    status, made = found.owner("POST", "/twins", {"name": "Gardener"})
    assert status == 200, made
    yield found
    found.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def elsewhere(node: Node) -> PlainMachine:
    """A machine that is not paired."""
    return node.stranger()


def token(node: Node, *caps: str, name: str = "nas") -> dict[str, Any]:
    """A token for a program."""
    status, found = node.owner("POST", "/tokens", {"name": name, "caps": list(caps)})
    assert status == 200, found
    issued: dict[str, Any] = found["token"]
    return issued


def ask(machine: PlainMachine, path: str, body: Any = None, token: str = "", **more: Any) -> Reply:
    """A request of a program elsewhere, which shows its token and no certificate."""
    method = "GET" if body is None else "POST"
    return machine.request(method, path, body, certificate=False, token=token, **more)


def setting(node: Node, name: str, value: str) -> None:
    """Changes a setting of the running daemon."""
    status, found = node.owner("POST", "/settings", {"name": name, "value": value})
    assert status == 200, found


def lines(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(one) for one in body.splitlines()]


@contextmanager
def desk_with_model(folder: Path) -> Iterator[tuple[Desk, HeldModel]]:
    """A daemon with a workflow, and the model of its steps, which can be held."""
    server = HeldModel()
    server.start()
    made = Desk(folder, OPENAI_BASE_URL=server.url, OPENAI_MODEL="small", RAPPD_MODEL_HELP="never")
    made.write(THREE)
    made.start()
    yield made, server
    server.let_go()
    made.stop()
    server.stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, HeldModel]]:
    with desk_with_model(tmp_path_factory.mktemp("workflows") / "desk") as found:
        yield found


@pytest.fixture
def desk(both: tuple[Desk, HeldModel]) -> Desk:
    return both[0]


@pytest.fixture
def held_model(both: tuple[Desk, HeldModel]) -> HeldModel:
    """The machine's model; what it was asked before is forgotten."""
    both[1].texts.clear()
    return both[1]
