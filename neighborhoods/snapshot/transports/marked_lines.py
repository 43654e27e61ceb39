"""The far side's answer, line by line: those with the run's mark, and the rest, which may be anybody's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from neighborhoods.errors import BadMemberStreamError

_LONGEST_LINE = 1 << 20
_MOST_BYTES = 1 << 30
_MOST_LINES = 8_000_000
"""As many files as four times the largest twin may have, listed before and after it is read."""
_LONGEST_MARKED = 4096
_AT_ONCE = 4096
"""Octets that cost less than a change of threads, whatever they are."""


class MarkedLines:
    """Splits octets into lines, without their ends; ``marked`` gets what follows the mark, ``other`` the rest.

    Raises ``BadMemberStreamError`` for a line, bytes or lines without end.
    """

    def __init__(self, mark: str, marked: Callable[[str], None], other: Callable[[bytes], None]) -> None:
        self._mark = f"{mark} ".encode()
        self._marked, self._other = marked, other
        self._rest = bytearray()
        self._bytes = self._lines = 0

    def feed(self, piece: bytes) -> None:
        """Takes the next octets."""
        self._bytes += len(piece)
        # Only the new octets are searched and copied: a line that comes in thousands of pieces costs no more.
        first, end, others = piece.partition(b"\n")
        self._rest += first
        if len(self._rest) > _LONGEST_LINE or self._bytes > _MOST_BYTES:
            raise _endless()
        if not end:
            return
        line = bytes(self._rest)
        self._rest.clear()
        lines = others.split(b"\n")
        self._rest += lines.pop()
        self._lines += 1 + len(lines)
        if len(self._rest) > _LONGEST_LINE or self._lines > _MOST_LINES:
            raise _endless()
        self._take(line)
        for line in lines:
            if line:  # an empty one is no news to anybody, and most of a hostile answer
                self._take(line)

    async def feed_beside(self, piece: bytes) -> None:
        """``feed`` beside the event loop, which the lines of a piece would hold up."""
        if len(piece) <= _AT_ONCE:
            self.feed(piece)
        else:
            await asyncio.to_thread(self.feed, piece)

    def finish(self) -> None:
        """Takes a last line that has no end."""
        if self._rest:
            self._take(bytes(self._rest))
            self._rest.clear()

    def _take(self, line: bytes) -> None:
        if line.startswith(self._mark):
            self._marked(line[len(self._mark) :][:_LONGEST_MARKED].decode("utf-8", "replace"))
        elif len(line) > _LONGEST_LINE:
            raise _endless()
        else:
            self._other(line)


def _endless() -> BadMemberStreamError:
    return BadMemberStreamError("The answer is longer than any list of files.", do="Look what answers there.")
