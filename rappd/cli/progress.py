"""One line that says what is being worked on, and goes when the work is done."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rappd.cli.console import dim, plain, redraws, terminal_width
from rappd.cli.tables import beginning

_PATIENCE = 0.5
_REST = 0.1


class Progress:
    """Writes on stderr, only with a terminal, and only what takes longer than half a second."""

    def __init__(self) -> None:
        self._text = self._drawn = ""
        self._written = self._waits = False
        self._lock = threading.Lock()
        self._shown = redraws(sys.stderr)
        self._next = time.monotonic() + _PATIENCE
        if self._shown:
            self._draw_in(_PATIENCE)

    def __call__(self, text: str, *, at_once: bool = False) -> None:
        """Shows the present state, ten times a second at most, unless ``at_once``."""
        with self._lock:
            self._text = text
            if not self._shown:
                return
            if at_once or time.monotonic() >= self._next:
                self._draw()
            elif not self._waits:
                self._draw_in(self._next - time.monotonic())

    def clear(self) -> None:
        """Takes the line away."""
        with self._lock:
            self._text = ""
            if self._written:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._written, self._drawn = False, ""

    def _draw_in(self, seconds: float) -> None:
        """Shows what is the state then: nothing may call before the work goes on."""
        self._waits = True
        timer = threading.Timer(max(0.0, seconds), self._due)
        timer.daemon = True
        timer.start()

    def _due(self) -> None:
        with self._lock:
            self._waits = False
            if self._text and self._text != self._drawn:
                self._draw()

    def _draw(self) -> None:
        self._next = time.monotonic() + _REST
        self._written, self._drawn = True, self._text
        text = beginning(plain(self._text, sys.stderr), terminal_width(sys.stderr) - 1)
        sys.stderr.write(f"\r\x1b[K{dim(text)}")
        sys.stderr.flush()


@contextmanager
def progress(text: str = "") -> Iterator[Progress]:
    """A line for the work inside, which begins with ``text``; it is gone afterwards, whatever happens."""
    shown = Progress()
    try:
        shown(text)
        yield shown
    finally:
        shown.clear()
