"""The milliseconds that screens show for a peer: those that its answer took on an open connection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from envelopes.envelope import HELLO
from rappd.federation.availability import Availability, Deferred
from rappd.federation.greetings import Greetings, HelloSender
from twins.background_tasks import BackgroundTasks


async def test_probe_tells_the_round_trip_of_an_open_connection() -> None:
    async def hello(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(0.1)  # with the handshake of a new connection
        return SimpleNamespace(verb=HELLO, data={})

    async def recorded(*_: Any) -> None:
        return None

    pi = SimpleNamespace(name="pi", called="pi", fingerprint="4f2a" * 16)
    catalogue: Any = SimpleNamespace(hello=lambda _: {})
    client: Any = SimpleNamespace(probe=hello, round_trip=lambda _: 0.0042)
    peer_client: Deferred[Any] = Deferred(Availability())
    peer_client.set(client)
    quiet: Any = SimpleNamespace(
        offer=lambda _: {}, offered=lambda *_: None, heard=lambda *_: None, of=lambda _: None, troubles={}
    )
    rosters: Any = SimpleNamespace(offer=lambda _: {}, offered=recorded, heard=lambda *_: None)
    peers: Any = SimpleNamespace(get=lambda _: pi)
    hellos = HelloSender("desk", quiet, catalogue, peer_client)
    greetings = Greetings(hellos, peers, {}, quiet, rosters, quiet, BackgroundTasks("failed"))
    assert await greetings.probe(pi.fingerprint) == pytest.approx(4.2)
    assert greetings.is_known(pi.fingerprint)
