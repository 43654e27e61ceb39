"""The proxy for declared hosts, by itself: foreign requests, and the owner's own proxy before it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from agents.runtimes.python.network.host_proxy import HostProxy, Upstream

Ask = Callable[[bytes], Awaitable[bytes]]


@pytest.fixture
async def upstream() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that answers itself, its address, and what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head)
        known = b"good.example" in head
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if known else b"HTTP/1.1 407 Who?\r\n\r\n")
        if known:
            writer.write(b"reached: " + await reader.read(100))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://me:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    server.close()


@pytest.fixture
async def ask(upstream: tuple[str, list[bytes]]) -> AsyncIterator[Ask]:
    found = Upstream.of({"HTTPS_PROXY": upstream[0], "no_proxy": "near.example"})
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    servers = ["*.example", "localhost", "10.1.2.3"]
    proxy = HostProxy(servers, lambda name, given: None, lambda port: port == 443, found)
    await proxy.serve(listening)

    async def perform(request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(), 100)
        writer.close()
        return answer

    yield perform
    proxy.close()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", b"400", id="no address"),
        pytest.param(b"GET ftp://a.example/ HTTP/1.1\r\n\r\n", b"400", id="another scheme"),
        pytest.param(b"CONNECT 0x7f000001:80 HTTP/1.1\r\n\r\n", b"400", id="address as a number"),
        pytest.param(b"CONNECT 127.1:80 HTTP/1.1\r\n\r\n", b"400", id="short address"),
        pytest.param(b"CONNECT [::1]:80 HTTP/1.1\r\n\r\n", b"403", id="this machine"),
        pytest.param(b"CONNECT other.org:443 HTTP/1.1\r\n\r\n", b"403", id="not declared"),
        pytest.param(b"CONNECT a.example:22 HTTP/1.1\r\n\r\n", b"403", id="another port"),
        pytest.param(b"CONNECT localhost:443 HTTP/1.1\r\n\r\n", b"403", id="rappd's own port"),
        pytest.param(b"GET http://a.example:99999/ HTTP/1.1\r\n\r\n", b"", id="no port"),
        pytest.param(b"A" * 100_000, b"", id="endless head"),
    ],
)
async def test_foreign_requests_are_refused(ask: Ask, request_: bytes, status: bytes) -> None:
    answer = await ask(request_)
    assert answer.split(b" ", 2)[1:2] == ([status] if status else []), answer[:200]


async def test_owners_proxy_is_asked_for_public_names(ask: Ask, upstream: tuple[str, list[bytes]]) -> None:
    tunnel = await ask(b"CONNECT good.example:443 HTTP/1.1\r\n\r\nhello")
    assert tunnel.startswith(b"HTTP/1.1 200") and tunnel.endswith(b"reached: hello")
    plain = await ask(b"GET http://good.example/a?b HTTP/1.1\r\nHost: good.example\r\nProxy-X: 1\r\n\r\n")
    assert plain == b"reached: GET /a?b HTTP/1.1\r\nConnection: close\r\nHost: good.example\r\n\r\n"
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0" in upstream[1][0]
    assert (await ask(b"CONNECT bad.example:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 502")
    many = len(upstream[1])
    await ask(b"CONNECT near.example:443 HTTP/1.1\r\n\r\n")
    assert len(upstream[1]) == many, "what the owner reaches without it"
