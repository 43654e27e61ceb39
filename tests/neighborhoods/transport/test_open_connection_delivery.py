"""Envelopes that wait for a peer go on a line that is open: the peer may have no listener, or one without batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from envelopes.codecs.emergence import encode
from envelopes.envelope import ACK, DONE, ERROR, Envelope
from neighborhoods.errors import DeclinedError, PeerOfflineError
from neighborhoods.transport.peer_client import PeerClient
from neighborhoods.transport.peer_connection import PeerConnection
from tests.neighborhoods.transport.conftest import Machine, nothing
from tests.neighborhoods.transport.two_ends import End

Pair = tuple[Machine, Machine]
Make = Callable[..., PeerClient]


def small(pi: Machine, asked: list[Envelope]) -> Any:
    """A peer that does what it is told, and keeps what it was asked."""

    async def answer(envelope: Envelope) -> Envelope | None:
        asked.append(envelope)
        match envelope.data.get("does"):
            case "nothing":
                return None
            case "late":
                return envelope.reply(ACK, {"state": "started"})
            case "busy":
                return envelope.refusal(503, "Not now.", "busy")
            case "lies":
                return Envelope(envelope.id, "brainstem_0000000000000000", envelope.sender, DONE, {})
        return envelope.reply(DONE, {"result": envelope.data.get("n")})

    return answer


@asynccontextmanager
async def opened(carrier: PeerClient, pi: Machine, answer: Any) -> AsyncIterator[PeerConnection]:
    """A line that pi opened."""
    ends = End(), End()
    ends[0].other, ends[1].other = ends[1], ends[0]
    here = PeerConnection(ends[0], nothing, name="pi", protocol="rappd.2")
    there = PeerConnection(ends[1], answer, name="desk", protocol="rappd.2")
    reading = [asyncio.ensure_future(line.run()) for line in (here, there)]
    carrier.adopt(pi.peer(), here)
    yield there
    await there.close()
    await asyncio.gather(*reading)


async def test_peer_without_listener_gets_on_its_line_what_waits(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    pi.address = "127.0.0.1:9"
    carrier, asked = carrier_of(desk, pi), []
    async with opened(carrier, pi, small(pi, asked)):
        does = ("now", "late", "busy", "lies", "nothing")
        many = [desk.help(pi, does=one, n=n) for n, one in enumerate(does)]
        replies = await carrier.send_batch(pi.peer(), [encode(one) for one in many])
        assert [one.id for one in asked] == [one.id for one in many], "in their order"
        assert [one and one.verb for one in replies] == [DONE, ACK, ERROR, ERROR, None]
        assert [one.data["code"] for one in replies if one and one.verb == ERROR] == [503, 502]
        assert {one.extensions["_x_deadline"] for one in asked} == {1.0}, "the queue does not wait for work"
        again = await carrier.fetch(pi.peer(), many[0].id, encode(many[0]))
        assert again is not None
        assert (again.id, again.data) == (many[0].id, {"result": 0})
        with pytest.raises(DeclinedError, match="is here but has no listener"):
            await carrier.open_response(pi.peer(), "/snapshot")
    assert carrier._events.failed == []  # type: ignore[attr-defined]  # it was never away
    with pytest.raises(PeerOfflineError):
        await carrier.send_batch(pi.peer(), [encode(many[0])])


@pytest.mark.parametrize("listener", ["none any more", "without batches", "of another machine"])
async def test_listener_that_takes_no_batch_gives_way_to_the_line(
    desk_and_pi: Pair, carrier_of: Make, tmp_path: Any, listener: str
) -> None:
    desk, pi = desk_and_pi

    async def batch(request: web.Request) -> web.Response:
        return web.json_response([])

    await pi.serve(batch=batch)
    carrier, asked = carrier_of(desk, pi), []
    assert await carrier.send_batch(pi.peer(), []) == []
    if listener == "none any more":
        await pi.close()
    elif listener == "without batches":
        await pi.serve(eggs=batch)
    else:
        other = Machine(tmp_path, "other")
        await other.serve(batch=batch)
        pi.address = other.address
    one = desk.help(pi, n=7)
    async with opened(carrier, pi, small(pi, asked)):
        for _ in range(2):
            (reply,) = await carrier.send_batch(pi.peer(), [encode(one)])
            assert reply is not None
            assert reply.data == {"result": 7}
    assert len(asked) == 2
    assert carrier._events.failed == []  # type: ignore[attr-defined]


async def test_listener_that_answers_is_used_though_a_line_is_open(
    desk_and_pi: Pair, carrier_of: Make
) -> None:
    desk, pi = desk_and_pi
    posted: list[int] = []

    async def batch(request: web.Request) -> web.Response:
        posted.append(len(await request.json()))
        return web.json_response([])

    await pi.serve(batch=batch)
    carrier, asked = carrier_of(desk, pi), []
    await carrier.send_batch(pi.peer(), [])
    async with opened(carrier, pi, small(pi, asked)):
        await carrier.send_batch(pi.peer(), [encode(desk.help(pi))])
    assert (posted, asked) == ([0, 1], [])
