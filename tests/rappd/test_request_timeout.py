"""Requests that do not arrive in time are given up; those that do are served meanwhile."""

from __future__ import annotations

import asyncio
import http.client
import json
import select
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import pytest
from fixtures.operator_page import OperatorPage
from fixtures.running_daemon import RunningDaemon

from rappd.daemon.app import Daemon
from rappd.listeners import legacy_listener

HALVES = 600
GIVEN = 10.0
SLACK = 60.0
"""A sweep a second, and a busy machine."""
DRIP = 3.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("late") / "home", LLM_FAKE="1").start()
    yield daemon
    daemon.stop()


def _halves(port: int) -> list[bytes]:
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    chat = b"POST /chat HTTP/1.1\r\n" + host
    return [
        b"",
        b"P",
        chat,
        chat + b"Content-Length: 200\r\n\r\n" + b'{"user_',
        b"GET /healthz HTTP/1.1\r\n" + host,
        b"POST /voice/config HTTP/1.1\r\n" + host + b"Content-Length: 200\r\n\r\n" + b'{"a',
        b"POST /voice/config HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        chat + b"Origin: http://127.0.0.1:1\r\n",
    ]


def _open(port: int, number: int) -> dict[socket.socket, bytes]:
    halves = _halves(port)
    opened = {}
    for index in range(number):
        sent = halves[index % len(halves)]
        connection = socket.create_connection(("127.0.0.1", port), 100)
        connection.sendall(sent)
        opened[connection] = sent
    return opened


def _closed(opened: dict[socket.socket, bytes], until: float) -> dict[bytes, list[float]]:
    """The seconds after which each was closed, by what was sent; those that drip send on."""
    started = time.monotonic()
    waiting, seen = dict(opened), {sent: [] for sent in opened.values()}
    dripped = started
    while waiting and time.monotonic() - started < until:
        if time.monotonic() - dripped > DRIP:
            dripped = time.monotonic()
            for connection, sent in waiting.items():
                if b"\r\n\r\n" in sent:
                    try:
                        connection.send(b" ")
                    except OSError:
                        continue
        for connection in _readable(list(waiting)):
            try:
                while connection.recv(65536):
                    pass
            except OSError:
                pass
            seen[waiting.pop(connection)].append(time.monotonic() - started)
            connection.close()
    for connection in waiting:
        connection.close()
    assert not waiting, f"{len(waiting)} are still open after {until} s: {set(waiting.values())}"
    return seen


def _readable(connections: list[socket.socket]) -> list[socket.socket]:
    poll = select.poll()
    by_number = {connection.fileno(): connection for connection in connections}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(200)]


class Meanwhile(threading.Thread):
    """Honest clients: turns, a slow upload that makes progress, a stream, a connection kept open."""

    def __init__(self, daemon: RunningDaemon) -> None:
        super().__init__()
        self.turns: list[float] = []
        self.problems: list[BaseException] = []
        self._daemon = daemon
        self._over = threading.Event()
        self._others = [threading.Thread(target=self._noted, args=(what,)) for what in (self._upload, self._idle, self._stream)]  # fmt: skip

    def run(self) -> None:
        for other in self._others:
            other.start()
        self._noted(self._talk)
        for other in self._others:
            other.join()

    def end(self) -> None:
        self._over.set()
        self.join(100)
        assert not self.problems, self.problems

    def _noted(self, what: Callable[[], None]) -> None:
        try:
            what()
        except BaseException as problem:
            self.problems.append(problem)

    def _talk(self) -> None:
        while not self._over.wait(0.5):
            started = time.monotonic()
            assert self._daemon.chat("hello")["response"] == "fake-llm: hello"
            self.turns.append(time.monotonic() - started)

    def _upload(self) -> None:
        """A body that takes 13 s, slower than anything on one machine, and is never still for long."""
        body = json.dumps({"user_input": "x" * 32_000, "_password": "open"}).encode()
        connections = {}
        for path in ("/chat", "/voice/config"):
            connections[path] = http.client.HTTPConnection("127.0.0.1", self._daemon.port, timeout=100)
            connections[path].putrequest("POST", path)
            connections[path].putheader("Content-Length", str(len(body)))
            connections[path].endheaders()
        size = len(body) // 13 + 1
        for start in range(0, len(body), size):
            for connection in connections.values():
                connection.send(body[start : start + size])
            time.sleep(1)
        for path, connection in connections.items():
            assert connection.getresponse().status == 200, path
            connection.close()

    def _idle(self) -> None:
        asked = {"/healthz": ("GET", None), "/chat": ("POST", b'{"user_input":"hi"}')}
        kept = {
            path: http.client.HTTPConnection("127.0.0.1", self._daemon.port, timeout=100) for path in asked
        }
        for wait in (GIVEN + 3, 0):
            for path, (method, body) in asked.items():
                kept[path].request(method, path, body)
                connection = kept[path].sock
                assert kept[path].getresponse().read()
                assert kept[path].sock is connection, "it was kept open"
            time.sleep(wait)
        for one in kept.values():
            one.close()

    def _stream(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._daemon.port, timeout=100)
        headers = OperatorPage(self._daemon).headers("GET", "/activity/stream")
        connection.request("GET", "/activity/stream", headers=headers)
        response = connection.getresponse()
        assert response.status == 200
        time.sleep(GIVEN + 3)
        assert self._daemon.chat("for the stream")["response"]
        while b"for the stream" not in (line := response.readline()):
            assert line
        connection.close()


