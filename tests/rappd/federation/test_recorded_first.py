"""A call stands in its caller's record before the other machine hears of it, whoever in the caller asks."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import agent_source


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    base = tmp_path_factory.mktemp("machines")
    desk, pi = (Machine(base / name, name) for name in ("desk", "pi"))
    pi.drop("stamp_agent.py", agent_source("Stamp"))
    desk.start()
    pi.start()
    acquaint(desk, pi)
    yield desk, pi
    desk.stop()
    pi.stop()


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another program has the caller's event log."""
    other = sqlite3.connect(home / "rappd.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def calls_at(machine: Machine) -> int:
    """Calls of other machines in its record."""
    with sqlite3.connect(f"file:{machine.home / 'rappd.db'}?mode=ro", uri=True) as db:
        (found,) = db.execute(
            "SELECT count(*) FROM events WHERE verb = 'HELP' AND sender LIKE 'brainstem_%' AND CAST(body AS TEXT) LIKE '%Stamp%'"
            " AND recipient LIKE 'brainstem_%'"
        ).fetchone()
    return int(found)


@pytest.mark.parametrize("way", ["call", "broadcast", "agent of a turn"])
def test_nothing_is_sent_before_its_help_is_committed(machines: tuple[Machine, Machine], way: str) -> None:
    desk, pi = machines
    before, answers = calls_at(pi), []

    def ask() -> Any:
        if way == "call":
            return desk.call("pi", agent="Stamp", args={})["state"]
        if way == "broadcast":
            asked = {"peers": ["pi"], "agent": "Stamp", "args": {}}
            return desk.owner("POST", "/call/broadcast", asked)["calls"][0]["state"]
        return "done" in desk.talk("ask pi for the Stamp")["response"] and "done"

    asking = threading.Thread(target=lambda: answers.append(ask()))
    with locked(desk.home):
        asking.start()
        time.sleep(1)  # the lock lasts that long
        assert calls_at(pi) == before, "it is not sent while it cannot be recorded"
    asking.join(30)
    assert answers == ["done"]
    assert calls_at(pi) == before + 1
