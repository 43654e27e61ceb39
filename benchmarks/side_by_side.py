"""Servers of one protocol side by side: asked in turn, so that what else the computer does meets all of them.

A rate depends on what else it does; the time of the processor that a call takes does so less.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import aiohttp

ROUNDS, ABREAST, EACH = 7, 8, 40
One = Callable[[aiohttp.ClientSession], Awaitable[None]]
Pids = Callable[[], list[int]]


async def compared(
    many: Mapping[str, tuple[Pids, One]], ratios: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Rows for each of ``many``, (its processes, one call), and for the medians of the ``ratios`` of two."""
    rates: dict[str, list[float]] = {name: [] for name in many}
    spent: dict[str, list[float]] = {name: [] for name in many}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as http:
        for _, one in many.values():
            await _ready(http, one)
        for _ in range(ROUNDS):
            for name, (pids, one) in many.items():
                before = _seconds(pids())
                rates[name].append(await _rate(http, one))
                spent[name].append((_seconds(pids()) - before) * 1000 / (ABREAST * EACH))
    rows = [
        (name, f"{median(found):,.0f}/s at {ABREAST}, {median(spent[name]):.2f} ms of the processor")
        for name, found in rates.items()
    ]
    for name, beside in ratios:
        faster = median(a / b for a, b in zip(rates[name], rates[beside], strict=True))
        cheaper = median(b / a for a, b in zip(spent[name], spent[beside], strict=True))
        rows.append((f"{name} / {beside}", f"{faster:.2f}, by the processor's time {cheaper:.2f}"))
    return rows


async def _ready(http: aiohttp.ClientSession, one: One) -> None:
    for _ in range(300):  # until it listens, and has run the agent
        try:
            await asyncio.gather(*(one(http) for _ in range(ABREAST)))
            return
        except (aiohttp.ClientError, AssertionError, KeyError):
            await asyncio.sleep(0.1)


async def _rate(http: aiohttp.ClientSession, one: One) -> float:
    async def several() -> None:
        for _ in range(EACH):
            await one(http)

    started = time.perf_counter()
    await asyncio.gather(*(several() for _ in range(ABREAST)))
    return ABREAST * EACH / (time.perf_counter() - started)


def _seconds(pids: list[int]) -> float:
    """Seconds of the processor that these processes took so far."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