@pytest.mark.timeout(900)
def test_half_requests_are_closed_while_others_are_served(daemon: RunningDaemon) -> None:
    meanwhile = Meanwhile(daemon)
    meanwhile.start()
    opened = _open(daemon.port, HALVES)
    seen = _closed(opened, GIVEN + SLACK + 4)
    meanwhile.end()
    late = [when for times in seen.values() for when in times]
    print(f"{len(late)} half requests closed {min(late):.1f} to {max(late):.1f} s after the last was opened")
    print(f"{len(meanwhile.turns)} turns meanwhile, the slowest in {max(meanwhile.turns) * 1000:.0f} ms")
    assert len(late) == HALVES
    assert min(late) > GIVEN - 5, "the first were opened earlier than the last"
    assert max(late) < GIVEN + SLACK
    assert statistics.median(meanwhile.turns) < GIVEN - 5, "turns waited for those that were closed"


def test_half_request_is_told_why_it_was_closed(daemon: RunningDaemon) -> None:
    opened = {
        socket.create_connection(("127.0.0.1", daemon.port), 60): half for half in _halves(daemon.port)[2:6]
    }
    for connection, half in opened.items():
        connection.sendall(half)
    for connection, half in opened.items():
        with connection:
            answer = b"".join(iter(partial(connection.recv, 65536), b""))
        assert answer.startswith(b"HTTP/1.1 408 "), half
        assert json.loads(answer.split(b"\r\n\r\n")[1])["code"] == "too_slow"


def test_half_requests_at_twin_and_control_are_closed(daemon: RunningDaemon) -> None:
    minted = daemon.post("/twins", {"name": "Half"}, control=True)
    assert minted.status < 300, minted.body
    booted = daemon.post("/twins/Half/boot", {}, control=True)
    assert booted.status == 200, booted.body
    opened = _open(booted.json()["port"], 16)
    control = socket.socket(socket.AF_UNIX)
    control.connect(str(daemon.home / "rappd.sock"))
    control.sendall(b"GET /heal")
    opened[control] = b"GET /heal"
    seen = _closed(opened, GIVEN + SLACK + 4)
    assert max(when for times in seen.values() for when in times) < GIVEN + SLACK


async def test_half_requests_at_the_legacy_listener_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    monkeypatch.setattr(legacy_listener, "_listeners", lambda own: [listener])
    door = legacy_listener.LegacyListener(cast(Daemon, None))
    await door.open(["192.0.2.1"], [], own=[])
    try:
        port = listener.getsockname()[1]
        opened = await asyncio.to_thread(_open, port, 16)
        seen = await asyncio.to_thread(_closed, opened, GIVEN + SLACK + 4)
    finally:
        await door.close()
    assert max(when for times in seen.values() for when in times) < GIVEN + SLACK
