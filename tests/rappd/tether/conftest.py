"""A running daemon that phones of this machine can reach."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from fixtures.chromium import chromium
from fixtures.free_ports import free_port
from fixtures.loopback_server import FakeModel
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser

from tests.rappd.tether.phone_client import PhoneClient

MakePhone = Callable[..., Awaitable[PhoneClient]]


def reachable() -> dict[str, str]:
    """The settings of a daemon that phones of this machine can reach, at a port of its own."""
    port = str(free_port())
    return {"RAPPD_NAME": "desk", "RAPPD_TETHER_ADDRESS": "127.0.0.1", "RAPPD_TETHER_PORT": port}


@pytest.fixture
def desk(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A daemon with the scripted model."""
    return make_daemon("desk", **reachable(), LLM_FAKE="1").start()


@pytest.fixture
async def phone(desk: RunningDaemon) -> AsyncIterator[MakePhone]:
    """``await phone(name=…)``: a phone that joined; all leave at the end. ``over`` is what it connects by."""
    made: list[PhoneClient] = []

    async def make(over: type[PhoneClient] = PhoneClient, **asked: Any) -> PhoneClient:
        made.append(await over(desk).pair(**asked))
        return made[-1]

    yield make
    for one in made:
        await one.leave()


@pytest.fixture
def thinking(make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel) -> RunningDaemon:
    """A daemon with a model that says what the test wants."""
    model = {"OPENAI_BASE_URL": fake_model.url, "OPENAI_MODEL": "small"}
    return make_daemon("desk", **reachable(), **model).start()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser for the tests of a module."""
    with chromium() as found:
        yield found
