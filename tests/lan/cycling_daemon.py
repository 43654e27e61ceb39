"""A daemon that writes down, in a line of JSON for each round, what it holds after phones came and went.

    python cycling_daemon.py HOME ROUNDS CYCLES

The phones are a process of their own (``cycling_phone.py``). This program lifts the limit of offers a minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from rappd.daemon.app import Daemon
from rappd.daemon.daemon_process import run
from rappd.daemon.home import Home
from rappd.daemon.rate_limit import AddressLimit
from rappd.listeners import tether_listener
from rappd.settings.load import Settings

PHONE = Path(__file__).with_name("cycling_phone.py")


async def measure(daemon: Daemon, rounds: int, cycles: int) -> None:
    """Lets phones come and go, and ends the daemon."""
    kept = daemon.home.root.parent / "phone.json"
    for _ in range(rounds):
        phone = await asyncio.create_subprocess_exec(
            sys.executable, str(PHONE), str(daemon.home.root), str(kept), str(cycles)
        )
        assert await phone.wait() == 0
        async with asyncio.timeout(100):
            while daemon.tether.summary()["connected"]:
                await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        print(json.dumps(held()), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def held() -> dict[str, int]:
    """Descriptors, KiB of memory and tasks of the daemon, and of its WebRTC process."""
    own = os.getpid()
    children = Path(f"/proc/{own}/task").glob("*/children")
    worker = next(
        pid
        for child in children
        for pid in map(int, child.read_text().split())
        if b"rtc_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    found = {"tasks": len(asyncio.all_tasks())}
    for name, pid in (("daemon", own), ("worker", worker)):
        found[f"{name}_descriptors"] = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        found[f"{name}_kib"] = int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0])
    return found


def main(home: Home, rounds: int, cycles: int) -> None:
    """Runs the daemon until everything is measured."""
    started: list[asyncio.Task[None]] = []

    async def on_ready(daemon: Daemon) -> None:
        started.append(asyncio.create_task(measure(daemon, rounds, cycles)))

    tether_listener.AddressLimit = lambda most, seconds: AddressLimit(100_000, seconds)  # type: ignore[attr-defined,misc,assignment]
    tether_listener._OF_DEVICE = 100_000
    run(home, Settings.load(home), on_ready=on_ready)
    started[0].result()


if __name__ == "__main__":
    place = Home(Path(sys.argv[1]))
    place.create()
    main(place, int(sys.argv[2]), int(sys.argv[3]))
