"""The hosts that declared needs admit, as a table, and the proxy for them: foreign requests, the owner's own proxy."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from agents.runtimes.python.network.host_proxy import HostProxy, Upstream
from agents.runtimes.python.network.host_rules import HostRules

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


@pytest.mark.parametrize(
    ("servers", "host", "port", "admitted"),
    [
        pytest.param(["example.com"], "example.com", 443, True, id="name"),
        pytest.param(["example.com"], "EXAMPLE.com.", 80, True, id="spelled otherwise"),
        pytest.param(["example.com"], "example.com", 22, False, id="no port of the web"),
        pytest.param(["example.com:22"], "example.com", 22, True, id="named port"),
        pytest.param(["example.com:22"], "example.com", 443, False, id="named port alone"),
        pytest.param(["example.com"], "www.example.com", 443, False, id="below a name"),
        pytest.param(["*.example.com"], "a.b.example.com", 443, True, id="below a star"),
        pytest.param(["*.example.com"], "example.com", 443, False, id="star itself"),
        pytest.param(["*.example.com"], "evilexample.com", 443, False, id="star without a dot"),
        pytest.param(["*"], "anything.org", 443, True, id="every host"),
        pytest.param(["10.1.2.3:8080"], "10.1.2.3", 8080, True, id="address"),
        pytest.param(["[::1]:8080"], "::1", 8080, True, id="address of IPv6"),
        pytest.param([], "example.com", 443, False, id="none"),
    ],
)
def test_admitted_hosts(servers: list[str], host: str, port: int, admitted: bool) -> None:
    assert HostRules(servers).admits(host, port) is admitted


@pytest.mark.parametrize(
    ("servers", "host", "address", "allowed"),
    [
        pytest.param(["example.com"], "example.com", "93.184.215.14", True, id="public"),
        pytest.param(["example.com"], "example.com", "127.0.0.1", False, id="name that leads here"),
        pytest.param(["example.com"], "example.com", "192.168.1.4", False, id="name that leads home"),
        pytest.param(["example.com"], "example.com", "169.254.169.254", False, id="cloud's metadata"),
        pytest.param(["example.com"], "example.com", "::ffff:10.0.0.1", False, id="mapped"),
        pytest.param(["example.com"], "example.com", "64:ff9b::a00:1", False, id="translated"),
        pytest.param(["*"], "192.168.1.4", "192.168.1.4", False, id="every host is public"),
        pytest.param(["192.168.1.4"], "192.168.1.4", "192.168.1.4", True, id="named address"),
        pytest.param(["localhost:1"], "localhost", "127.0.0.1", True, id="localhost"),
        pytest.param(["localhost:1"], "localhost", "10.0.0.1", False, id="localhost elsewhere"),
        pytest.param(["nas.local"], "nas.local", "192.168.1.4", True, id="name at home"),
        pytest.param(["nas.local"], "nas.local", "127.0.0.1", False, id="name at home that leads here"),
        pytest.param(["*"], "nas.local", "192.168.1.4", False, id="every host and a name at home"),
    ],
)
def test_allowed_addresses(servers: list[str], host: str, address: str, allowed: bool) -> None:
    assert HostRules(servers).allows(host, address) is allowed
