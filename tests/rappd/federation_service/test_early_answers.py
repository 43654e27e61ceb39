"""An answer that is still on its way to the other machine's disk: written down here, and counted on later."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from daemon_under_test import agent_source

from tests.machines import Machine, acquaint
from tests.slow_disk import SlowDisk

COUNTED = """
import pathlib
with open(".brainstem_data/counted.txt", "a") as file:
    file.write("x")
return "done"
"""
SLOW = 120.0


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, SlowDisk]]:
    desk, slow = Machine(tmp_path / "desk", "desk"), SlowDisk(tmp_path / "slow", "slow")
    slow.drop("counted_agent.py", agent_source("Counted", COUNTED.strip().replace("\n", "\n        ")))
    for one in (desk, slow):
        one.start()
    acquaint(desk, slow)
    yield desk, slow
    slow.slow(0)
    for one in (desk, slow):
        one.stop()


@pytest.fixture
def calling() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def _on_its_way(calling: ThreadPoolExecutor, desk: Machine, slow: SlowDisk) -> Future[Any]:
    """A call whose answer came, and is not on the other machine's disk."""
    slow.slow(SLOW)
    call = calling.submit(desk.call, "slow", agent="Counted", wait=60)
    desk.wait_for(lambda: _verbs(desk) == ["HELP", "DONE"], 20, "the answer, before it counts")
    return call


def _verbs(machine: Machine) -> list[str]:
    """Of the one thread with a HELP of the desk for Counted."""
    found = [
        events
        for events in machine.threads()
        if any(e["verb"] == "HELP" and e["data"].get("agent") == "Counted" for e in events)
    ]
    assert len(found) < 2
    return [event["verb"] for event in found[0]] if found else []


def test_a_call_returns_once_its_answer_is_on_both_disks(
    machines: tuple[Machine, SlowDisk], calling: ThreadPoolExecutor
) -> None:
    desk, slow = machines
    call = _on_its_way(calling, desk, slow)
    time.sleep(0.5)
    assert not call.done()
    slow.slow(0)
    assert call.result(20)["result"] == "done"
    assert _verbs(desk) == _verbs(slow) == ["HELP", "DONE"]


def test_where_the_other_machine_is_killed_first_it_is_asked_again_and_nothing_is_done_or_written_twice(
    machines: tuple[Machine, SlowDisk], calling: ThreadPoolExecutor
) -> None:
    desk, slow = machines
    call = _on_its_way(calling, desk, slow)
    slow.kill()
    slow.slow(0)
    slow.start()
    assert call.result(60)["state"] in ("done", "queued")  # by whether it was back within the tries
    desk.wait_for(lambda: desk.owner("GET", "/outbox?waiting=1")["outbox"] == [], 60, "an empty outbox")
    assert _verbs(desk) == _verbs(slow) == ["HELP", "DONE"]
    assert (slow.data / "counted.txt").read_text() == "x"
