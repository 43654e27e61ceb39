"""Reads what a worker prints: one pipe, line by line, without letting a flood through."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

LINE_BYTES = 4096
LINES_PER_SECOND = 200
_CHUNK = 1 << 16
_LAST_CHUNKS = 32  # more than a pipe holds


class Output:
    """Reads ``fd`` and hands each line to ``on_line``.

    Lines are cut at 4096 bytes. Beyond 200 lines in a second the rest is only counted, and the count
    handed over as one line when that second, or the output, is over.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, on_line: Callable[[str], None]) -> None:
        self._loop = loop
        self._fd = fd
        self._on_line = on_line
        self._started = b""
        self._cutting = False
        self._left = LINES_PER_SECOND
        self._dropped = 0
        self._second: asyncio.TimerHandle | None = None
        os.set_blocking(fd, False)
        loop.add_reader(fd, self._read)

    def close(self) -> None:
        """Hand over what is there and stop reading."""
        if self._fd < 0:
            return
        for _ in range(_LAST_CHUNKS):
            if self._fd < 0 or not self._read():
                break
        if self._fd >= 0:
            self._end()

    def _read(self) -> bool:
        try:
            chunk = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._end()
            return False
        if self._second is None:
            self._second = self._loop.call_later(1.0, self._next_second)
        if self._left:
            self._take(chunk)
        else:
            self._skip(chunk)
        return True

    def _take(self, chunk: bytes) -> None:
        lines = (self._started + chunk).split(b"\n", self._left)
        rest = lines.pop()
        for line in lines:
            self._hand(line)
        self._started = b""
        if not self._left:
            self._skip(rest)
        elif len(rest) > LINE_BYTES:
            self._hand(rest)
            self._cutting = True
        elif not self._cutting:
            self._started = rest

    def _hand(self, line: bytes) -> None:
        if self._cutting:  # the tail of a line whose beginning was handed over
            self._cutting = False
            return
        self._left -= 1
        self._on_line(line[:LINE_BYTES].decode("utf-8", "replace"))

    def _skip(self, chunk: bytes) -> None:
        if not chunk:
            return
        self._dropped += chunk.count(b"\n")
        self._cutting = not chunk.endswith(b"\n")

    def _next_second(self) -> None:
        self._second = None
        self._left = LINES_PER_SECOND
        if self._report_dropped():
            self._second = self._loop.call_later(1.0, self._next_second)

    def _end(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._fd = -1
        if self._second is not None:
            self._second.cancel()
        if self._started:
            self._hand(self._started)
        self._report_dropped()

    def _report_dropped(self) -> bool:
        dropped, self._dropped = self._dropped, 0
        if dropped:
            self._on_line(f"({dropped} more lines, not kept)")
        return dropped > 0
