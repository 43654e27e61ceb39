"""Plain turns go a short way through the door; nobody at the other end can tell, whatever else they send."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from daemon_under_test import RunningDaemon, agent_source
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


class Line:
    """One connection, written to byte by byte if need be."""

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
        """(status, headers, JSON or text); status 0 when the door closed the connection."""
        start = self._read.readline().split()
        if not start:
            return 0, {}, None
        headers = {}
        while (line := self._read.readline().strip().decode()) != "":
            name, _, value = line.partition(": ")
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
def _line(daemon: RunningDaemon) -> Iterator[Line]:
    line = Line(daemon)
    try:
        yield line
    finally:
        line.close()


def test_turns_follow_each_other_on_one_connection(fake_daemon: RunningDaemon) -> None:
    with _line(fake_daemon) as line:
        for text in ("one", "two", "three"):
            line.send(line.chat(text, "Connection: keep-alive", "User-Agent: x"))
            status, headers, body = line.answer()
            assert (status, body["response"]) == (200, f"fake-llm: {text}")
            assert headers["content-type"] == "application/json"
            assert headers["date"].endswith(" GMT")


def test_requests_that_are_sent_ahead_are_answered_in_order(fake_daemon: RunningDaemon) -> None:
    with _line(fake_daemon) as line:
        line.send(b"".join(line.chat(str(number)) for number in range(5)))
        assert [line.says() for _ in range(5)] == [f"fake-llm: {number}" for number in range(5)]
        line.send(line.chat("a"))
        line.send(line.chat("b"))
        assert [line.says(), line.says()] == ["fake-llm: a", "fake-llm: b"]


def test_a_request_may_come_in_pieces(fake_daemon: RunningDaemon) -> None:
    with _line(fake_daemon) as line:
        whole = line.chat("piecemeal")
        head, _, body = whole.partition(b"\r\n\r\n")
        for piece in (head + b"\r\n\r\n", body[:3], body[3:]):
            line.send(piece)
        assert line.says() == "fake-llm: piecemeal"
        for start in range(0, len(whole), 7):
            line.send(whole[start : start + 7])
        assert line.says() == "fake-llm: piecemeal"


def test_a_connection_may_ask_for_other_things_in_between(fake_daemon: RunningDaemon) -> None:
    with _line(fake_daemon) as line:
        line.send(line.chat("before"))
        assert line.says() == "fake-llm: before"
        line.send(f"GET /healthz HTTP/1.1\r\nHost: {line.host}\r\n\r\n".encode())
        assert line.answer()[2] == {"status": "ok"}
        line.send(line.chat("after"))
        assert line.says() == "fake-llm: after"


def test_a_body_in_chunks_is_a_body(fake_daemon: RunningDaemon) -> None:
    with _line(fake_daemon) as line:
        body = b'{"user_input":"chunks"}'
        head = f"POST /chat HTTP/1.1\r\nHost: {line.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        line.send(head.encode() + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        assert line.says() == "fake-llm: chunks"


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
def test_odd_requests_are_refused(
    fake_daemon: RunningDaemon, fields: list[str], host: str, status: int, first: bool
) -> None:
    with _line(fake_daemon) as line:
        if not first:
            line.send(line.chat("hello"))
            assert line.says() == "fake-llm: hello"
        line.send(line.chat("x", *fields, host=host))
        assert line.answer()[0] == status


def test_a_client_that_asks_for_the_end_gets_it(fake_daemon: RunningDaemon) -> None:
    for start, fields in (("POST /chat HTTP/1.1", ["Connection: close"]), ("POST /chat HTTP/1.0", [])):
        with _line(fake_daemon) as line:
            line.send(line.chat("bye", *fields, start=start))
            assert line.says() == "fake-llm: bye"
            assert line.answer()[0] == 0


def test_a_large_body_is_bounded_after_a_turn_too(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_BODY_MB="1").start()
    with _line(daemon) as line:
        line.send(line.chat("x" * (1 << 19)))
        assert line.says() == f"fake-llm: {'x' * (1 << 19)}"
    with _line(daemon) as line:
        line.send(line.chat("small"))
        assert line.says() == "fake-llm: small"
        line.send(line.chat("x" * (1 << 20)))
        status, _, body = line.answer()
        assert (status, body["code"]) == (413, "too_large")


def _slow(daemon: RunningDaemon, seconds: float) -> None:
    daemon.environment["MARK"] = str(daemon.data / "begun")
    body = f"import os, time\n        open(os.environ['MARK'], 'w').close()\n        time.sleep({seconds})"
    daemon.drop("aaa_agent.py", agent_source("Aaa", f"{body}\n        return 'slept'"))
    daemon.start()


def test_a_turn_under_way_is_answered_before_the_daemon_ends(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    _slow(daemon, 1.0)
    with _line(daemon) as line, _line(daemon) as idle:
        line.send(line.chat("wait for me"))
        daemon.wait_for((daemon.data / "begun").exists, 20, "the agent to start")
        stopping = threading.Thread(target=daemon.stop)
        stopping.start()
        status, _, body = line.answer()
        assert (status, body["agent_logs"]) == (200, "[Aaa] slept")
        assert line.answer()[0] == 0
        assert idle.answer()[0] == 0
        stopping.join()


def test_a_client_that_leaves_does_not_stop_its_turn(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    _slow(daemon, 0.5)
    with _line(daemon) as line:
        line.send(line.chat("never mind"))
        daemon.wait_for((daemon.data / "begun").exists, 20, "the agent to start")
    daemon.wait_for(lambda: len(_events(daemon)) == 4, 20, "the record of the turn")
    assert daemon.chat("still there")["response"] == "fake-llm: still there"


def _events(daemon: RunningDaemon) -> list[Any]:
    found = daemon.get("/activity?limit=50", control=True).json()
    events: list[Any] = found["events"]
    return events


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 60), max_size=8), st.sampled_from(["", "Origin: null", "X-Other: 1"]))
def test_however_a_request_is_cut_it_is_the_same(
    fake_daemon: RunningDaemon, cuts: list[int], field: str
) -> None:
    with _line(fake_daemon) as line:
        left = line.chat("cut", *[field] if field else [])
        for cut in cuts:
            line.send(left[:cut])
            left = left[cut:]
        line.send(left)
        assert line.answer()[0] == (403 if field.startswith("Origin") else 200)
