"""Compares this machine with the one that the budgets were written on, by a few simple operations."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.bare_steps import BareRecord
from envelopes.identity.keys import IdentityKey, verify

_TIMES = 400
_THERE = {
    "a signature made and checked": 0.111,
    "a turn of four rows committed by a thread": 0.11,
    "a log synced to the disk": 0.2,
    "a Python process started and ended": 8.0,
}
"""Milliseconds on that machine."""


def run() -> list[tuple[str, str]]:
    """Medians, and how many times as long each takes here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        here = (_signed(), asyncio.run(_committed(folder)), _synced(folder), _started())
    rows = zip(_THERE.items(), here, strict=True)
    return [
        (what, f"{took:.3f} ms here, {there:g} there: {took / there:.1f}x") for (what, there), took in rows
    ]


def _median(times: int, work: Callable[[], object]) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def _signed() -> float:
    key, message = IdentityKey.generate(), bytes(600)
    return _median(_TIMES, lambda: verify(key.public, key.sign(message), message))


async def _committed(folder: Path) -> float:
    record = BareRecord(folder / "turns.db")
    took = []
    for number in range(_TIMES):
        began = time.perf_counter()
        await record.put(*((str(number), verb, bytes(400)) for verb in ("HELP", "ASK", "ANSWER", "DONE")))
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def _synced(folder: Path) -> float:
    with (folder / "log").open("wb", buffering=0) as log:
        log.write(bytes(_TIMES * 20_000))
        os.fsync(log.fileno())
        log.seek(0)

        def sync() -> None:
            log.write(bytes(20_000))
            os.fdatasync(log.fileno())

        return _median(_TIMES, sync)


def _started() -> float:
    return _median(20, lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True))
