"""``POST /chat`` on raw connections: keep-alive, pipelining, pieces, malformed requests, shutdown."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


class Connection:
    """A raw client connection."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.host = f"127.0.0.1:{daemon.port}"
        self._socket = socket.create_connection(("127.0.0.1", daemon.port), 20)
        self._read = self._socket.makefile("rb")

    def send(self, octets: bytes) -> None:
        self._socket.sendall(octets)

    def chat(self, text: str, *fields: str, start: str = "POST /chat HTTP/1.1", host: str = "") -> bytes:
        body = json.dumps({"user_input": text}).encode()
        lines = [start, f"Host: {host or self.host}", f"Content-Length: {len(body)}", *fields, "", ""]
        return "\r\n".join(lines).encode() + body

    def answer(self) -> tuple[int, dict[str, str], Any]:
        """(status, headers, JSON or text); status 0 when the daemon closed the connection."""
        start = self._read.readline().split()
        if not start:
            return 0, {}, None
        headers = {}
        while (connection := self._read.readline().strip().decode()) != "":
            name, _, value = connection.partition(": ")
            headers[name.lower()] = value
        body = self._read.read(int(headers["content-length"]))
        return (
            int(start[1]),
            headers,
            json.loads(body) if "json" in headers["content-type"] else body.decode(),
        )

    def says(self) -> str:
        status, _, body = self.answer()
        assert status == 200
        return str(body["response"])

    def close(self) -> None:
        self._read.close()
        self._socket.close()


@contextmanager
def _connect(daemon: RunningDaemon) -> Iterator[Connection]:
    connection = Connection(daemon)
    try:
        yield connection
    finally:
        connection.close()


def test_chat_keep_alive_serves_turns_in_a_row(fake_daemon: RunningDaemon) -> None:
    with _connect(fake_daemon) as connection:
        for text in ("one", "two", "three"):
            connection.send(connection.chat(text, "Connection: keep-alive", "User-Agent: x"))
            status, headers, body = connection.answer()
            assert (status, body["response"]) == (200, f"fake-llm: {text}")
            assert headers["content-type"] == "application/json"
            assert headers["date"].endswith(" GMT")


def test_chat_pipelined_requests_are_answered_in_order(fake_daemon: RunningDaemon) -> None:
    with _connect(fake_daemon) as connection:
        connection.send(b"".join(connection.chat(str(number)) for number in range(5)))
        assert [connection.says() for _ in range(5)] == [f"fake-llm: {number}" for number in range(5)]
        connection.send(connection.chat("a"))
        connection.send(connection.chat("b"))
        assert [connection.says(), connection.says()] == ["fake-llm: a", "fake-llm: b"]


def test_chat_request_in_pieces_is_answered(fake_daemon: RunningDaemon) -> None:
    with _connect(fake_daemon) as connection:
        whole = connection.chat("piecemeal")
        head, _, body = whole.partition(b"\r\n\r\n")
        for piece in (head + b"\r\n\r\n", body[:3], body[3:]):
            connection.send(piece)
        assert connection.says() == "fake-llm: piecemeal"
        for start in range(0, len(whole), 7):
            connection.send(whole[start : start + 7])
        assert connection.says() == "fake-llm: piecemeal"


def test_connection_serves_chat_and_other_paths(fake_daemon: RunningDaemon) -> None:
    with _connect(fake_daemon) as connection:
        connection.send(connection.chat("before"))
        assert connection.says() == "fake-llm: before"
        connection.send(f"GET /healthz HTTP/1.1\r\nHost: {connection.host}\r\n\r\n".encode())
        assert connection.answer()[2] == {"status": "ok"}
        connection.send(connection.chat("after"))
        assert connection.says() == "fake-llm: after"


def test_chat_chunked_body_is_read(fake_daemon: RunningDaemon) -> None:
    with _connect(fake_daemon) as connection:
        body = b'{"user_input":"chunks"}'
        head = f"POST /chat HTTP/1.1\r\nHost: {connection.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.send(head.encode() + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        assert connection.says() == "fake-llm: chunks"


