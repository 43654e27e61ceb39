"""The command line while its daemon starts, stops and dies: an answer, or plainly that there is none."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import Terminal

from rappd.control_client import ConnectionLostError, ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConflictError, NotReadyError, NotRunningError
from rappd.features.operation_paths import OPERATION_PATHS

ROUNDS = 8
SLOW = 'import time; time.sleep(60); return "at last"'
ENDED = "rappd ended before it answered."


class Callers:
    """Several programs that ask without pause, each as the command line does; counts what they were told."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._over = threading.Event()
        self.told: dict[str, Counter[str]] = {}
        self._ways: dict[str, Callable[[ControlClient], Any]] = {
            "question": lambda daemon: daemon.get("/operator/status"),
            "order": lambda daemon: daemon.post("/operator/key"),
            "stream": self._stream,
        }

    def answers(self, way: str) -> int:
        return self.told[way]["answered"]

    @contextmanager
    def asking(self) -> Iterator[None]:
        threads = []
        for way in self._ways:
            self.told[way] = Counter()
            threads += [threading.Thread(target=self._ask, args=(way,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(100)

    def _ask(self, way: str) -> None:
        while not self._over.is_set():
            try:
                self._ways[way](ControlClient(self._home))
            except Exception as problem:
                self.told[way][f"{type(problem).__name__}: {problem}"] += 1
                time.sleep(0.005)  # nobody is there for a while
            else:
                self.told[way]["answered"] += 1

    def _stream(self, daemon: ControlClient) -> None:
        *_, last = daemon.events("/chat/stream", {"user_input": "hi"})
        assert last["type"] == "done", last


@pytest.mark.timeout(900)
@pytest.mark.own_process
def test_caller_gets_an_answer_or_not_found(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    chance = random.Random(11)
    daemon = make_daemon(LLM_FAKE="1")
    callers = Callers(Home(daemon.home))
    with callers.asking():
        for round_ in range(ROUNDS):
            before = {way: callers.answers(way) for way in callers.told}
            daemon.start()
            for way, count in before.items():
                daemon.wait_for(
                    lambda way=way, count=count: callers.answers(way) > count, what=f"an answer, {way}"
                )
            time.sleep(chance.uniform(0, 0.2))  # the moment is what the test is about
            if round_ % 2:
                daemon.stop()
            else:
                daemon.kill()
    nobody, ended = "NotRunningError: rappd isn't running here.", f"ConnectionLostError: {ENDED}"
    stopped = {"Answered: Stopped.", "Answered: This machine is stopping."}
    assert set(callers.told["question"]) <= {"answered", nobody}, "a question is simply asked again"
    assert set(callers.told["order"]) <= {"answered", nobody, ended}
    assert set(callers.told["stream"]) <= {"answered", nobody, ended, *stopped}


@pytest.mark.own_process
def test_an_answer_that_breaks_off_is_told(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("aaa_agent.py", agent_source("Aaa", SLOW))
    daemon.start()
    events = ControlClient(Home(daemon.home)).events("/chat/stream", {"user_input": "hi"})
    assert next(events)["type"] == "call"
    daemon.kill()
    with pytest.raises(ConnectionLostError, match=ENDED):
        list(events)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.own_process
def test_a_talk_whose_daemon_dies_says_so(make_daemon: Callable[..., RunningDaemon], as_json: bool) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("aaa_agent.py", agent_source("Aaa", SLOW))
    daemon.start()
    talk = Terminal(daemon, "chat", "hi", *(["--json"] if as_json else []))
    daemon.wait_for(lambda: "Aaa" in json.dumps(daemon.get("/health").json()), what="the agent")
    daemon.wait_for(
        lambda: (
            daemon.request("GET", "/operator/status", control=True).status == 200
            and "rappd_turns_running 1.0" in daemon.get("/metrics").body.decode()
        ),
        what="the turn to be under way",
    )
    daemon.kill()
    ended = talk.to_end()
    assert ended.code == 1
    if as_json:
        assert json.loads(ended.lines[-1])["code"] == "gone"
    else:
        assert f"✗ {ENDED.rstrip('.')}" in ended.text
        assert "→ rappd status, then ask again" in ended.text


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[tuple[Home, socket.socket]]:
    """A home whose control socket has more callers than anybody has taken in."""
    home = Home(tmp_path / "home")
    home.create()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(home.socket))
        listener.listen(0)
        waiting: list[socket.socket] = []
        try:
            while True:
                waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                waiting[-1].setblocking(False)
                try:
                    waiting[-1].connect(str(home.socket))
                except BlockingIOError:
                    break
            yield home, listener
        finally:
            for one in waiting:
                one.close()


def test_a_crowded_daemon_is_not_taken_for_none(crowded: tuple[Home, socket.socket]) -> None:
    home, _ = crowded
    assert ControlClient(home, timeout=0.1).running()
    with pytest.raises(NotReadyError, match="did not answer"):
        ControlClient(home, timeout=0.1).get("/health")


def test_a_crowded_daemon_is_waited_for(crowded: tuple[Home, socket.socket]) -> None:
    home, listener = crowded
    found: list[Any] = []
    asking = threading.Thread(target=lambda: found.append(ControlClient(home, timeout=100).get("/health")))
    asking.start()
    body = b'{"status": "ok"}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    while asking.is_alive():
        listener.settimeout(0.2)
        try:
            caller = listener.accept()[0]
        except TimeoutError:
            continue
        with caller:
            caller.settimeout(3.0)
            try:
                if caller.recv(4096).startswith(b"GET /health"):
                    caller.sendall(head % len(body) + body)
            except TimeoutError:
                pass  # one of the crowd, which says nothing
    assert found == [{"status": "ok"}]


def test_without_a_daemon_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError):
        ControlClient(Home(tmp_path)).get("/health")


@pytest.mark.parametrize("way", [("GET", "/of-tomorrow"), ("DELETE", "/health")], ids=["path", "method"])
def test_daemon_of_another_version_is_to_be_started_anew(
    fake_daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, way: tuple[str, str]
) -> None:
    monkeypatch.setitem(OPERATION_PATHS, "peers.list", way)
    with pytest.raises(ConflictError, match="is of another version") as refused:
        ControlClient(Home(fake_daemon.home)).do("peers.list")
    assert refused.value.do == "rappd stop, then rappd start"
