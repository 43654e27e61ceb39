"""Several addresses of one peer: whichever leads to it is taken, and those that lead nowhere cost nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from envelopes.codecs.emergence import as_object, decode, encode
from envelopes.envelope import DONE, HELLO, Envelope, new_id
from neighborhoods.errors import KeyChangedError, PeerOfflineError
from neighborhoods.peer import Peer
from neighborhoods.transport import connector as rooms
from neighborhoods.transport.connector import Connector
from neighborhoods.transport.peer_client import PeerClient
from neighborhoods.transport.peer_connection import PeerConnection
from tests.neighborhoods.transport.conftest import Machine, Place, Told, nothing

Pair = tuple[Machine, Machine]


class Silence:
    """An address where connections are taken and nothing is ever said."""

    def __init__(self) -> None:
        self.address = ""
        self.came = self.there = 0
        self._server: asyncio.Server | None = None

    async def open(self) -> Silence:
        self._server = await asyncio.start_server(self._keep, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def _keep(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        self.there += 1
        try:
            while await reader.read(1024):
                pass
        except ConnectionError:
            pass
        finally:
            self.there -= 1
            writer.close()

    def close(self) -> None:
        assert self._server is not None
        self._server.close()


class Moving:
    """A carrier to one peer, whose addresses a test sets."""

    def __init__(self, own: Machine) -> None:
        self.addresses: list[str] = []
        self.told = Told()
        self.carrier = PeerClient(
            Connector(self._candidates, own.files), own.files, lambda peer: nothing, self.told
        )

    async def _candidates(self, peer: Peer) -> list[Place]:
        return [Place(address) for address in self.addresses]


@pytest.fixture
async def moving(desk_and_pi: Pair) -> AsyncIterator[Moving]:
    made = Moving(desk_and_pi[0])
    yield made
    await made.carrier.close()


@pytest.fixture
async def silent() -> AsyncIterator[list[Silence]]:
    made = [await Silence().open() for _ in range(6)]
    yield made
    for one in made:
        one.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address is ever given up: a caller that waits for one waits for ever."""
    monkeypatch.setattr(rooms, "CONNECT_SECONDS", 3600.0)
    monkeypatch.setattr("neighborhoods.transport.peer_client.CONNECT_SECONDS", 3600.0)


