"""Agent code that hangs, crashes, leaves, grabs and floods: each costs its own request, nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.errors import CallTimeoutError, WorkerDiedError, WorkerStartError
from agents.runtimes.python.pools.config import Limits
from agents.runtimes.python.pools.errors import AgentRaisedError
from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.started_processes import descendants
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from tests.agents.runtimes.python.pools.trial_home import Home, MakePlan, is_gone, until


async def outcome(pool: WorkerPool, op: str, timeout: float = 100, **body: Any) -> Any:
    try:
        return await pool.request(op, body, timeout=timeout)
    except Exception as problem:  # the problem is what is asked for
        return problem


@pytest.fixture
def pool(supervisor: WorkerSupervisor, plan: MakePlan) -> WorkerPool:
    """A single worker at a time, so that it is known which one answers."""
    return supervisor.pool("a", plan(max_workers=1))


@pytest.mark.parametrize("op", ["sleep", "spin"])
async def test_a_call_past_its_time_is_stopped(pool: WorkerPool, op: str) -> None:
    await pool.request("echo", {}, timeout=100)
    (pid,) = pool.stats()["pids"]
    with pytest.raises(CallTimeoutError, match=r"stopped after 0\.3 s") as caught:
        await pool.request(op, {}, timeout=0.3)
    assert caught.value.do
    assert (await pool.request("whoami", {}, timeout=100))["count"] == 1
    await until(lambda: is_gone(pid))


async def test_what_a_stopped_call_had_started_is_stopped_too(pool: WorkerPool, home: Home) -> None:
    mark = home.workspace / "mark"
    command = f"(setsid sleep 1000 &) ; nohup sleep 1000 & touch {mark}; sleep 1000"
    task = asyncio.create_task(outcome(pool, "shell", timeout=2, command=command))
    await until(lambda: mark.exists() and pool.stats()["pids"])
    started = descendants(pool.stats()["pids"][0])
    assert len(started) >= 3
    assert isinstance(await task, CallTimeoutError)
    await until(lambda: all(is_gone(pid) for pid in started))


@pytest.mark.parametrize(
    ("op", "body", "words"),
    [
        ("leave", {"code": 3}, "The worker ended itself (exit 3)"),
        ("leave", {"code": 0}, "The worker ended itself (exit 0)"),
        ("crash", {}, "The worker crashed (segmentation fault)"),
        (
            "garbage",
            {"data": "\x00\x00\x00\x05hello"},
            "The worker answered something unreadable and was stopped",
        ),
        ("garbage", {"data": "\xff\xff\xff\xff"}, "The worker answered something unreadable and was stopped"),
        (
            "garbage",
            {"data": "\x00\x00\x00\x0a[0,0,1,2,3"},
            "The worker answered something unreadable and was stopped",
        ),
        ("hang_up", {}, "The worker closed its line to the daemon and was stopped"),
    ],
)
async def test_a_worker_that_ends_says_how(
    pool: WorkerPool, op: str, body: dict[str, Any], words: str
) -> None:
    problem = await outcome(pool, op, **body)
    assert isinstance(problem, WorkerDiedError)
    assert str(problem) == words
    assert problem.do
    assert (await pool.request("whoami", {}, timeout=100))["count"] == 1


async def test_the_kernel_ending_a_worker_is_told_as_that(pool: WorkerPool, home: Home) -> None:
    book = home.workspace / "book"
    task = asyncio.create_task(outcome(pool, "append", path=str(book), line="begun", pause=30))
    await until(book.exists)
    os.kill(pool.stats()["pids"][0], signal.SIGKILL)
    assert str(await task) == "The worker was killed by the kernel (out of memory?)"


async def test_processor_time_has_an_end(supervisor: WorkerSupervisor, plan: MakePlan) -> None:
    pool = supervisor.pool("a", plan(limits=Limits(cpu_seconds=1)))
    assert str(await outcome(pool, "spin")) == "The worker used up its processor time"


async def test_too_much_memory_is_an_error_of_that_call_only(pool: WorkerPool) -> None:
    before = await pool.request("whoami", {}, timeout=100)
    problem = await outcome(pool, "hog", size=4 << 30)
    assert isinstance(problem, AgentRaisedError)
    assert problem.kind == "MemoryError"
    assert (await pool.request("whoami", {}, timeout=100))["count"] == before["count"] + 2
    assert await pool.request("hog", {"size": 1 << 20}, timeout=100) == 1 << 20


async def test_open_files_have_a_limit(supervisor: WorkerSupervisor, plan: MakePlan) -> None:
    pool = supervisor.pool("a", plan(limits=Limits(open_files=64)))
    problem = await outcome(pool, "run", code="answer = len([open('/dev/null') for _ in range(100)])")
    assert isinstance(problem, AgentRaisedError)
    assert "Too many open files" in problem.message


@pytest.mark.parametrize("patient", [False, True])
async def test_a_fork_bomb_costs_one_call(
    supervisor: WorkerSupervisor, plan: MakePlan, patient: bool
) -> None:
    pool = supervisor.pool("a", plan(max_workers=1, limits=Limits(processes=40)))
    other = supervisor.pool("b", plan())
    await other.request("echo", {}, timeout=100)
    before = set(_processes())
    bomb = asyncio.create_task(outcome(pool, "bomb", patient=patient))
    assert await other.request("echo", {"n": 1}, timeout=100) == {"n": 1}
    problem = await bomb
    if patient:
        assert isinstance(problem, WorkerDiedError)
        assert "processes and was stopped" in str(problem)
    else:
        assert isinstance(problem, WorkerDiedError | AgentRaisedError)
    assert await pool.request("echo", {"n": 2}, timeout=100) == {"n": 2}
    allowed = {*pool.stats()["pids"], *other.stats()["pids"], *before}
    await until(lambda: not _below(supervisor.zygote_pid) - allowed)


async def test_cancelling_stops_the_worker_at_work(pool: WorkerPool, home: Home) -> None:
    book = home.workspace / "book"
    task = asyncio.create_task(
        pool.request("append", {"path": str(book), "line": "", "pause": 60}, timeout=100)
    )
    await until(book.exists)
    (pid,) = pool.stats()["pids"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: is_gone(pid))
    assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}


async def test_cancelling_a_finished_request_harms_nobody(pool: WorkerPool) -> None:
    for _ in range(100):
        task = asyncio.create_task(pool.request("echo", {}, timeout=100))
        await asyncio.sleep(0.0003)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}


async def test_what_is_cancelled_in_the_queue_is_never_started(pool: WorkerPool, home: Home) -> None:
    book = str(home.workspace / "book")
    first = asyncio.create_task(outcome(pool, "append", path=book, line="first", pause=0.5))
    await until(lambda: Path(book).exists())
    queued = [asyncio.create_task(outcome(pool, "append", path=book, line=str(n))) for n in range(600)]
    await asyncio.sleep(0)
    for task in queued[::2]:
        task.cancel()
    await asyncio.gather(first, *queued, return_exceptions=True)
    assert Path(book).read_text().split() == ["first", *(str(n) for n in range(600) if n % 2)]
    assert (await pool.request("whoami", {}, timeout=100))["count"] == 302


async def test_a_deadline_passes_in_the_queue(pool: WorkerPool, home: Home) -> None:
    book = str(home.workspace / "book")
    first = asyncio.create_task(outcome(pool, "append", path=book, line="first", pause=2.0))
    await until(lambda: Path(book).exists())
    late = [outcome(pool, "append", timeout=0.2, path=book, line=f"late{n}") for n in range(300)]
    for problem in await asyncio.gather(*late):
        assert isinstance(problem, CallTimeoutError)
        assert "waited 0.2 s for a free worker and was not started" in str(problem)
    await first
    assert await pool.request("append", {"path": book, "line": "last"}, timeout=100)
    assert Path(book).read_text().split() == ["first", "last"]
    assert (await pool.request("whoami", {}, timeout=100))["count"] == 3, "the worker was not spared"


async def test_the_death_of_a_worker_takes_its_own_request_only(
    supervisor: WorkerSupervisor, plan: MakePlan, home: Home
) -> None:
    """Workers are killed in the middle of 1,500 requests: each request is performed at most once, and exactly once unless it failed."""
    pool = supervisor.pool("a", plan())
    book = home.workspace / "book"
    tasks = [
        asyncio.create_task(outcome(pool, "append", path=str(book), line=str(n), pause=0.002))
        for n in range(1500)
    ]
    await until(lambda: pool.stats()["workers"] > 1)
    for _ in range(12):
        await asyncio.sleep(0.05)
        for pid in pool.stats()["pids"][:2]:
            with contextlib.suppress(ProcessLookupError):  # one that was killed before, and not missed yet
                os.kill(pid, signal.SIGKILL)
    outcomes = await asyncio.gather(*tasks)
    performed = Counter(book.read_text().split())
    assert set(performed.values()) == {1}
    failed = {str(n) for n, what in enumerate(outcomes) if isinstance(what, WorkerDiedError)}
    answered = {str(n) for n, what in enumerate(outcomes) if isinstance(what, int)}
    assert len(failed) + len(answered) == 1500
    assert failed, "no worker was killed at work"
    assert len(failed) <= 24
    assert answered <= set(performed)


async def test_crashing_requests_do_not_take_waiting_ones_along(pool: WorkerPool) -> None:
    mixed = [outcome(pool, "leave", code=1) if n % 3 == 0 else outcome(pool, "echo", n=n) for n in range(30)]
    for n, what in enumerate(await asyncio.gather(*mixed)):
        if n % 3 == 0:
            assert isinstance(what, WorkerDiedError)
        else:
            assert what == {"n": n}


async def test_worker_that_closes_everything_is_replaced(pool: WorkerPool) -> None:
    code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), os._exit(9))).start()"
    first = await pool.request("whoami", {}, timeout=100)
    await pool.request("run", {"code": code}, timeout=100)
    await until(lambda: first["pid"] not in pool.stats()["pids"])
    assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}


async def test_the_zygote_may_die(supervisor: WorkerSupervisor, pool: WorkerPool, home: Home) -> None:
    book = home.workspace / "book"
    task = asyncio.create_task(outcome(pool, "append", path=str(book), line="begun", pause=30))
    await until(book.exists)
    (pid,) = pool.stats()["pids"]
    old = supervisor.zygote_pid
    os.kill(old, signal.SIGKILL)
    assert str(await task) == "The worker is gone"
    assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}
    assert supervisor.zygote_pid not in (0, old)
    assert supervisor.stats()["zygotes_started"] == 2
    await until(lambda: is_gone(pid) and is_gone(old))


async def test_running_out_of_descriptors_is_told_and_passes(pool: WorkerPool) -> None:
    await pool.request("echo", {}, timeout=100)
    pool.retire()
    await until(lambda: pool.stats()["workers"] == 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    for spare in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + spare, hard))
        try:
            answer = await outcome(pool, "echo", timeout=5, n=spare)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert isinstance(answer, WorkerStartError | CallTimeoutError) or answer == {"n": spare}
        pool.retire()
        await until(lambda: pool.stats()["workers"] == 0)
    assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}


async def test_no_descriptor_is_left_open(supervisor: WorkerSupervisor, plan: MakePlan) -> None:
    async def use() -> None:
        pool = supervisor.pool("a", plan(max_workers=2))
        ends = [outcome(pool, "leave", code=1), outcome(pool, "crash"), outcome(pool, "spin", timeout=0.2)]
        large = outcome(pool, "echo", text="x" * 200_000)
        await asyncio.gather(*ends, large, *(outcome(pool, "sleep", seconds=0.1) for _ in range(4)))
        await supervisor.remove("a")

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    await use()
    before = descriptors()
    gc.disable()
    try:
        for _ in range(3):
            await use()
    finally:
        gc.enable()
    await until(lambda: descriptors() <= before)


async def test_a_callback_of_a_cancelled_request_is_cancelled(pool: WorkerPool) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def think(operation: str, arguments: dict[str, Any]) -> Any:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    body = {"operation": "model", "arguments": {}}
    task = asyncio.create_task(pool.request("ask", body, timeout=100, on_callback=think))
    await began.wait()
    task.cancel()
    await asyncio.wait_for(ended.wait(), 100)
    with pytest.raises(CallTimeoutError):
        await pool.request("ask", body, timeout=0.3, on_callback=think)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _below(pid: int) -> set[int]:
    return {one for one in descendants(pid) if not is_gone(one)}


@pytest.mark.parametrize(
    ("kind", "value"),
    [("ANSWER", "'forged'"), ("RAISED", "['KeyError', 'forged', 1, '']"), ("CALLBACK", "['forged', {}]")],
)
async def test_a_frame_for_another_call_ends_the_worker_and_answers_nobody(
    pool: WorkerPool, kind: str, value: str
) -> None:
    heard: list[str] = []

    async def hear(operation: str, arguments: dict[str, Any]) -> None:
        heard.append(operation)

    code = f"""
import json, time
from agents.runtimes.python.worker import protocol
callback._channel.send(json.dumps([protocol.{kind}, 12345, {value}]).encode())
time.sleep(5)
"""
    with pytest.raises(WorkerDiedError, match="for another call than its own"):
        await pool.request("run", {"code": code}, timeout=30, on_callback=hear)
    assert heard == []
    assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}
