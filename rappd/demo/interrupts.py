"""Ctrl-C while daemons run that must not stay behind: the first ends the story, others only hurry its end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Ctrl-C, being told to end, and a terminal that is lost, as long as the block lasts.

    The first raises ``KeyboardInterrupt``, once for all: nothing that tidies up afterwards is interrupted, and
    the process, which ends by it, listens to no other.
    """

    def __init__(self) -> None:
        self._came = 0
        self._deferred = self._raised = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _NUMBERS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._raised else handler)

    def hurried(self) -> bool:
        """True when somebody who waits for the end has grown impatient."""
        return self._came > 1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is interrupted within the block; what came is raised at its end."""
        before, self._deferred = self._deferred, True
        try:
            yield
        finally:
            self._deferred = before
        self._raise()

    @contextmanager
    def until_here(self) -> Iterator[None]:
        """Keeps interrupts from whatever comes after the block."""
        try:
            yield
        finally:
            self._deferred = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came += 1
        self._raise()

    def _raise(self) -> None:
        if self._came and not self._deferred and not self._raised:
            self._raised = True
            raise KeyboardInterrupt
