"""A daemon that is killed between states of listeners and their answers, and while delays wait."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from tests.rappd.test_core_primitives import WATCH
from tests.rappd.test_listener_states import COUNT
from tests.storm.storm import SECONDS, rounds

TALKERS = 4


@contextmanager
def counting(daemon: RunningDaemon) -> Iterator[None]:
    """Conversations that have themselves counted, each in a thread, until the block ends."""
    over = threading.Event()

    def talk(session: str) -> None:
        while not over.is_set():
            with contextlib.suppress(Exception):  # it is killed meanwhile
                daemon.chat("count how often it is called", session_id=session)

    talkers = [threading.Thread(target=talk, args=(f"session {n}",)) for n in range(TALKERS)]
    for one in talkers:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in talkers:
            one.join()


def answers(daemon: RunningDaemon, agent: str) -> dict[int, list[Any]]:
    """The recorded results of an agent, by thread, in their order."""
    found: dict[int, list[Any]] = defaultdict(list)
    with closing(sqlite3.connect(daemon.home / "rappd.db")) as db:
        for thread, body in db.execute("SELECT thread, body FROM events WHERE verb = 'DONE' ORDER BY seq"):
            data = json.loads(body)["data"]
            if data.get("agent") == agent:
                found[thread].append(json.loads(data["result"]))
    return found


def check_states(daemon: RunningDaemon) -> int:
    """Each recorded answer has the state that it came with: no number twice, none left out. The number of answers."""
    counted = answers(daemon, "count")
    with closing(sqlite3.connect(daemon.home / "rappd.db")) as db:
        kept = dict(
            db.execute(
                """SELECT threads.number, json_extract(CAST(state AS TEXT), '$.number') FROM listener_states
                JOIN threads ON threads.id = root WHERE listener = 'count'"""
            ).fetchall()
        )
    for thread, told in counted.items():
        assert [one["number"] for one in told] == list(range(1, len(told) + 1))
        assert kept[thread] == len(told)
    assert kept.keys() == counted.keys()
    return sum(map(len, counted.values()))


def wake_ups(daemon: RunningDaemon) -> list[int]:
    """The number of wake-ups of each delay that was begun."""
    return sorted(sum("times" in one for one in told) for told in answers(daemon, "watch").values())


@pytest.mark.timeout(600 + int(SECONDS))
@pytest.mark.own_process(zygote=True)
def test_killed_between_a_state_and_its_answer_and_with_delays_waiting(tmp_path: Path) -> None:
    chance = random.Random(17)
    daemon = RunningDaemon(tmp_path / "home")
    daemon.drop("count_listener.py", COUNT)
    daemon.drop("watch_listener.py", WATCH)
    begun = 0
    for _ in rounds(0.1, least=3):
        daemon.start()
        before = check_states(daemon)
        with counting(daemon):
            daemon.wait_for(
                lambda before=before: sum(map(len, answers(daemon, "count").values())) > before,
                what="an answer",
            )
            order = {"agent": "watch", "args": {"left": 1, "seconds": chance.choice((1.0, 2.0))}}
            assert daemon.post("/agents/run", order, control=True).json()["ok"]
            begun += 1
            time.sleep(chance.uniform(0, 1.2))  # the moment is what the test is about
            daemon.kill()
    daemon.start()
    counted = check_states(daemon)
    assert counted > 0
    daemon.wait_for(lambda: not _waiting(daemon), what="the end of the delays")
    assert wake_ups(daemon) == [1] * begun, "each delay ends, and none twice"
    assert daemon.cli("threads", "verify").returncode == 0
    print(
        f"{begun} kills: {counted} answers with their states; {begun} delays, {sum(wake_ups(daemon))} wake-ups"
    )
    daemon.stop()


def _waiting(daemon: RunningDaemon) -> list[Any]:
    return [one for one in daemon.get("/timers", control=True).json()["timers"] if one["kind"] == "delay"]
