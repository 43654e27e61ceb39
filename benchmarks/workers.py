"""Workers: their start, one request's way to one and back, and how many there are in a second."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor

MODULE = "benchmarks.workers"
ALONE, IN_FLIGHT, STARTS = 3000, 32, 15
Figures = list[tuple[str, str]]


class Room:
    """Gives back what it gets."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def handle(self, op: str, body: dict[str, Any]) -> Any:
        if op == "forked":
            return _in_a_fork(lambda: self.handle("echo", body))
        if op == "leave":
            for _ in range(body["processes"]):
                subprocess.Popen(["sleep", "60"])
        if op == "print":
            for number in range(body["lines"]):
                print("line", number)
        return body


def _in_a_fork(perform: Callable[[], Any]) -> Any:
    """The same in a process of its own: the way to keep calls of one origin apart that was not chosen."""
    answer, into = os.pipe()
    child = os.fork()
    if not child:
        os.write(into, orjson.dumps(perform()))
        os._exit(0)
    os.close(into)
    try:
        found = os.read(answer, 1 << 16)
    finally:
        os.close(answer)
        os.waitpid(child, 0)
    return orjson.loads(found)


def run() -> Figures:
    """First with the cores there are, then daemon and worker sharing one."""
    figures = _measure(_everything)
    if sys.platform == "linux":
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(cores)})
        try:
            figures += [(f"{name}, on one core", figure) for name, figure in _measure(_requests)]
        finally:
            os.sched_setaffinity(0, cores)
    return figures


def _measure(scene: Callable[[WorkerSupervisor, PoolConfig], Awaitable[Figures]]) -> Figures:
    async def play() -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            workspace = Path(folder, "home", "twins", "a")
            workspace.mkdir(parents=True)
            private_root = Path(folder, "home")
            supervisor = WorkerSupervisor(preload=(MODULE,))
            plan = PoolConfig(
                workspace, env=dict(os.environ), private_root=private_root, room=f"{MODULE}:Room"
            )
            try:
                return await scene(supervisor, plan)
            finally:
                await supervisor.close()

    return asyncio.run(play())


async def _everything(supervisor: WorkerSupervisor, plan: PoolConfig) -> Figures:
    began = time.perf_counter()
    await supervisor.start()
    figures = [("template ready", _milliseconds(time.perf_counter() - began))]
    report = supervisor.sandbox_report()
    firsts = []
    for number in range(STARTS):
        pool = supervisor.pool(str(number), plan)
        began = time.perf_counter()
        await pool.request("echo", {}, timeout=10)
        firsts.append(time.perf_counter() - began)
        if number == 0:
            figures.append(("worker's own memory", f"{_private_bytes(pool.stats()['pids'][0]) / 1e6:.1f} MB"))
        await supervisor.remove(str(number))
    name = f"first answer of a fresh worker ({report['kind']})"
    figures.append((name, f"{_milliseconds(statistics.median(firsts))} (max {_milliseconds(max(firsts))})"))
    figures += await _requests(supervisor, plan)
    pool = supervisor.pool("printing", plan)
    await pool.request("echo", {}, timeout=10)
    began = time.perf_counter()
    for _ in range(1000):
        await pool.request("print", {"lines": 1}, timeout=10)
    figures.append(("request that prints a line", f"{(time.perf_counter() - began) * 1e3:.0f} µs"))
    figures.append(await _after_leftovers(supervisor, plan))
    began = time.perf_counter()
    for _ in range(50):
        await pool.request("echo", {"text": "x" * 1_000_000}, timeout=10)
    figures.append(("1 MB there and back", _milliseconds((time.perf_counter() - began) / 50)))
    return figures


async def _requests(supervisor: WorkerSupervisor, plan: PoolConfig) -> Figures:
    pool = supervisor.pool("requests", plan)
    for _ in range(200):
        await pool.request("echo", {}, timeout=10)
    times = []
    for _ in range(ALONE):
        began = time.perf_counter()
        await pool.request("echo", {"text": "hello"}, timeout=10)
        times.append(time.perf_counter() - began)
    rates = [await _rate(pool) for _ in range(3)]
    times.sort()
    forked = []
    for _ in range(ALONE // 10):
        began = time.perf_counter()
        await pool.request("forked", {"text": "hello"}, timeout=10)
        forked.append(time.perf_counter() - began)
    return [
        ("request in a fork of its own, alone", f"{statistics.median(forked) * 1e6:.0f} µs"),
        ("request, alone", f"{times[ALONE // 2] * 1e6:.0f} µs (p99 {times[ALONE * 99 // 100] * 1e6:.0f} µs)"),
        (f"requests, {IN_FLIGHT} in flight", f"{statistics.median(rates):,.0f}/s"),
    ]


async def _after_leftovers(supervisor: WorkerSupervisor, plan: PoolConfig) -> tuple[str, str]:
    """The wait of the next caller after a call that left ten processes running."""
    pool = supervisor.pool("leaving", plan)
    times = []
    for _ in range(STARTS):
        await pool.request("leave", {"processes": 10}, timeout=10)
        began = time.perf_counter()
        await pool.request("echo", {}, timeout=10)
        times.append(time.perf_counter() - began)
    return ("request after one that left 10 processes", _milliseconds(statistics.median(times)))


async def _rate(pool: WorkerPool) -> float:
    async def client() -> None:
        for _ in range(500):
            await pool.request("echo", {"text": "hello"}, timeout=10)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(IN_FLIGHT)))
    return 500 * IN_FLIGHT / (time.perf_counter() - began)


def _private_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
