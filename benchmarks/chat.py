"""``/chat`` with one tool call and 50 agents: daemon and workers on one core, the load on another."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.daemon import AGENT, BenchDaemon

LUA = """
wrk.method = "POST"
wrk.body = '{"user_input":"hi"}'
wrk.headers["Content-Type"] = "application/json"
"""
_PEER = """
import sys
from aiohttp import web
import orjson, uvloop

async def chat(request):
    body = orjson.loads(await request.read())
    text = body["user_input"]
    return web.Response(body=orjson.dumps({"response": text, "assistant_response": text}), content_type="application/json")

app = web.Application()
app.router.add_post("/chat", chat)
web.run_app(
    app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None, loop=uvloop.new_event_loop()
)
"""


def run() -> list[tuple[str, str]]:
    """Requests/s at 32 connections, latency at one, and the ratio to a bare aiohttp handler."""
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "post.lua"
        script.write_text(LUA)
        rates = {}
        for count in (10, 50, 1000):
            with BenchDaemon(Path(folder) / f"home{count}", LLM_FAKE="1") as daemon:
                for number in range(count):
                    daemon.drop(f"a{number:04d}_agent.py", AGENT.format(name=f"A{number:04d}"))
                daemon.start(cores="0")
                daemon.pin("0")
                load(daemon.port, script, 32, 2)
                daemon.pin("0")
                found = load(daemon.port, script, 32, 5)
                rates[count] = found["rate"]
                single = load(daemon.port, script, 1, 4)
                rows.append((f"{count} agents, 32 connections", f"{found['rate']:,.0f}/s"))
                rows.append(
                    (
                        f"{count} agents, 1 connection",
                        f"p50 {single['p50']:.2f} ms, p99 {single['p99']:.2f} ms",
                    )
                )
        rows.append(("per-turn cost, 1,000 agents to 10", f"{rates[10] / rates[1000]:.2f}x"))
        peer = _peer(folder, script)
        rows.append(
            ("bare aiohttp handler, no agents, no record", f"{peer['rate']:,.0f}/s, p50 {peer['p50']:.2f} ms")
        )
        rows.append(("ratio, rappd with 50 agents to it", f"{rates[50] / peer['rate']:.2f}"))
    return rows


def load(port: int, script: Path, connections: int, seconds: int) -> dict[str, float]:
    command = ["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    done = subprocess.run(
        [*command, "-s", str(script), f"http://127.0.0.1:{port}/chat"],
        capture_output=True,
        text=True,
        check=True,
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


def _peer(folder: str, script: Path) -> dict[str, float]:
    path = Path(folder) / "peer.py"
    path.write_text(_PEER)
    port = 17999
    process = subprocess.Popen(["taskset", "-c", "0", sys.executable, str(path), str(port)])
    try:
        _wait_for(port)
        load(port, script, 32, 1)
        found = load(port, script, 32, 3)
        found["p50"] = load(port, script, 1, 2)["p50"]
        return found
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
    """What this benchmark needs and does not find."""
    return (
        ""
        if shutil.which("wrk") and shutil.which("taskset")
        else "wrk and taskset (apt install wrk util-linux)"
    )
