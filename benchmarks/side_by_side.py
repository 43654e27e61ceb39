"""Servers of one protocol side by side: asked in turn, so that what else the computer does meets all of them.

A rate depends on what else it does; the time of the processor that a call takes does so less. Each is asked over
connections of the barest kind, so that the client takes little of the computer from any of them.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

ROUNDS, ABREAST, EACH = 7, 8, 40
_SCHEDULED = 2
"""The kernel's name of a process's clock is made of its id and this (``clock_getcpuclockid`` of POSIX)."""
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class Line(asyncio.Protocol):
    """A connection that stays open, for one request after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[bytes] | None = None

    async def post(self, path: str, body: object, headers: Mapping[str, str]) -> bytes:
        """The answer to JSON, its head included. Raises ``ConnectionError`` where the server hangs up."""
        loop = asyncio.get_running_loop()
        if self._transport is None or self._transport.is_closing():
            await loop.create_connection(lambda: self, "127.0.0.1", self._port)
            assert self._transport is not None
        content = json.dumps(body).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nUser-Agent: bench/1\r\n{more}"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self._waiting = loop.create_future()
        self._transport.write(head.encode() + content)
        return await self._waiting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Implements ``asyncio.Protocol``."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Implements ``asyncio.Protocol``."""
        self._received += data
        if _is_whole(self._received) and self._waiting is not None:
            answer, self._received = self._received, b""
            self._waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Implements ``asyncio.Protocol``."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionError("the server hung up"))

    def close(self) -> None:
        """Hangs up."""
        if self._transport is not None:
            self._transport.close()


def _is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    if _CHUNKED.search(head):
        return body.endswith(b"\r\n0\r\n\r\n")
    length = _LENGTH.search(head)
    return length is None or len(body) >= int(length[1])


One = Callable[[Line], Awaitable[None]]
Pids = Callable[[], list[int]]


async def compared(
    many: Mapping[str, tuple[Pids, int, One]], ratios: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Rows for each of ``many``, (its processes, its port, one call), and for the medians of the ``ratios`` of two."""
    rates: dict[str, list[float]] = {name: [] for name in many}
    spent: dict[str, list[float]] = {name: [] for name in many}
    asking: list[float] = []
    lines = {name: [Line(port) for _ in range(ABREAST)] for name, (_, port, _) in many.items()}
    for name, (_, _, one) in many.items():
        await _ready(lines[name][0], one)
        await _rate(lines[name], one)
    for _ in range(ROUNDS):
        for name, (pids, _, one) in many.items():
            before, own = _seconds(pids()), time.process_time()
            rates[name].append(await _rate(lines[name], one))
            asking.append((time.process_time() - own) * 1000 / (ABREAST * EACH))
            spent[name].append(_between(before, _seconds(pids())) * 1000 / (ABREAST * EACH))
    for line in (line for some in lines.values() for line in some):
        line.close()
    rows = [
        (name, f"{median(found):,.0f}/s at {ABREAST}, {median(spent[name]):.2f} ms of the processor")
        for name, found in rates.items()
    ]
    rows.append(("the client", f"{median(asking):.2f} ms of the processor"))
    for name, beside in ratios:
        faster = median(a / b for a, b in zip(rates[name], rates[beside], strict=True))
        cheaper = median(b / a for a, b in zip(spent[name], spent[beside], strict=True))
        rows.append((f"{name} / {beside}", f"{faster:.2f}, by the processor's time {cheaper:.2f}"))
    return rows


async def _ready(line: Line, one: One) -> None:
    """Returns once it answers."""
    for _ in range(200):
        try:
            await one(line)
        except (OSError, AssertionError, KeyError):
            await asyncio.sleep(0.1)
        else:
            return
    raise RuntimeError("it did not start")


async def _rate(lines: Sequence[Line], one: One) -> float:
    async def several(line: Line) -> None:
        for _ in range(EACH):
            await one(line)

    started = time.perf_counter()
    await asyncio.gather(*(several(line) for line in lines))
    return len(lines) * EACH / (time.perf_counter() - started)


def family(pid: int) -> list[int]:
    """A process and all that it started, and they in turn."""
    found, ahead = [], [pid]
    while ahead:
        found.append(ahead.pop())
        try:
            ahead += map(int, Path(f"/proc/{found[-1]}/task/{found[-1]}/children").read_text().split())
        except OSError:
            continue
    return found


def _seconds(pids: list[int]) -> dict[int, float]:
    """Seconds of the processor that each process took so far, by its clock: ``/proc`` ticks too slowly."""
    spent = {}
    for pid in pids:
        try:
            spent[pid] = time.clock_gettime((~pid << 3) | _SCHEDULED)
        except OSError:
            continue
    return spent


def _between(before: dict[int, float], after: dict[int, float]) -> float:
    """Seconds between two looks, of the processes that are still there."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
