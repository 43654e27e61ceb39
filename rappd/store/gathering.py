"""When the writer is woken for those who wait: at once, or, where many do, for all of them together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

MANY = 4
"""Answered by one commit; then the next ones gather."""
ENOUGH = 32
"""More in one commit save nothing, and would only wait for one another."""
LOOK_SECONDS = 0.001
LOOKS = 4


class Gathering:
    """A commit costs the same for one turn and for ten, and a change of threads each.

    So where many turns flow, the writer sleeps on until every turn under way waits for it or ``ENOUGH`` do, until
    nothing was put for ``LOOK_SECONDS``, or until it was looked ``LOOKS`` times. Used on the event loop alone.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._turns = _Turns()
        self._ring = ring
        self._waiting = 0
        self._abreast = 0  # the most that one commit answered lately
        self._timer: asyncio.TimerHandle | None = None
        self._looks = 0
        self._put = self._seen = 0

    def turn(self) -> _Turns:
        """A block that will come to wait here, at least once."""
        return self._turns

    def put(self, *, waits: bool) -> None:
        """An entry was put."""
        self._put += 1
        if not waits:
            return
        self._waiting += 1
        if self.quiet or self._waiting >= min(ENOUGH, self._turns.active_requests):
            self._now()
        elif self._timer is None:
            self._looks = LOOKS
            self._look_later()

    def joins(self) -> None:
        """Somebody waits who needs no writer to be woken."""
        self._put += 1
        self._waiting += 1

    @property
    def quiet(self) -> bool:
        """Whether few wait: then a commit more costs nobody anything."""
        return self._abreast < MANY

    def answered(self, count: int) -> None:
        """One commit answered so many."""
        self._waiting -= count
        self._abreast = max(count, self._abreast - 1)

    def _look_later(self) -> None:
        self._seen = self._put
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looks -= 1
        if self._looks and self._put != self._seen:
            self._look_later()
        else:
            self._timer = None
            self._ring()

    def _now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ring()


class _Turns:
    """How many such blocks are under way. (``contextlib`` takes ten times as long.)"""

    def __init__(self) -> None:
        self.active_requests = 0

    def __enter__(self) -> None:
        self.active_requests += 1

    def __exit__(self, *_: object) -> None:
        self.active_requests -= 1
