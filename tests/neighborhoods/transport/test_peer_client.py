"""Answers of a peer's listener, and what a caller believes of them."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from envelopes.codecs.emergence import as_object, decode, encode
from envelopes.envelope import DONE, ERROR, Envelope
from neighborhoods.errors import (
    KeyChangedError,
    NeighborhoodError,
    NotPairedError,
    PeerFailedError,
    PeerOfflineError,
    PeerRefusedError,
    RetriableError,
)
from neighborhoods.transport.peer_client import PeerClient
from neighborhoods.transport.replies import arrived
from tests.neighborhoods.transport.conftest import Machine

Pair = tuple[Machine, Machine]
Make = Callable[..., PeerClient]


def answering(reply: Callable[[Envelope], Envelope]) -> Any:
    """A listener's connection that answers every frame."""

    async def line(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("rappd.1",))
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(encode(reply(decode(message.data.encode()))).decode())
        return socket

    return line


async def batch_of(request: web.Request) -> list[Envelope]:
    return [decode(orjson.dumps(one)) for one in orjson.loads(await request.read())]


def json_of(envelopes: list[Envelope]) -> bytes:
    return orjson.dumps([as_object(one) for one in envelopes])


async def test_a_question_and_its_answer(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    await pi.serve(line=answering(lambda asked: asked.reply(DONE, {"result": 4})))
    asked = desk.help(pi)
    reply = await carrier_of(desk, pi).send(pi.peer(), encode(asked), wait=100)
    assert (reply.id, reply.verb, reply.data) == (asked.id, DONE, {"result": 4})


@pytest.mark.parametrize("name", ["brainstem_0000000000000000", "pi", "unknown"])
async def test_an_answer_in_another_name_is_none(desk_and_pi: Pair, carrier_of: Make, name: str) -> None:
    desk, pi = desk_and_pi

    def lie(asked: Envelope) -> Envelope:
        return Envelope(asked.id, name, asked.sender, DONE, {"result": "mine"})

    async def batch(request: web.Request) -> web.Response:
        return web.Response(body=json_of([lie(one) for one in await batch_of(request)]))

    async def fetch(request: web.Request) -> web.Response:
        asked = Envelope(request.match_info["id"], desk.id, pi.id, "HELP", {})
        return web.Response(body=encode(lie(asked)))

    await pi.serve(line=answering(lie), batch=batch, fetch=fetch)
    carrier, asked = carrier_of(desk, pi), desk.help(pi)
    with pytest.raises(PeerFailedError):
        await carrier.send(pi.peer(), encode(asked), wait=10)
    with pytest.raises(PeerFailedError):
        await carrier.send_batch(pi.peer(), [encode(asked)])
    with pytest.raises(PeerFailedError):
        await carrier.fetch(pi.peer(), asked.id)


async def test_a_long_answer_comes_whole(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi

    async def batch(request: web.Request) -> web.StreamResponse:
        found = [one.reply(DONE, {"result": "x" * 200_000}) for one in await batch_of(request)]
        body = json_of(found)
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(body), 50_000):
            await response.write(body[start : start + 50_000])
            await asyncio.sleep(0.01)
        await response.write_eof()
        return response

    await pi.serve(batch=batch)
    replies = await carrier_of(desk, pi).send_batch(pi.peer(), [encode(desk.help(pi)) for _ in range(10)])
    assert [len(one.data["result"]) for one in replies] == [200_000] * 10


async def test_nothing_leads_elsewhere_and_nothing_swells(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    reached: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response(body=json_of([]))

    async def redirected(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/elsewhere")

    async def packed(request: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b" " * 1_000_000), headers={"Content-Encoding": "gzip"})

    asked = encode(desk.help(pi))
    carrier = carrier_of(desk, pi)
    await pi.serve(batch=redirected, line=redirected, elsewhere=elsewhere)
    for call in (carrier.send_batch(pi.peer(), [asked]), carrier.send(pi.peer(), asked, wait=100)):
        with pytest.raises(NeighborhoodError):
            await call
    await pi.serve(batch=packed)
    with pytest.raises(NeighborhoodError):
        await carrier.send_batch(pi.peer(), [asked])
    assert reached == []


async def test_statuses_of_a_batch(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    told = iter((401, 429, 503, 413, 200))

    async def batch(request: web.Request) -> web.Response:
        return web.Response(status=next(told), body=b"no envelopes")

    await pi.serve(batch=batch)
    carrier = carrier_of(desk, pi)
    for error in (PeerRefusedError, RetriableError, RetriableError, PeerRefusedError, PeerFailedError):
        with pytest.raises(error):
            await carrier.send_batch(pi.peer(), [encode(desk.help(pi))])


async def test_errors_on_a_line(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    told: dict[str, Any] = {}
    await pi.serve(line=answering(lambda asked: asked.reply(ERROR, told)))
    carrier = carrier_of(desk, pi)
    told.update(code=404, msg="no", reason="not_found")
    assert (await carrier.send(pi.peer(), encode(desk.help(pi)), wait=100)).data["code"] == 404
    told.update(code=503, msg="later", reason="busy")
    with pytest.raises(RetriableError):
        await carrier.send(pi.peer(), encode(desk.help(pi)), wait=10)
    told.update(code=401, msg="who", reason="not_paired")
    with pytest.raises(NotPairedError) as refused:
        await carrier.send(pi.peer(), encode(desk.help(pi)), wait=10)
    assert refused.value.status == 403  # to the owner here it is no missing sign-in


async def test_another_key_at_the_address_gets_nothing(
    desk_and_pi: Pair, carrier_of: Make, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    desk, pi = desk_and_pi
    other = Machine(tmp_path, "other")
    other.trust.pin(desk.certificate)
    asked: list[str] = []

    async def batch(request: web.Request) -> web.Response:
        asked.append("x")
        return web.Response(body=b"[]")

    await other.serve(batch=batch)
    pi.address = other.address
    carrier = carrier_of(desk, pi)
    for _ in range(3):
        with pytest.raises(KeyChangedError):
            await carrier.send_batch(pi.peer(), [encode(desk.help(pi))])
    await other.close()
    assert asked == []
    assert len([text for text in caplog.messages if "another key" in text]) == 1  # however often it is tried


async def test_who_is_not_trusted_any_more_is_told_so(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi

    async def batch(request: web.Request) -> web.Response:
        return web.Response(body=json_of([one.reply(DONE, {}) for one in await batch_of(request)]))

    await pi.serve(batch=batch)
    pi.trust.unpin(desk.certificate)
    with pytest.raises((PeerRefusedError, PeerOfflineError)):
        await carrier_of(desk, pi).send_batch(pi.peer(), [encode(desk.help(pi))])


async def test_a_connection_that_breaks_once_is_no_broken_trust(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    tries = 0

    async def batch(request: web.Request) -> web.Response:
        nonlocal tries
        tries += 1
        found = await batch_of(request)
        if tries == 1:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(body=json_of([one.reply(DONE, {}) for one in found]))

    await pi.serve(batch=batch)
    assert (await carrier_of(desk, pi).send_batch(pi.peer(), [encode(desk.help(pi))]))[0].verb == DONE
    assert tries == 2


async def test_nobody_there(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    pi.address = "127.0.0.1:9"
    with pytest.raises(PeerOfflineError):
        await carrier_of(desk, pi).send(pi.peer(), encode(desk.help(pi)), wait=5)


async def test_peer_of_an_older_version_agrees_on_rappd_2(desk_and_pi: Pair, carrier_of: Make) -> None:
    desk, pi = desk_and_pi
    agreed: list[str | None] = []

    async def line(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("rappd.3", "rappd.2", "rappd.1"))
        await socket.prepare(request)
        agreed.append(socket.ws_protocol)
        async for message in socket:
            asked = decode(message.data.encode())
            await socket.send_str(encode(Envelope(asked.id, pi.id, asked.sender, DONE, {"n": 4})).decode())
        return socket

    await pi.serve(line=line)
    reply = await carrier_of(desk, pi).send(pi.peer(), encode(desk.help(pi)), wait=100)
    assert (reply.data, agreed) == ({"n": 4}, ["rappd.2"])


async def test_line_that_opens_while_the_trust_ends_is_not_used(desk_and_pi: Pair, carrier_of: Make) -> None:
    """A peer that holds the opening of a line back is told nothing over it once it is no peer."""
    desk, pi = desk_and_pi
    asked, goes_on, heard = asyncio.Event(), asyncio.Event(), []

    async def line(request: web.Request) -> web.WebSocketResponse:
        asked.set()
        await goes_on.wait()
        socket = web.WebSocketResponse(protocols=("rappd.1",))
        await socket.prepare(request)
        heard.extend([message.data async for message in socket])
        return socket

    await pi.serve(line=line)
    carrier = carrier_of(desk, pi)
    sending = asyncio.ensure_future(carrier.send(pi.peer(), encode(desk.help(pi)), wait=100))
    await asked.wait()
    await carrier.part_from(pi.key.fingerprint)
    goes_on.set()
    with pytest.raises(PeerOfflineError, match="no peer any more"):
        await sending
    assert not carrier.has_line(pi.key.fingerprint)
    await pi.close()
    assert not heard


async def test_upload_under_way_ends_with_the_trust(
    desk_and_pi: Pair, carrier_of: Make, tmp_path: Path
) -> None:
    desk, pi = desk_and_pi
    begun, ended, got = asyncio.Event(), asyncio.Event(), bytearray()

    async def eggs(request: web.Request) -> web.Response:
        try:
            async for piece in request.content.iter_chunked(1 << 16):
                got.extend(piece)
                begun.set()
                await asyncio.sleep(0.01)
        finally:
            ended.set()
        return web.json_response({})

    await pi.serve(eggs=eggs)
    egg = tmp_path / "an.egg"
    egg.write_bytes(bytes(64 << 20))
    carrier = carrier_of(desk, pi)
    sending = asyncio.ensure_future(carrier.send_egg(pi.peer(), "an id", "an.egg", egg))
    await begun.wait()
    await carrier.part_from(pi.key.fingerprint)
    with pytest.raises(PeerOfflineError, match="no peer any more"):
        await sending
    await ended.wait()
    assert len(got) < 64 << 20


@pytest.mark.parametrize(
    ("body", "error", "told"),
    [
        (
            {"error": "Only paired machines have a line.", "code": "not_paired"},
            NotPairedError,
            "does not trust",
        ),
        ({"data": {"reason": "not_paired", "msg": "Who?"}}, NotPairedError, "does not trust"),
        ({"error": "Sign in first.", "code": "login"}, PeerRefusedError, "(401): Sign in first."),
        ({"data": {"reason": "bad_token", "msg": "It expired."}}, PeerRefusedError, "(401): It expired."),
        ({"error": ["x"]}, PeerRefusedError, "(401): ['x']."),
        ([], PeerRefusedError, "(401): without a reason."),
        (None, PeerRefusedError, "(401): without a reason."),
    ],
)
async def test_401_ends_the_trust_only_where_the_peer_says_so(
    desk_and_pi: Pair, carrier_of: Make, body: Any, error: type[NeighborhoodError], told: str
) -> None:
    desk, pi = desk_and_pi

    raw = b"<html>" if body is None else orjson.dumps(body)

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=401, body=raw)

    await pi.serve(line=refuse, batch=refuse)
    carrier, asked = carrier_of(desk, pi), encode(desk.help(pi))
    for call in (carrier.send(pi.peer(), asked, wait=100), carrier.send_batch(pi.peer(), [asked])):
        with pytest.raises(error) as found:
            await call
        assert told in str(found.value)
        assert "rappd peers pair pi" in found.value.do
    with pytest.raises(error, match=re.escape(told)):
        arrived(pi.peer(), 401, raw)
