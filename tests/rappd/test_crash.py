"""Processes killed at any moment: what was answered stays answered, and the next start is clean."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import lives

from agents.workers.process_tree import children, descendants

TALKERS = 4
ROUNDS = 8


class Load:
    """Several visitors who talk without pause until told to stop. Knows every answer that was given."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.daemon = daemon
        self.answered: dict[str, dict[str, Any]] = {}
        self.unanswered: list[str] = []
        self.refused: list[bytes] = []
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @contextlib.contextmanager
    def talking(self) -> Iterator[None]:
        self._stop.clear()
        self._threads = [threading.Thread(target=self._talk, args=(f"talk {n}",)) for n in range(TALKERS)]
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(60)

    def has(self, answers: int) -> bool:
        return len(self.answered) >= answers

    def ask(self, turn: str, session: str = "again") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=60)
        try:
            body = {"user_input": f"turn {turn}", "session_id": session, "turn_id": turn}
            connection.request("POST", "/chat", json.dumps(body))
            response = connection.getresponse()
            response.content = response.read()  # type: ignore[attr-defined]
            return response
        finally:
            connection.close()

    def _talk(self, session: str) -> None:
        while not self._stop.is_set():
            turn = str(uuid.uuid4())
            try:
                response = self.ask(turn, session)
            except (OSError, http.client.HTTPException):
                self.unanswered.append(turn)
                return
            content: bytes = response.content  # type: ignore[attr-defined]
            if response.status == 200:
                self.answered[turn] = json.loads(content)
            else:
                self.refused.append(content)


def _gone(pids: list[int]) -> bool:
    return not any(map(lives, pids))


def _check_record(daemon: RunningDaemon, load: Load) -> None:
    for turn, first in list(load.answered.items()):
        again = json.loads(load.ask(turn, first["session_id"]).content)  # type: ignore[attr-defined]
        assert again == first
    verified = daemon.cli("threads", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.timeout(300)
def test_kill_9_under_load_loses_no_answer(make_daemon: Callable[..., RunningDaemon]) -> None:
    chance = random.Random(7)
    daemon = make_daemon(LLM_FAKE="1")
    load = Load(daemon)
    for round_ in range(ROUNDS):
        daemon.start()
        before = len(load.answered)
        if round_:
            _check_record(daemon, load)
        with load.talking():
            daemon.wait_for(partial(load.has, before + 1), what="a first answer")
            time.sleep(chance.uniform(0, 0.4))  # the moment is what the test is about
            assert daemon.process is not None
            below = descendants(daemon.process.pid)
            daemon.kill()
        daemon.wait_for(partial(_gone, below), what="template and workers to end with the daemon")
    daemon.start()
    _check_record(daemon, load)
    for turn in load.unanswered:  # asked again, a turn that broke off is answered, and then stays so
        first = load.ask(turn)
        assert first.status == 200
        assert load.ask(turn).content == first.content  # type: ignore[attr-defined]
    assert daemon.cli("threads", "verify").returncode == 0
    assert len(load.answered) > ROUNDS
    assert load.refused == []
    daemon.stop()
    assert not (daemon.home / "rappd.sock").exists()
    assert (daemon.home / "rappd.pid").read_text() == ""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("victim", ["template", "workers"])
def test_killed_zygote_or_worker_costs_only_its_calls(
    make_daemon: Callable[..., RunningDaemon], victim: str
) -> None:
    chance = random.Random(11)
    daemon = make_daemon(LLM_FAKE="1").start()
    load = Load(daemon)
    with load.talking():
        for _ in range(4):
            before = len(load.answered)
            daemon.wait_for(partial(load.has, before + TALKERS), what="answers before the kill")
            time.sleep(chance.uniform(0, 0.2))
            assert daemon.process is not None
            template = children(daemon.process.pid)[0]
            for pid in [template] if victim == "template" else descendants(template):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            after = len(load.answered)
            daemon.wait_for(partial(load.has, after + 2 * TALKERS), what="answers after the kill")
    assert load.unanswered == []
    assert load.refused == []
    _check_record(daemon, load)
    assert daemon.get("/readyz").status == 200


def test_start_is_clean_after_kill_left_lock_and_socket(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.kill()
    assert (daemon.home / "rappd.sock").exists()
    assert (daemon.home / "rappd.pid").read_text().split()[1] == str(daemon.port)
    stopped = daemon.cli("status")
    assert stopped.returncode == 3
    assert stopped.stderr.startswith("✗ rappd isn't running here\n  → ")
    assert stopped.stderr.rstrip().endswith("rappd start")
    assert daemon.cli("doctor").returncode == 0, "what a crash leaves behind is no problem"
    started = daemon.cli("start", "--detach")
    assert started.returncode == 0, started.stderr
    assert daemon.cli("stop").returncode == 0
