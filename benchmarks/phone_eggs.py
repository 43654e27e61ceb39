"""A phone that pulls an egg of 100 MB: what ``/chat`` takes meanwhile, as a ratio to before, in one run."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.daemon import BenchDaemon
from benchmarks.phones import missing as phones_missing
from benchmarks.phones import phone_client, phone_daemon

MEGABYTES, ROUNDS, WARM = 100, 5, 300
MOST = 1.5


def missing() -> str:
    """The name of what it needs and lacks."""
    return phones_missing() or ("" if shutil.which("curl") else "curl")


def run() -> list[tuple[str, str]]:
    """Each round: turns one after the other alone, then for as long as the pull lasts."""
    with tempfile.TemporaryDirectory() as folder, phone_daemon(Path(folder) / "desk") as daemon:
        daemon.start()
        return asyncio.run(_pulls(daemon))


async def _pulls(daemon: BenchDaemon) -> list[tuple[str, str]]:
    phone = phone_client(daemon)
    await phone.pair(name="phone")
    host, port = phone.address
    daemon.control("POST", "/devices/phone", {"eggs": True})
    await phone.sees(lambda: phone.eggs.get("may"))
    egg = await asyncio.to_thread(_big_egg, daemon)
    turns = _Turns(daemon.port)
    await asyncio.to_thread(turns.some, WARM)
    alone: list[float] = []
    beside: list[float] = []
    speeds: list[float] = []
    for _ in range(ROUNDS):
        daemon.control("POST", "/devices/phone/eggs", {"path": egg})
        await phone.sees(lambda: phone.eggs["offers"])
        id, token = phone.eggs["offers"][0]["id"], await phone.egg_token()
        url = f"http://{host}:{port}/tether/v2/eggs/{id}"
        alone += await asyncio.to_thread(turns.some, WARM)
        began = time.perf_counter()
        # Ten times what a phone's Wi-Fi carries, and not what loopback does: then it would be over at once.
        # A phone writes to its own storage: here the file would fill the disk cache that the log is synced from.
        pull = await asyncio.create_subprocess_exec(
            "curl", "-sf", "--limit-rate", "50M", "-o", os.devnull, "-w", "%{size_download}",
            "-H", f"Authorization: Bearer {token}", url, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        is_over = asyncio.ensure_future(pull.communicate())
        beside += await asyncio.to_thread(turns.until, is_over.done)
        if pull.returncode or int((await is_over)[0]) < MEGABYTES << 20:
            raise RuntimeError("the pull failed")
        speeds.append(MEGABYTES / (time.perf_counter() - began))
    await phone.leave()
    ratio = _p99(beside) / _p99(alone)
    return [
        ("/chat alone", f"p99 {_p99(alone) * 1000:.2f} ms, {len(alone)} turns"),
        (
            f"/chat while a phone pulls {MEGABYTES} MB",
            f"p99 {_p99(beside) * 1000:.2f} ms, {len(beside)} turns",
        ),
        (
            "ratio of both",
            f"{ratio:.2f}, at most {MOST}; the pull goes at {sum(speeds) / len(speeds):.0f} MB/s",
        ),
    ]


class _Turns:
    """Turns one after the other over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def one(self) -> float:
        """Seconds that a turn takes."""
        began = time.perf_counter()
        self._connection.request("POST", "/chat", json.dumps({"user_input": "hello"}))
        self._connection.getresponse().read()
        return time.perf_counter() - began

    def some(self, count: int) -> list[float]:
        """Seconds of so many turns."""
        return [self.one() for _ in range(count)]

    def until(self, is_over: Any) -> list[float]:
        """Seconds of turns until then."""
        found = []
        while not is_over():
            found.append(self.one())
        return found


def _big_egg(daemon: BenchDaemon) -> str:
    key = daemon.control("POST", "/twins", {"name": "Rose"})["key"]
    data = daemon.home / "twins" / key / ".brainstem_data"
    data.mkdir(exist_ok=True)
    (data / "seeds.bin").write_bytes(random.Random(1).randbytes(MEGABYTES << 20))
    return str(daemon.control("POST", "/eggs/pack", {"twin": key})["packed"]["path"])


def _p99(taken: list[float]) -> float:
    return sorted(taken)[len(taken) * 99 // 100]
