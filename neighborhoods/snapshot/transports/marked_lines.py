"""The far side's answer, line by line: those with the run's mark, and the rest, which may be anybody's."""

from __future__ import annotations

from collections.abc import Callable

from neighborhoods.errors import BadMemberStreamError

_LONGEST_LINE = 1 << 20
_MOST_BYTES = 1 << 30


class MarkedLines:
    """Splits octets into lines, without their ends; ``marked`` gets what follows the mark, ``other`` the rest.

    Raises ``BadMemberStreamError`` for lines without end.
    """

    def __init__(self, mark: str, marked: Callable[[str], None], other: Callable[[bytes], None]) -> None:
        self._mark = f"{mark} ".encode()
        self._marked, self._other = marked, other
        self._rest = b""
        self._bytes = 0

    def feed(self, piece: bytes) -> None:
        """Takes the next octets."""
        self._bytes += len(piece)
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _LONGEST_LINE or self._bytes > _MOST_BYTES:
            raise BadMemberStreamError(
                "The answer is longer than any list of files.", do="Look what answers there."
            )
        for line in lines:
            self._take(line)

    def finish(self) -> None:
        """Takes a last line that has no end."""
        if self._rest:
            self._take(self._rest)
            self._rest = b""

    def _take(self, line: bytes) -> None:
        if line.startswith(self._mark):
            self._marked(line[len(self._mark) :].decode("utf-8", "replace"))
        else:
            self._other(line)
