"""The milliseconds that screens show for a peer: those that its answer took on an open connection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from envelopes.envelope import HELLO
from rappd.federation.service import FederationService


async def test_probe_tells_the_round_trip_of_an_open_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hello(*_: Any) -> Any:
        await asyncio.sleep(0.1)  # with the handshake of a new connection
        return SimpleNamespace(verb=HELLO, data={})

    async def recorded(*_: Any) -> None:
        return None

    service: Any = object.__new__(FederationService)
    service.peer_store = SimpleNamespace(get=lambda _: SimpleNamespace(name="pi"))
    service.witness = SimpleNamespace(offer=lambda _: {}, offered=lambda *_: None)
    service._roster_changes = SimpleNamespace(offer=lambda _: {}, offered=recorded)
    service.troubles = {}
    service._parts = SimpleNamespace(carrier=SimpleNamespace(round_trip={"4f2a": 0.0042}.get))
    monkeypatch.setattr(service, "_say_hello", hello)
    monkeypatch.setattr(service, "told", lambda *_: None)
    assert await service.probe("4f2a") == pytest.approx(4.2)
