"""``/chat`` with one tool call and 50 agents: daemon and workers on one core, the load on another."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.daemon import AGENT, BenchDaemon, free_port

LUA = """
wrk.method = "POST"
wrk.body = '{"user_input":"hi"}'
wrk.headers["Content-Type"] = "application/json"
"""
_PEER = """
import sys
from aiohttp import web
import orjson

async def chat(request):
    body = orjson.loads(await request.read())
    text = body["user_input"]
    return web.Response(body=orjson.dumps({"response": text, "assistant_response": text}), content_type="application/json")

app = web.Application()
app.router.add_post("/chat", chat)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
"""


BUDGETED = {"rate": 17_400.0, "p50": 0.14}
"""Figures of the bare handler on the machine that the budgets (5,000/s, 0.6 ms) are written for."""
_ROUNDS = 5
_LATE_SECONDS = 30
"""A load that ends so much later than it should has found a server that stands still."""


def run() -> Iterator[tuple[str, str]]:
    """Requests/s at 32 connections and latency at one; with 50 agents turn about with a bare aiohttp handler."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "post.lua"
        script.write_text(LUA)
        alone = {}
        for count in (10, 50, 1000):
            alone[count] = found = _agents(folder, script, count)
            yield f"{count} agents, 32 connections", f"{found['rate']:,.0f}/s"
            yield f"{count} agents, 1 connection", f"p50 {found['p50']:.2f} ms, p99 {found['p99']:.2f} ms"
        yield "per-turn cost, 1,000 agents to 10", f"{alone[10]['rate'] / alone[1000]['rate']:.2f}x"
        with _daemon(folder, 50, home="beside") as daemon, _bare(folder) as port:
            load(daemon.port, script, 32, 2)
            load(port, script, 32, 1)
            daemon.pin("0")
            rounds = [(_both(daemon.port, script), _both(port, script)) for _ in range(_ROUNDS)]
        mine, bare = (_median(list(some)) for some in zip(*rounds, strict=True))
        late = f"{mine['rate']:,.0f}/s, p50 {mine['p50']:.2f} ms, p99 {mine['p99']:.2f} ms"
        yield "50 agents, with some 100,000 turns recorded", late
        yield (
            "bare aiohttp handler, no agents, no record",
            f"{bare['rate']:,.0f}/s, p50 {bare['p50']:.2f} ms",
        )
        ratios = {
            key: statistics.median(mine[key] / other[key] for mine, other in rounds)
            for key in ("rate", "p50")
        }
        yield "ratio, rappd with 50 agents to it", f"{ratios['rate']:.2f}, p50 {ratios['p50']:.1f}x"
        rate, p50 = (ratios[key] * BUDGETED[key] for key in ("rate", "p50"))
        yield (
            "where the bare handler does 17,400/s and 0.14 ms, that is",
            f"{rate:,.0f}/s, p50 {p50:.2f} ms",
        )


def _agents(folder: str, script: Path, count: int) -> dict[str, float]:
    with _daemon(folder, count) as daemon:
        load(daemon.port, script, 32, 2)
        daemon.pin("0")
        return _both(daemon.port, script)


def _both(port: int, script: Path) -> dict[str, float]:
    single = load(port, script, 1, 3)
    return {**single, "rate": load(port, script, 32, 3)["rate"]}


def _median(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


@contextmanager
def _daemon(folder: str, count: int, *, home: str = "home") -> Iterator[BenchDaemon]:
    with BenchDaemon(Path(folder) / f"{home}{count}", LLM_FAKE="1") as daemon:
        for number in range(count):
            daemon.drop(f"a{number:04d}_agent.py", AGENT.format(name=f"A{number:04d}"))
        daemon.start()  # on all cores: a thousand agents are described first
        daemon.pin("0")
        yield daemon


def load(port: int, script: Path, connections: int, seconds: int) -> dict[str, float]:
    command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    done = subprocess.run(
        [*command, "-s", str(script), f"http://127.0.0.1:{port}/chat"],
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds + _LATE_SECONDS,
    )
    if "Non-2xx" in done.stdout:
        raise RuntimeError(done.stdout)
    return {
        "rate": float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1]),  # type: ignore[index]
        "p50": _milliseconds(done.stdout, "50%"),
        "p99": _milliseconds(done.stdout, "99%"),
    }


def _milliseconds(text: str, row: str) -> float:
    found = re.search(rf"{row}\s+([\d.]+)(us|ms|s)", text)
    assert found is not None
    return float(found[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[found[2]]


@contextmanager
def _bare(folder: str) -> Iterator[int]:
    """The bare handler on the daemon's core; its port."""
    path = Path(folder) / "peer.py"
    path.write_text(_PEER)
    port = free_port()
    process = subprocess.Popen(["taskset", "-c", "0", sys.executable, str(path), str(port)])
    try:
        _wait_for(port)
        yield port
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait()


def _wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)


def missing() -> str:
    """Returns the programs that this benchmark needs and does not find."""
    return (
        ""
        if shutil.which("wrk") and shutil.which("taskset")
        else "wrk and taskset (apt install wrk util-linux)"
    )
