"""One line that says what is being worked on, and goes when the work is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rappd.cli.screen import dim, redraws, terminal_width, utf8
from rappd.cli.tables import beginning

_PATIENCE = 0.5
_REST = 0.1


class Progress:
    """Writes on stderr, only with a terminal, and only what takes longer than half a second."""

    def __init__(self) -> None:
        self._shown = redraws(sys.stderr)
        self._next = time.monotonic() + _PATIENCE
        self._written = False

    def __call__(self, text: str, *, at_once: bool = False) -> None:
        """What is so now; shown ten times a second at most, unless ``at_once``."""
        now = time.monotonic()
        if not self._shown or (now < self._next and not at_once):
            return
        self._next = now + _REST
        self._written = True
        text = text if utf8(sys.stderr) else text.replace("…", "...")
        sys.stderr.write(f"\r\x1b[K{dim(beginning(text, terminal_width(sys.stderr) - 1))}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Takes the line away."""
        if self._written:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._written = False


@contextmanager
def progress() -> Iterator[Progress]:
    """A line for the work inside; it is gone afterwards, whatever happens."""
    line = Progress()
    try:
        yield line
    finally:
        line.clear()
