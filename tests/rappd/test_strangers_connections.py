"""Strangers who connect and say nothing: every listener on the network ends them for the next, and answers."""

from __future__ import annotations

import asyncio
import http.client
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fixtures.free_ports import free_port

from envelopes.identity.certificates import make_certificate
from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.allowed_networks import LocalNetworks
from rappd.daemon.home import Home
from rappd.daemon.rate_limit import AddressLimit, RateLimitedError
from rappd.listeners import legacy_listener
from rappd.listeners.federation import app as federation
from rappd.listeners.legacy_listener import LegacyListener
from rappd.listeners.tether_listener import TetherListener

MANY = 150
KEPT_OF_ONE_ADDRESS = 64
HOST = "127.0.0.1"

Opened = tuple[int, ssl.SSLContext | None, int]
"""Port, the client's side of TLS, and the status of ``/t``."""


async def phones(stack: AsyncExitStack, context: ssl.SSLContext | None, networks: Any = None) -> int:
    networks = networks or LocalNetworks()
    owner = cast(
        Any,
        SimpleNamespace(
            visited=lambda: None, offer=None, networks=networks, eggs=None, current_session=lambda: None
        ),
    )
    listener = TetherListener(HOST, owner, lambda: [f"{HOST}:{listener.port}"], context)
    await listener.open(free_port())
    stack.push_async_callback(listener.close)
    return listener.port


async def plain_phones(stack: AsyncExitStack, folder: Path, patch: pytest.MonkeyPatch) -> Opened:
    return await phones(stack, None), None, 200


