"""Calls that are sent to a worker ahead: their order, taking them back, and who can read them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.errors import WorkerDiedError
from agents.runtimes.python.pools import worker_handle
from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.pools.worker_handle import _WAIT
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE, NONE
from tests.agents.runtimes.python.pools.trial_home import Home, supervised, until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="one call at a time where packets cannot be taken back"
)

PEEK = """
import time
end, found = time.monotonic() + 0.015, set()
while time.monotonic() < end:
    try:
        packet = callback._channel._queue.recv(65536, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        continue
    found.add(packet[8:].decode())
answer = sorted(found)
"""
"""Reads what waits in the worker's own descriptor, without taking it."""


@pytest.fixture(params=[MOUNT_NAMESPACE, LANDLOCK, NONE])
async def any_kind(request: pytest.FixtureRequest, home: Home) -> AsyncIterator[WorkerSupervisor]:
    async with supervised(request.param) as made:
        yield made


async def warm(pool: WorkerPool, together: str) -> None:
    """Have a worker perform calls until they are quick, after which others are sent ahead."""
    for number in range(2000):
        await pool.request("echo", {}, timeout=100, together=together)
        if number > 20 and pool._workers[0]._average < _WAIT / 40:
            return


def ahead(pool: WorkerPool) -> int:
    """Calls that were sent behind another."""
    return sum(max(0, len(worker.calls) - 1) for worker in pool._workers)


async def test_calls_ahead_keep_their_order_and_are_answered_once(
    supervisor: WorkerSupervisor, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None is taken back, however busy the computer is: a worker may take the next one in just that moment.
    monkeypatch.setattr(worker_handle, "_SLOW", 1000.0)
    pool = supervisor.pool("a", home.plan(max_workers=1))
    await warm(pool, "k")
    book, most = home.workspace / "book", 0
    calls = []
    for number in range(400):
        body = {"path": str(book), "line": str(number)}
        calls.append(asyncio.ensure_future(pool.request("append", body, timeout=100, together="k")))
    while not all(call.done() for call in calls):
        most = max(most, ahead(pool))
        await asyncio.sleep(0)
    await asyncio.gather(*calls)
    assert book.read_text().split() == [str(number) for number in range(400)]
    assert 1 < most <= 64


async def test_slow_call_does_not_hold_up_those_behind_it(supervisor: WorkerSupervisor, home: Home) -> None:
    pool = supervisor.pool("a", home.plan(max_workers=2))
    await warm(pool, "k")
    go = home.workspace / "go"
    code = f"import time\nwhile not Path({str(go)!r}).exists(): time.sleep(0.01)\nanswer = 'awake'"
    slow = asyncio.ensure_future(pool.request("run", {"code": code}, timeout=100, together="k"))
    behind = [
        asyncio.ensure_future(pool.request("echo", {"n": n}, timeout=100, together="k")) for n in range(5)
    ]
    await asyncio.sleep(0)
    assert ahead(pool) == 5, "they were sent ahead"
    assert await asyncio.gather(*behind) == [{"n": n} for n in range(5)]
    assert not slow.done(), "a worker that had to be started took them"
    go.touch()
    assert await slow == "awake"


async def test_cancelled_call_ahead_is_not_performed(supervisor: WorkerSupervisor, home: Home) -> None:
    pool = supervisor.pool("a", home.plan(max_workers=1))
    await warm(pool, "k")
    book = home.workspace / "book"
    (pid,) = pool.stats()["pids"]

    go = home.workspace / "go"

    def call(operation: str, **body: str) -> asyncio.Task[Any]:
        return asyncio.ensure_future(pool.request(operation, body, timeout=100, together="k"))

    code = f"import time\nwith open({str(book)!r}, 'a') as file: file.write('first\\n')\n"
    running = call("run", code=f"{code}while not Path({str(go)!r}).exists(): time.sleep(0.01)")
    cancelled, kept = (call("append", path=str(book), line=line) for line in ("cancelled", "kept"))
    await asyncio.sleep(0)
    assert ahead(pool) == 2
    await until(book.exists)
    cancelled.cancel()
    go.touch()
    await asyncio.gather(running, kept)
    assert book.read_text().split() == ["first", "kept"]
    assert pool.stats()["pids"] == [pid], "no worker was ended for it"


async def test_killed_worker_has_its_unread_calls_performed_once(
    supervisor: WorkerSupervisor, home: Home
) -> None:
    pool = supervisor.pool("a", home.plan(max_workers=1))
    await warm(pool, "k")
    book = home.workspace / "book"
    (pid,) = pool.stats()["pids"]
    code = f"Path({str(book)!r}).touch()\nwhile True: pass"
    running = asyncio.ensure_future(pool.request("run", {"code": code}, timeout=100, together="k"))
    behind = [
        asyncio.ensure_future(
            pool.request("append", {"path": str(book), "line": str(n)}, timeout=100, together="k")
        )
        for n in range(10)
    ]
    await asyncio.sleep(0)
    assert ahead(pool) == 10
    while not book.exists():  # without giving the daemon's loop the time to take them back
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError):
        await running
    await asyncio.gather(*behind)
    assert book.read_text().split() == [str(n) for n in range(10)]


async def test_leftover_thread_gets_no_more_calls(supervisor: WorkerSupervisor, home: Home) -> None:
    pool = supervisor.pool("a", home.plan(max_workers=1))
    await warm(pool, "k")
    (pid,) = pool.stats()["pids"]
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(9,)).start()"
    first = asyncio.ensure_future(pool.request("run", {"code": code}, timeout=100, together="k"))
    behind = [asyncio.ensure_future(pool.request("whoami", {}, timeout=100, together="k")) for _ in range(16)]
    await asyncio.gather(first)
    told = [one["pid"] for one in await asyncio.gather(*behind)]
    inside = {one["pid"] for one in [await pool.request("whoami", {}, timeout=100, together="k")]}
    assert pool.stats()["pids"] != [pid]
    assert inside <= {told[-1]}


async def test_calls_of_others_are_never_in_a_busy_workers_reach(
    any_kind: WorkerSupervisor, home: Home
) -> None:
    """An agent reads its own descriptor while calls of another caller, and of another agent, wait."""
    pool = any_kind.pool("a", home.plan(max_workers=1))

    async def peeked(others: str | None) -> list[str]:
        await warm(pool, "caller 1, agent 1")
        spy = pool.request("run", {"code": PEEK}, timeout=100, together="caller 1, agent 1")
        waiting = [
            pool.request("echo", {"secret": str(others)}, timeout=100, together=others) for _ in range(8)
        ]
        told, *_ = await asyncio.gather(spy, *waiting)
        return list(told)

    for _ in range(100):  # a spy that gets no processor in its 15 ms sees nothing
        if any("caller 1, agent 1" in packet for packet in await peeked("caller 1, agent 1")):
            break
    else:
        raise AssertionError("the probe does not work")
    for others in ("caller 2, agent 1", "caller 1, agent 2", None):
        assert not await peeked(others)