async def greeting(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(protocols=("rappd.1",))
    await socket.prepare(request)
    async for message in socket:
        asked = decode(message.data.encode())
        await socket.send_str(encode(asked.reply(asked.verb.replace("HELP", DONE), {})).decode())
    return socket


async def done(request: web.Request) -> web.Response:
    found = [decode(orjson.dumps(one)) for one in orjson.loads(await request.read())]
    return web.Response(body=orjson.dumps([as_object(one.reply(DONE, {})) for one in found]))


def hello(desk: Machine, pi: Machine) -> bytes:
    return encode(Envelope(new_id(), desk.id, pi.id, HELLO, {}))


@pytest.mark.usefixtures("patient")
async def test_addresses_that_lead_nowhere_delay_nothing(
    desk_and_pi: Pair, moving: Moving, silent: list[Silence]
) -> None:
    desk, pi = desk_and_pi
    await pi.serve(line=greeting, batch=done)
    moving.addresses = [*(one.address for one in silent), "127.0.0.1:9", pi.address]
    assert (await moving.carrier.send_batch(pi.peer(), [encode(desk.help(pi))]))[0].verb == DONE
    assert (await moving.carrier.send(pi.peer(), encode(desk.help(pi)), wait=100)).verb == DONE
    assert moving.carrier.address(pi.peer()) == pi.address
    while any(one.there for one in silent):
        await asyncio.sleep(0.01)  # what was tried beside it is ended
    assert {one.came for one in silent} <= {1, 2}


class OpenSocket:
    """A connection that the peer opened, and on which it says nothing."""

    closed = False

    async def send_frame(self, message: bytes, opcode: aiohttp.WSMsgType) -> None:
        raise AssertionError("nothing is to be asked here")

    async def receive(self) -> aiohttp.WSMessage:
        raise AssertionError("nobody reads here")

    async def close(self, *, code: int = 1000) -> None:
        self.closed = True


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("called", [False, True], ids=["silent", "opened_another_line"])
async def test_moved_peer_is_found_despite_open_connection(
    desk_and_pi: Pair, moving: Moving, silent: list[Silence], called: bool
) -> None:
    desk, pi = desk_and_pi
    gone = asyncio.Event()

    async def falling_silent(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("rappd.1",))
        await socket.prepare(request)
        async for message in socket:
            if not gone.is_set():
                asked = decode(message.data.encode())
                await socket.send_str(encode(asked.reply(HELLO, {})).decode())
        return socket

    await pi.serve(line=falling_silent)
    moving.addresses = [pi.address]
    assert (await moving.carrier.probe(pi.peer(), hello(desk, pi), wait=3600)).verb == HELLO
    old, runner = pi.address, pi.runner
    gone.set()
    pi.runner = None
    await pi.serve(line=greeting)
    moving.addresses = [old, *(one.address for one in silent), pi.address]
    assert runner is not None
    waiting = asyncio.ensure_future(moving.carrier.send(pi.peer(), encode(desk.help(pi)), wait=3600))
    while not moving.told.doubted:
        await asyncio.sleep(0.01)
    assert moving.told.doubted == [pi.key.fingerprint], "somebody is told to look after it"
    if called:
        line = PeerConnection(OpenSocket(), nothing, name=pi.name, protocol=None)
        moving.carrier.adopt(pi.peer(), line)
    for site in list(runner.sites):  # nobody is at the old address for new connections either
        await site.stop()
    assert (await moving.carrier.probe(pi.peer(), hello(desk, pi), wait=3600)).verb == HELLO
    with pytest.raises(PeerOfflineError):
        await waiting  # it may go again, by the new line
    assert moving.carrier.address(pi.peer()) == pi.address
    assert (await moving.carrier.send(pi.peer(), encode(desk.help(pi)), wait=100)).verb == DONE
    await runner.cleanup()


async def test_peer_silent_after_answer_is_doubted(desk_and_pi: Pair, moving: Moving) -> None:
    desk, pi = desk_and_pi

    async def answering_once(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("rappd.1",))
        await socket.prepare(request)
        asked = decode((await socket.receive()).data.encode())
        await socket.send_str(encode(asked.reply(HELLO, {})).decode())
        async for _ in socket:
            pass
        return socket

    await pi.serve(line=answering_once)
    moving.addresses = [pi.address]
    assert (await moving.carrier.probe(pi.peer(), hello(desk, pi), wait=100)).verb == HELLO
    with pytest.raises(
        PeerOfflineError
    ):  # asked in the round of the loop, or the millisecond, of that answer
        await moving.carrier.send(pi.peer(), encode(desk.help(pi)), wait=1)
    assert moving.told.doubted == [pi.key.fingerprint]


async def test_another_key_at_one_address_hides_no_other(
    desk_and_pi: Pair, moving: Moving, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk, pi = desk_and_pi
    other = Machine(tmp_path, "other")
    other.trust.pin(desk.certificate)
    asked: list[Any] = []

    async def listening(request: web.Request) -> web.Response:
        asked.append(await request.read())
        return web.Response(body=b"[]")

    await pi.serve(batch=done)
    await other.serve(batch=listening)
    moving.addresses = [other.address, pi.address]
    assert (await moving.carrier.send_batch(pi.peer(), [encode(desk.help(pi))]))[0].verb == DONE
    assert any("another key" in text for text in caplog.messages)
    moving.addresses = [other.address, "127.0.0.1:9"]
    with pytest.raises(KeyChangedError):
        await moving.carrier.send_batch(pi.peer(), [encode(desk.help(pi))])
    assert asked == []
    await other.close()


async def test_a_batch_goes_to_one_address_alone(desk_and_pi: Pair, moving: Moving) -> None:
    """Both addresses lead to the peer: what is asked is asked once."""
    desk, pi = desk_and_pi
    batches = 0

    async def counted(request: web.Request) -> web.Response:
        nonlocal batches
        batches += 1
        return await done(request)

    await pi.serve(batch=counted)
    moving.addresses = [pi.address.replace("127.0.0.1", "localhost"), pi.address]
    await moving.carrier.send_batch(pi.peer(), [encode(desk.help(pi))])
    assert batches == 1


@pytest.mark.usefixtures("patient")
async def test_where_nobody_is_it_is_away(desk_and_pi: Pair, moving: Moving) -> None:
    desk, pi = desk_and_pi
    moving.addresses = ["127.0.0.1:9", "127.0.0.1:19", "no such host.invalid:7443"]
    with pytest.raises(PeerOfflineError):
        await moving.carrier.send_batch(pi.peer(), [encode(desk.help(pi))])


@pytest.mark.usefixtures("patient")
async def test_round_trip_leaves_out_the_first_handshake(
    desk_and_pi: Pair, moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, pi = desk_and_pi
    await pi.serve(line=greeting)
    moving.addresses = [pi.address]
    opened = moving.carrier._line

    async def slowly(peer: Any) -> Any:
        await asyncio.sleep(0.5)  # as a handshake may take
        return await opened(peer)

    monkeypatch.setattr(moving.carrier, "_line", slowly)
    assert moving.carrier.round_trip(pi.key.fingerprint) == 0.0
    began = time.perf_counter()
    await moving.carrier.probe(pi.peer(), hello(desk, pi), wait=3600)
    whole = time.perf_counter() - began
    assert 0 < moving.carrier.round_trip(pi.key.fingerprint) < whole - 0.4