async def phones_over_tls(stack: AsyncExitStack, folder: Path, patch: pytest.MonkeyPatch) -> Opened:
    made = make_certificate(IdentityKey.generate(), now=datetime.now(UTC))
    pem = folder / "machine.pem"
    pem.write_bytes(made.key_pem + made.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return await phones(stack, context), ssl._create_unverified_context(), 200


async def published_brainstems(stack: AsyncExitStack, folder: Path, patch: pytest.MonkeyPatch) -> Opened:
    port = free_port()
    patch.setattr(legacy_listener, "PORT", port)
    listener = LegacyListener(cast(Any, None))
    await listener.open(["192.0.2.1"], [], own=[HOST])
    stack.push_async_callback(listener.close)
    return port, None, 403


@pytest.fixture(params=[plain_phones, phones_over_tls, published_brainstems])
async def listener(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Opened]:
    opening: Callable[..., Awaitable[Opened]] = request.param
    async with AsyncExitStack() as stack:
        yield await opening(stack, tmp_path, monkeypatch)


async def test_silent_connections_make_room_for_each_other(listener: Opened) -> None:
    port, context, status = listener

    def attack() -> tuple[list[socket.socket], int]:
        silent = [socket.create_connection((HOST, port), 10) for _ in range(MANY)]
        elsewhere = ("127.0.0.9", 0)
        asking: Any = (
            http.client.HTTPConnection(HOST, port, 20, elsewhere)
            if context is None
            else http.client.HTTPSConnection(
                HOST, port, timeout=100, source_address=elsewhere, context=context
            )
        )
        asking.request("GET", "/t")
        answer = asking.getresponse().status
        asking.close()
        return silent, answer

    def ended(silent: list[socket.socket]) -> int:
        found = 0
        for one in silent:
            one.settimeout(0.005)
            with suppress(TimeoutError):
                with suppress(ConnectionError):
                    assert one.recv(1) == b""
                found += 1
        return found

    silent, answer = await asyncio.to_thread(attack)
    assert answer == status
    assert await asyncio.to_thread(ended, silent) >= MANY - KEPT_OF_ONE_ADDRESS
    for one in silent:
        one.close()


async def test_malformed_requests_leave_no_traces_in_the_log(
    listener: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    port, context, status = listener

    def send(octets: bytes, answer: bytes) -> None:
        with socket.create_connection((HOST, port), 20) as plain:
            line = plain if context is None else context.wrap_socket(plain, server_hostname=HOST)
            with line:
                line.sendall(octets)
                assert line.recv(9000).split(b" ")[1] == answer

    head = f"Host: {HOST}:{port}\r\nConnection: close\r\n".encode()
    packed = b"Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone"
    path = b"/tether/v2/offer" if status == 200 else b"/chat"
    for _ in range(10):
        await asyncio.to_thread(send, b"GET /t HTTP/1.1\r\nno header\r\n\r\n", b"400")
    await asyncio.to_thread(
        send, b"POST " + path + b" HTTP/1.1\r\n" + head + packed, b"400" if status == 200 else b"403"
    )
    assert [one for one in caplog.records if one.exc_info] == []
    assert len([one for one in caplog.records if one.levelno >= logging.INFO and "Error" in one.message]) < 10


async def other_machines(stack: AsyncExitStack, folder: Path) -> int:
    """The listener for them with what is not asked of it left out; it names the setting itself as a network."""
    machine = SimpleNamespace(
        settings=SimpleNamespace(items=lambda name: (name,)), home=Home(folder), name="pi", id="pi"
    )
    tenants = SimpleNamespace(is_answering=lambda key: False, host=None)
    peer_client = SimpleNamespace(hang_up=partial(asyncio.sleep, 0))
    nothing = SimpleNamespace(now=lambda: None)
    machines = SimpleNamespace(
        trust=SimpleNamespace(now=lambda: SimpleNamespace(context=None)),
        peer_client=SimpleNamespace(now=lambda: peer_client),
        credentials=nothing,
        receiver=nothing,
        pairings=nothing,
        node=machine,
        tenants=tenants,
        peer_store=None,
        peer_events=None,
        callers=None,
        catalogue=None,
        dispatcher=None,
    )
    listening = socket.create_server((HOST, 0))
    listening.setblocking(False)
    runner = await federation.serve(
        cast(Any, SimpleNamespace(machines=machines, egg_transfer=None)), [listening]
    )
    stack.push_async_callback(runner.cleanup)
    return int(listening.getsockname()[1])


async def answer_of(port: int) -> bytes:
    """The first octets that come for a request; none where the caller is turned away."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(b"GET /t HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(100):
            return await reader.read(4)
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("kind", ["phones", "other machines"])
async def test_caller_of_a_network_that_is_not_admitted_is_turned_away(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted = {HOST}
    networks = SimpleNamespace(admits=lambda source: source in admitted)
    named: list[Any] = []
    monkeypatch.setattr(federation, "LocalNetworks", lambda setting: named.append(setting) or networks)
    async with AsyncExitStack() as stack:
        is_phones = kind == "phones"
        port = await (phones(stack, None, networks) if is_phones else other_machines(stack, tmp_path))
        assert await answer_of(port) == b"HTTP", "positive control"
        admitted.clear()
        assert await answer_of(port) == b""
    assert named == ([] if is_phones else [("listen.networks",)])


def refused(limit: AddressLimit, addresses: list[str]) -> int:
    found = 0
    for address in addresses:
        try:
            limit.take(address)
        except RateLimitedError:
            found += 1
    return found


@pytest.mark.parametrize(
    ("addresses", "over"),
    [
        (["192.0.2.7"] * 12, 2),
        ([f"192.0.2.{n}" for n in range(60)], 0),
        ([f"2001:db8::{n:x}" for n in range(60)], 20),
        ([f"fe80::{n:x}%eth0" for n in range(60)], 20),
        ([f"fe80::1%eth{n}" for n in range(60)], 50),  # one address, whatever zone it is written with
        ([f"2001:db8:0:{n:x}::1" for n in range(60)], 0),
        (["2001:db8::1"] * 12, 2),
        ([f"::ffff:192.0.2.{n}" for n in range(60)], 0),
    ],
)
def test_addresses_of_one_ipv6_network_share_a_limit(addresses: list[str], over: int) -> None:
    assert refused(AddressLimit(10, 60), addresses) == over
