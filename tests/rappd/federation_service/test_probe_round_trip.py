"""The milliseconds that screens show for a peer: those that its answer took on an open connection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from envelopes.envelope import HELLO
from rappd.federation.greetings import Greetings
from twins.background_tasks import BackgroundTasks


async def test_probe_tells_the_round_trip_of_an_open_connection() -> None:
    async def hello(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(0.1)  # with the handshake of a new connection
        return SimpleNamespace(verb=HELLO, data={})

    async def recorded(*_: Any) -> None:
        return None

    pi = SimpleNamespace(name="pi", called="pi", fingerprint="4f2a" * 16)
    parts: Any = SimpleNamespace(
        catalogue=SimpleNamespace(hello=lambda _: {}),
        carrier=SimpleNamespace(probe=hello, round_trip=lambda _: 0.0042),
    )
    quiet: Any = SimpleNamespace(
        offer=lambda _: {}, offered=lambda *_: None, heard=lambda *_: None, troubles={}
    )
    rosters: Any = SimpleNamespace(offer=lambda _: {}, offered=recorded, heard=lambda *_: None)
    base: Any = SimpleNamespace(
        peer_store=SimpleNamespace(get=lambda _: pi), announced={}, node=SimpleNamespace(id="desk")
    )
    greetings = Greetings(
        base, lambda: parts, lambda _: quiet, quiet, rosters, quiet, BackgroundTasks("failed")
    )
    assert await greetings.probe(pi.fingerprint) == pytest.approx(4.2)
    assert greetings.is_known(pi.fingerprint)
