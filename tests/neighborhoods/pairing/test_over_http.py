"""The same over the real listener, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from envelopes.identity.node_card import introduce
from neighborhoods.errors import PeerOfflineError
from rappd.listeners.federation.app import set_limits
from rappd.listeners.federation.pairing import MOST_BYTES, PAIRING, routes

Machine = Any
Network = Any


@pytest.fixture
async def served(desk: Machine, pi: Machine, network: Network) -> AsyncIterator[Callable[[Machine], str]]:
    """Both machines behind listeners of their own; gives the URL of one's ``/pairing``."""
    servers: dict[str, TestServer] = {}
    for machine in (desk, pi):
        app = web.Application()
        app[PAIRING] = machine.pairings
        set_limits(app)
        app.add_routes(routes)
        servers[machine.address] = TestServer(app, host="127.0.0.1")
        await servers[machine.address].start_server()
        old, port = machine.introduction, servers[machine.address].port
        assert port is not None
        machine.introduction = introduce(machine.key, old.certificate, old.sealing_key, old.name, port)
        machine.address = f"127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session:

        async def post(sender: Machine, address: str, body: dict[str, Any], _: Any) -> Any:
            try:
                async with session.post(f"http://{address}/pairing", json=body) as answer:
                    return orjson.loads(await answer.read())
            except aiohttp.ClientConnectionError as error:
                raise PeerOfflineError("away") from error

        network.between = post
        yield lambda machine: f"http://{machine.address}/pairing"
        for machine in (desk, pi):
            await machine.pairings.close()
    for server in servers.values():
        await server.close()


async def test_words_pair_two_real_listeners(
    desk: Machine, pi: Machine, served: Callable[[Machine], str]
) -> None:
    asked = await desk.ask(pi)
    there = await pi.asked_by(desk)
    also = await pi.ask(desk, "friend")
    assert also.id == there.id
    here = await desk.until(asked.id, "words")
    assert here.words == there.words
    await asyncio.sleep(1)  # polls go on, far more than a stranger may ask
    await asyncio.gather(desk.pairings.confirm(asked.id, True), pi.pairings.confirm(also.id, True))
    await desk.until(asked.id, "paired")
    assert desk.paired == [(pi.key.fingerprint, "mine", pi.address)]
    assert pi.paired == [(desk.key.fingerprint, "friend", desk.address)]


async def test_code_pairs_two_real_listeners(
    desk: Machine, pi: Machine, served: Callable[[Machine], str]
) -> None:
    shown = await pi.pairings.offer_code("mine")
    used = await desk.pairings.use_code(pi.address, pi.introduction, shown.code, "mine")
    await desk.until(used.id, "paired")
    assert pi.paired == [(desk.key.fingerprint, "mine", desk.address)]


async def test_simultaneous_pairing_on_two_real_listeners(
    desk: Machine, pi: Machine, served: Callable[[Machine], str]
) -> None:
    by_desk, by_pi = await asyncio.gather(desk.ask(pi), pi.ask(desk))
    here, there = await desk.until(by_desk.id, "words"), await pi.until(by_pi.id, "words")
    assert here.words == there.words


@pytest.mark.parametrize(
    ("body", "media", "status", "code"),
    [
        (b"{}", "text/plain", 415, "media_type"),
        (b"{", "application/json", 400, "bad_body"),
        (b"", "application/json", 400, "bad_body"),
        (b"\xff", "application/json", 400, "bad_body"),
        (b"[]", "application/json", 400, "bad_pairing"),
        (b'{"step":"shout"}', "application/json", 400, "bad_pairing"),
        (b'{"step":["poll"],"attempt":{}}', "application/json", 400, "bad_pairing"),
        (b"[" * 10_000, "application/json", 400, "bad_body"),
        (b'"' + b"x" * MOST_BYTES + b'"', "application/json", 413, "too_large"),
    ],
)
async def test_other_bodies_are_refused_in_the_one_shape(
    pi: Machine, served: Callable[[Machine], str], body: bytes, media: str, status: int, code: str
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(served(pi), data=body, headers={"Content-Type": media}) as answer,
    ):
        said = orjson.loads(await answer.read())
        assert (answer.status, said["code"]) == (status, code)
        assert set(said) == {"error", "do", "code"}


async def test_chunked_body_ends_at_the_limit(pi: Machine, served: Callable[[Machine], str]) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * 4096

    async with aiohttp.ClientSession() as session:
        try:
            async with session.post(
                served(pi), data=endless(), headers={"Content-Type": "application/json"}
            ) as answer:
                assert answer.status == 413
        except aiohttp.ClientConnectionError:
            pass  # the listener hung up before all was sent
        async with session.post(served(pi), json={}) as answer:
            assert answer.status == 400


async def test_strangers_may_ask_twenty_times_a_minute(pi: Machine, served: Callable[[Machine], str]) -> None:
    async with aiohttp.ClientSession() as session:
        statuses = []
        for _ in range(22):
            async with session.post(served(pi), json={"step": "poll", "attempt": "nobody's"}) as answer:
                statuses.append(answer.status)
                said = orjson.loads(await answer.read())
    assert statuses == [400] * 20 + [429] * 2
    assert said["code"] == "too_many"
    assert said["do"].startswith("Wait")


async def test_a_packed_body_is_not_unpacked(pi: Machine, served: Callable[[Machine], str]) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(served(pi), data=b"\x1f\x8b", headers=headers) as answer,
    ):
        said = orjson.loads(await answer.read())
    assert (answer.status, said["code"]) == (415, "media_type")
