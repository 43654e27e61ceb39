"""The number of files of the project that a request enters: a reader who follows it has to open as many.

A file counts once if one of its functions ran for the request, in any thread of the daemons that took part.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import REPO, RunningDaemon, agent_source

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient

PACKAGES = tuple(f"{REPO / name}/" for name in ("rappd", "envelopes", "agents", "twins", "neighborhoods"))
# Calls of a turn, HELLO, turns begun once, background tasks and the retries of a capture are files of their own. A call
# between machines passes the refusal of privileged messages, and looks up whether its thread is one below another. /chat
# passes that refusal, too, as every listener does. If other machines can be reached yet is told by
# a file of its own, and so is the form of a call.
MOST = {
    "chat without a model": 40,
    "chat with a model": 34,
    "call of another machine": 55,  # of both machines
    "sentence of a phone": 43,
    "hatching": 53,
    "snapshot": 104,
}
"""A change that enters more raises the number and says why here; one that enters fewer lowers it."""

FIRST = 2
"""Modules are loaded, and folders made, when they are first needed: so many requests do not count."""
TIMES = 3
"""A file counts if each of these requests enters it: what goes on beside one does not fall into all of them."""

MORE_TIMES = 20
"""As many more of them where the files are too many: on a busy machine a request takes as long as the pause between two looks."""

BESIDE = {
    "agents/runtimes/python/pools/started_processes.py",
    "rappd/organism/organism_in_force.py",
    "rappd/tenants/listener_notifications.py",
}
"""Files of the looks at a worker's processes, ``organism.yaml`` and heartbeats, each second or more often.

On a busy machine such a look falls into each of the requests.
"""

QUIET = 0.8
"""Seconds in which what follows a request comes to its end: the watcher of files looks again after 0.5."""

Entered = Callable[[str, Callable[[], Any]], None]


@pytest.fixture
def entered() -> Iterator[Entered]:
    """``entered(what, request)`` runs the request and compares the files that it enters with ``MOST``."""
    files: set[str] = set()
    recording = threading.Event()

    def hook(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and recording.is_set() and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    def once(request: Callable[[], Any]) -> set[str]:
        files.clear()
        recording.set()
        request()
        recording.clear()
        time.sleep(QUIET)
        return set(files)

    def count(what: str, request: Callable[[], Any]) -> None:
        for _ in range(FIRST):
            once(request)
        entered = set.intersection(*(once(request) for _ in range(TIMES)))
        for _ in range(MORE_TIMES):
            here = {file.removeprefix(f"{REPO}/") for file in entered if file.startswith(PACKAGES)}
            found = sorted(here - BESIDE)
            if len(found) <= MOST[what]:
                return
            entered &= once(request)
        pytest.fail("\n".join([f"{what} enters {len(found)} files:", *found]), pytrace=False)

    threading.setprofile(hook)
    yield count
    threading.setprofile(None)  # type: ignore[arg-type]  # as documented


@pytest.mark.parametrize("what", ["chat without a model", "chat with a model"])
def test_chat(make_daemon: Callable[..., RunningDaemon], entered: Entered, what: str) -> None:
    model = {"LLM_FAKE": "1"} if what == "chat with a model" else {}
    daemon = make_daemon(**model)
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    daemon.start()
    entered(what, lambda: daemon.chat("clock"))


def test_call_of_another_machine(tmp_path: Path, entered: Entered) -> None:
    desk, pi = (Machine(tmp_path / name, name, LLM_FAKE="1") for name in ("desk", "pi"))
    pi.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    pi.start()
    desk.start()
    acquaint(desk, pi)
    entered("call of another machine", lambda: desk.owner("POST", "/call", {"peer": "pi", "agent": "Clock"}))
    desk.stop()
    pi.stop()


async def test_sentence_of_a_phone(make_daemon: Callable[..., RunningDaemon], entered: Entered) -> None:
    import asyncio

    desk = make_daemon("desk", **reachable(), LLM_FAKE="1").start()
    phone = await PhoneClient(desk).pair()
    loop = asyncio.get_running_loop()

    async def say() -> None:
        await phone.is_answered(await phone.say("hello"))

    await asyncio.to_thread(
        entered,
        "sentence of a phone",
        lambda: asyncio.run_coroutine_threadsafe(say(), loop).result(60),
    )
    await phone.leave()


def test_hatching(make_daemon: Callable[..., RunningDaemon], entered: Entered) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.post("/twins", {"name": "Rose"}, control=True)
    egg = daemon.post("/eggs/pack", {"twin": "Rose"}, control=True).json()["packed"]["path"]

    def hatch() -> None:
        assert daemon.post("/eggs/hatch", {"path": egg}, control=True).status == 200

    entered("hatching", hatch)


def test_snapshot(make_daemon: Callable[..., RunningDaemon], entered: Entered) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.post("/twins", {"name": "Rose"}, control=True)

    def snapshot() -> None:
        assert daemon.post("/neighborhood/snapshot", {}, control=True).status == 200

    entered("snapshot", snapshot)
