"""Delays and questions of timers that a kill cuts off while they are performed: each wakes its caller exactly once."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from tests.rappd.test_core_primitives import HEAD

SLOW = (
    HEAD
    + '''
import time

@listener(category="tests")
@dataclass
class Slow:
    """Waits, goes on, and takes its time then."""
    left: int = 1
    write: bool = False

@dataclass
class Woken:
    times: int

def slow(payload: Slow, state: dict):
    state["times"] = state.get("times", 0) + 1
    if state["times"] > 1:
        time.sleep(0.7)
    if payload.left:
        return Delay(1, Slow(payload.left - 1, payload.write))
    if payload.write:
        return [SpawnThread("aside", Hold()), Woken(state["times"])]
    return Woken(state["times"])

@listener(category="tests", name="hold")
@dataclass
class Hold:
    """Takes long."""

def hold(payload: Hold) -> str:
    time.sleep(600)
    return "held"
'''
)


def events(daemon: RunningDaemon, thread: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.get(f"/threads/{thread}", control=True).json()["events"]
    return found


def waiting(daemon: RunningDaemon) -> list[dict[str, Any]]:
    return [one for one in daemon.get("/timers", control=True).json()["timers"] if one["kind"] == "delay"]


def begun(daemon: RunningDaemon, thread: str) -> int:
    """The number of calls of the listener on a thread, beside the first one."""
    return (
        sum(one["verb"] == "HELP" and one["data"].get("agent") == "slow" for one in events(daemon, thread))
        - 1
    )


def answers(daemon: RunningDaemon, thread: str) -> list[str]:
    """The ends of the delays on a thread, "" for one that was refused."""
    return [
        str(one["data"].get("response", one["data"].get("reason")))
        for one in events(daemon, thread)
        if one["verb"] in ("DONE", "ERROR") and "agent" not in one["data"]
    ]


@pytest.mark.own_process
def test_delay_whose_wake_up_is_killed_wakes_its_caller_exactly_once(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home")
    daemon.drop("slow_listener.py", SLOW)
    daemon.start()
    run = {"agent": "slow", "args": {"left": 2}}
    thread = daemon.post("/agents/run", run, control=True).json()["thread"]
    for kills in range(1, 4):
        daemon.wait_for(lambda kills=kills: begun(daemon, thread) >= kills, what="a wake-up under way")
        time.sleep(0.3 * (kills - 1))  # once when it was called, once while it runs, once about its end
        daemon.kill()
        daemon.start()
    daemon.wait_for(lambda: not waiting(daemon), what="the end of the delays")
    first, last = answers(daemon, thread)
    assert json.loads(first).keys() == {"until"}
    assert json.loads(last) == {"times": 3}, "its state was counted once for each delay"
    daemon.stop()


@pytest.mark.own_process
def test_wake_up_that_had_begun_more_than_it_may_begin_twice_is_told_to_be_cut_off(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home")
    daemon.drop("slow_listener.py", SLOW)
    daemon.start()
    run = {"agent": "slow", "args": {"left": 1, "write": True}}
    thread = daemon.post("/agents/run", run, control=True).json()["thread"]
    daemon.wait_for(
        lambda: '"agent": "spawn-thread"' in json.dumps(events(daemon, thread)),
        what="a thread that is spawned",
    )
    daemon.kill()
    daemon.start()
    daemon.wait_for(lambda: not waiting(daemon), what="the end of the delays")
    (last,) = answers(daemon, thread)
    tree = daemon.get(f"/threads/{thread}/tree", control=True).json()["tree"]
    names = [one["path"][1:] for one in tree["threads"]]
    assert last == "interrupted"
    assert ["aside"] in names and ["aside-1"] not in names, names
    daemon.stop()
