"""Strangers who ask too often, too much, too slowly, or not in HTTP; a paired machine goes on meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from tests.rappd.federation.conftest import Node, make_node
from tests.rappd.federation.plain_machine import JSON, PlainMachine


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = make_node(tmp_path_factory.mktemp("strangers"), LLM_FAKE="1").start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


def still_works(mine: PlainMachine, connection: Any = None) -> None:
    got = mine.post(mine.help(), on=connection)
    assert (got.status, got.data["result"]) == (200, "it is now")


def test_hello_flood_is_limited_and_peer_is_answered(node: Node, mine: PlainMachine) -> None:
    stranger = node.stranger()
    kept = mine.connect()
    still_works(mine, kept)
    statuses: list[int] = []
    stop = threading.Event()

    def flood() -> None:
        connection = stranger.connect(certificate=False)
        while not stop.is_set():
            with suppress(OSError):
                got = stranger.post(stranger.envelope("HELLO", {}, to="broadcast"), on=connection)
                statuses.append(got.status)
                if got.status == 429:
                    assert (got.verb, got.data["reason"]) == ("ERROR", "too_many")
        connection.close()

    floods = [threading.Thread(target=flood) for _ in range(3)]
    for one in floods:
        one.start()
    started = time.monotonic()
    for _ in range(50):
        still_works(mine, kept)
    stop.set()
    for one in floods:
        one.join(100)
    kept.close()
    minutes = 1 + (time.monotonic() - started) // 60
    assert statuses.count(200) <= 60 * minutes
    assert statuses.count(429) > 10


def test_endless_connections_are_limited_and_peer_enters(node: Node, mine: PlainMachine) -> None:
    host, _, port = node.address.rpartition(":")
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((host, int(port)), 10)) for _ in range(150)]
        still_works(mine)
        kept = mine.connect()
        still_works(mine, kept)
        ended = 0
        for one in opened:
            one.settimeout(0.01)
            with suppress(TimeoutError):
                ended += one.recv(1) == b""
        assert ended >= 150 - 66
        still_works(mine, kept)
        kept.close()


def test_a_strangers_slow_request_ends_and_a_peers_is_answered(node: Node, mine: PlainMachine) -> None:
    stranger = node.stranger()
    host, _, port = node.address.rpartition(":")
    head = f"POST /envelopes HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: 1000\r\n\r\n"
    raw = socket.create_connection((host, int(port)), 60)
    with stranger.context(certificate=False).wrap_socket(raw) as line:
        line.sendall(head.encode())
        ended = False
        until = time.monotonic() + 100
        while not ended and time.monotonic() < until:
            try:
                line.sendall(b" ")
                line.settimeout(1.0)
                with suppress(TimeoutError):
                    ended = line.recv(4096) == b"" or ended
            except OSError:
                ended = True
        assert ended
    still_works(mine)


def test_unauthenticated_and_peers_have_send_limits(node: Node, mine: PlainMachine) -> None:
    stranger = node.stranger()
    body = b'{"x":"' + b"x" * (300 << 10) + b'"}'
    got = stranger.post(body, certificate=False)
    assert (got.status, got.verb, got.data["reason"]) == (413, "ERROR", "too_large")
    got = mine.post(body)
    assert (got.status, got.data["reason"]) == (400, "malformed")
    got = mine.post(b"x" * ((1 << 20) + 2))
    assert (got.status, got.data["reason"]) == (413, "too_large")
    got = mine.request("POST", "/envelopes/batch", b"[" + b" " * (6 << 20) + b"]")
    assert (got.status, got.data["reason"]) == (413, "too_large")
    got = mine.request("POST", "/envelopes/batch", [mine.help()] * 101)
    assert (got.status, got.data["reason"]) == (400, "malformed")
    chunked = (
        (
            f"POST /envelopes HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        ).encode()
        + b"10000\r\n"
        + b" " * 65536
        + b"\r\n"
    )
    found = answer_to(stranger, chunked + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 5, certificate=False)
    assert b" 413 " in found.split(b"\r\n")[0]
    still_works(mine)


HELLO = (
    b'{"id":"550e8400-e29b-41d4-a716-446655440000","from":"a_b","to":"broadcast","verb":"HELLO","data":{}}'
)


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length : 5\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"X: a\r\n b\r\nTransfer-Encoding:\x0bchunked\r\n",
        b"X\x00: y\r\nContent-Length: 0\r\n",
    ],
)
def test_ambiguous_requests_are_refused(node: Node, mine: PlainMachine, framing: bytes) -> None:
    """Bytes behind such a request are never taken for a second one."""
    smuggled = b"POST /envelopes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + (
        b"Content-Length: %d\r\n\r\n" % len(HELLO) + HELLO
    )
    first = b"POST /envelopes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    found = answer_to(mine, first + framing + b"\r\n0\r\n\r\n" + smuggled)
    assert found.count(b"HTTP/1.1 ") <= 1
    assert b'"verb":"HELLO"' not in found
    assert b"Traceback" not in found
    if found:
        assert found.split(b" ")[1][:1] == b"4"
    still_works(mine)


def answer_to(machine: PlainMachine, octets: bytes, *, certificate: bool = True) -> bytes:
    with suppress(OSError):
        return machine.raw(octets, certificate=certificate, timeout=3)
    return b""


@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x16\x03\x01\x00\x00",
        b"\r\n\r\n\r\n",
        b"A" * 100_000,
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /line HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: no\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_request(node: Node, mine: PlainMachine, octets: bytes) -> None:
    found = answer_to(mine, octets)
    assert b"Traceback" not in found
    if found:
        assert found.split(b" ")[1][:1] == b"4"
    still_works(mine)
    assert "Traceback" not in node.daemon.log


def test_other_paths_and_methods_tell_nothing(node: Node, mine: PlainMachine) -> None:
    for method, path in (
        ("GET", "/"),
        ("GET", "/health"),
        ("POST", "/chat"),
        ("GET", "/peers"),
        ("POST", "/tokens"),
        ("GET", "/envelopes"),
        ("PUT", "/envelopes"),
        ("DELETE", f"/envelopes/{'0' * 8}"),
        ("GET", "/agents/../envelopes"),
        ("TRACE", "/line"),
    ):
        got = mine.request(method, path)
        assert got.status in (400, 404, 405)
        assert set(got.json) == {"error", "do", "code"}
    assert mine.request("GET", "/line").status in (400, 426)
    assert mine.request("GET", "/line", certificate=False).status == 401
