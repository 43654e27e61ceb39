"""A daemon that is killed while it works for another machine: begun once, answered once."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

import pytest
from fixtures.running_daemon import agent_source

from agents.runtimes.python.pools.started_processes import children, descendants
from envelopes.envelope import THREAD
from tests.rappd.federation.conftest import Node

IDEMPOTENT = '"name": self.name, "idempotent": True,'


@pytest.mark.own_process
@pytest.mark.parametrize(
    "more", [{}, {THREAD: "6f6f0e4c-8f2b-4a52-9a3f-0f7a3a0c7f11"}], ids=["no_thread", "thread"]
)
def test_what_was_cut_off_is_said_so_and_what_may_be_repeated_is(
    make: Callable[..., Node], more: dict[str, str]
) -> None:
    node = make()
    slow = """
import pathlib, time
with open(".brainstem_data/again.txt", "a") as file:
    file.write("x" + chr(10))
time.sleep(float(kwargs.get("seconds", 0)))
return "again"
""".strip().replace("\n", "\n        ")
    source = agent_source("Again", slow).replace('"name": self.name,', IDEMPOTENT)
    node.daemon.drop("again_agent.py", source)
    node.start()
    mine = node.peer("mine")
    cut = mine.help("Counted", {"tell": "cut", "seconds": 25}, **more)
    again = mine.help("Again", {"seconds": 8}, **more)
    got = mine.request("POST", "/envelopes/batch", [cut, again])
    assert [one["data"]["state"] for one in got.json] == ["accepted", "accepted"]
    until = time.monotonic() + 100
    while not (node.counted() and node.counted("again")) and time.monotonic() < until:
        time.sleep(0.02)
    node.daemon.kill()
    node.start()
    assert mine.waits_for(cut["id"], "ERROR")["data"]["reason"] == "interrupted"
    assert mine.waits_for(again["id"], "DONE")["data"]["result"] == "again"
    assert node.counted() == ["cut"]
    assert len(node.counted("again")) == 2
    repeat = mine.post(cut)
    assert (repeat.status, repeat.data["reason"]) == (500, "interrupted")
    assert node.counted() == ["cut"], "it is not begun by its repeat either"
    assert [one["verb"] for one in node.records(cut["id"])] == ["HELP", "ERROR"]
    assert [one["verb"] for one in node.records(again["id"])] == ["HELP", "DONE"]


@pytest.mark.own_process(zygote=True)
def test_killed_worker_interrupts_its_call_alone(make: Callable[..., Node]) -> None:
    node = make().start()
    mine = node.peer("mine")
    asked = mine.help("Counted", {"tell": "cut", "seconds": 30})
    mine.request("POST", "/envelopes/batch", [asked])
    node.daemon.wait_for(lambda: node.counted() == ["cut"], what="the agent to run")
    assert node.daemon.process is not None
    (zygote, *_) = children(node.daemon.process.pid)
    for worker in descendants(zygote):
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    told = mine.waits_for(asked["id"], "ERROR")["data"]
    assert (told["code"], told["reason"]) == (500, "interrupted")
    assert told["do"] == "Ask again if it does no harm to do it twice."
    assert [one["verb"] for one in node.records(asked["id"])] == ["HELP", "ERROR"]
    failed = mine.post(mine.help("Counted", {"seconds": "no number"}))
    assert failed.data["reason"] == "agent", "an exception is the agent's own"
    assert mine.post(mine.help("Counted", {"tell": "after"})).data["result"] == "counted after"
