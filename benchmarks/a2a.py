"""SendMessage over A2A: one agent of a daemon, durable, beside the same behind a2a-sdk's own server; one plain client asks both."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
import uuid
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks import a2a_peer
from benchmarks.daemon import AGENT, BenchDaemon, free_port

ONE_BY_ONE, ABREAST, EACH = 150, 8, 60


def run() -> list[tuple[str, str]]:
    """Latency at one call at a time, rate at 8: a call of an agent, a turn with the scripted model, and the SDK's echo."""
    if lacking := a2a_peer.missing():
        return [("a2a-sdk SendMessage", f"skipped, needs {lacking}")]
    theirs = _theirs()
    rows = [("a2a-sdk's server, in memory", _told(theirs))]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        agents = home / "brainstem" / "agents"
        agents.mkdir(parents=True)
        (agents / "echo_agent.py").write_text(AGENT.format(name="Echo"))
        with BenchDaemon(home, LLM_FAKE="1", RAPPD_HTTP_TOOLS="1") as daemon:
            daemon.start()
            url = f"http://127.0.0.1:{daemon.port}/a2a"
            for what, skill in (("an agent here, in the record", "Echo"), ("a turn here, in the record", "")):
                ours = asyncio.run(_load(url, skill))
                rows.append((what, f"{_told(ours)}, {ours[1] / theirs[1]:.1f} times the SDK's"))
    return rows


def _theirs() -> tuple[float, float]:
    port = free_port()
    server = get_context("spawn").Process(target=a2a_peer._serve, args=(port,), daemon=True)
    server.start()
    try:
        return asyncio.run(_load(f"http://127.0.0.1:{port}/", ""))
    finally:
        server.terminate()
        server.join()


async def _load(url: str, skill: str) -> tuple[float, float]:
    async with aiohttp.ClientSession(headers={"A2A-Version": "1.0"}) as http:

        async def one() -> None:
            message: dict[str, Any] = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER"}
            message |= {"parts": [{"text": "hi"}], "metadata": {"skillId": skill} if skill else {}}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
            async with http.post(url, json=asked) as answer:
                assert "result" in await answer.json()

        async def several() -> None:
            for _ in range(EACH):
                await one()

        for _ in range(300):  # until it listens, and has run the agent
            try:
                await one()
                break
            except (aiohttp.ClientError, AssertionError):
                await asyncio.sleep(0.1)
        took = []
        for _ in range(ONE_BY_ONE):
            started = time.perf_counter()
            await one()
            took.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        await asyncio.gather(*(several() for _ in range(ABREAST)))
        return statistics.median(took), ABREAST * EACH / (time.perf_counter() - started)


def _told(figures: tuple[float, float]) -> str:
    return f"p50 {figures[0]:.2f} ms, {figures[1]:,.0f}/s at {ABREAST}"