@pytest.mark.parametrize("first", [True, False], ids=["at first", "after a turn"])
@pytest.mark.parametrize(
    ("fields", "host", "status"),
    [
        (["Origin: https://evil.example"], "", 403),
        ([], "evil.example", 403),
        (["Host: evil.example"], "", 400),
        (["Content-Length: 3"], "", 400),
        (["content-length: 3"], "", 400),
        (["Transfer-Encoding: chunked"], "", 400),
        (["User-Agent: x\x00y"], "", 400),
        (["User-Agent : x"], "", 400),
        (["User-Agent: x\rContent-Length: 3"], "", 400),
    ],
)
def test_chat_malformed_request_is_refused(
    fake_daemon: RunningDaemon, fields: list[str], host: str, status: int, first: bool
) -> None:
    with _connect(fake_daemon) as connection:
        if not first:
            connection.send(connection.chat("hello"))
            assert connection.says() == "fake-llm: hello"
        connection.send(connection.chat("x", *fields, host=host))
        assert connection.answer()[0] == status


def test_chat_connection_close_is_honoured(fake_daemon: RunningDaemon) -> None:
    for start, fields in (("POST /chat HTTP/1.1", ["Connection: close"]), ("POST /chat HTTP/1.0", [])):
        with _connect(fake_daemon) as connection:
            connection.send(connection.chat("bye", *fields, start=start))
            assert connection.says() == "fake-llm: bye"
            assert connection.answer()[0] == 0


def test_chat_body_over_the_limit_gets_413(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_BODY_MB="1").start()
    with _connect(daemon) as connection:
        connection.send(connection.chat("x" * (1 << 19)))
        assert connection.says() == f"fake-llm: {'x' * (1 << 19)}"
    with _connect(daemon) as connection:
        connection.send(connection.chat("small"))
        assert connection.says() == "fake-llm: small"
        connection.send(connection.chat("x" * (1 << 20)))
        status, _, body = connection.answer()
        assert (status, body["code"]) == (413, "too_large")


def _slow(daemon: RunningDaemon, seconds: float) -> None:
    daemon.environment["MARK"] = str(daemon.data / "begun")
    body = f"import os, time\n        open(os.environ['MARK'], 'w').close()\n        time.sleep({seconds})"
    daemon.drop("aaa_agent.py", agent_source("Aaa", f"{body}\n        return 'slept'"))
    daemon.start()


def test_shutdown_answers_the_running_turn_first(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    _slow(daemon, 1.0)
    with _connect(daemon) as connection, _connect(daemon) as idle:
        connection.send(connection.chat("wait for me"))
        daemon.wait_for((daemon.data / "begun").exists, what="the agent to start")
        stopping = threading.Thread(target=daemon.stop)
        stopping.start()
        status, _, body = connection.answer()
        assert (status, body["agent_logs"]) == (200, "[Aaa] slept")
        assert connection.answer()[0] == 0
        assert idle.answer()[0] == 0
        stopping.join()


def test_chat_client_disconnect_does_not_stop_the_turn(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    _slow(daemon, 0.5)
    with _connect(daemon) as connection:
        connection.send(connection.chat("never mind"))
        daemon.wait_for((daemon.data / "begun").exists, what="the agent to start")
    daemon.wait_for(lambda: len(_events(daemon)) == 4, what="the record of the turn")
    assert daemon.chat("still there")["response"] == "fake-llm: still there"


def _events(daemon: RunningDaemon) -> list[Any]:
    found = daemon.get("/activity?limit=50", control=True).json()
    events: list[Any] = found["events"]
    return events


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 60), max_size=8), st.sampled_from(["", "Origin: null", "X-Other: 1"]))
def test_chat_request_split_anywhere_gives_one_result(
    fake_daemon: RunningDaemon, cuts: list[int], field: str
) -> None:
    with _connect(fake_daemon) as connection:
        left = connection.chat("cut", *[field] if field else [])
        for cut in cuts:
            connection.send(left[:cut])
            left = left[cut:]
        connection.send(left)
        assert connection.answer()[0] == (403 if field.startswith("Origin") else 200)
