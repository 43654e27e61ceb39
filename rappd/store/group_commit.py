"""Decides when the writer is woken: at once under low load, else once for all active turns together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from rappd.errors import StoreError
from rappd.store.transactions import Resolutions, Waiter

MANY = 4
"""Waiters resolved by one commit from which on load counts as high."""
ENOUGH = 32
"""Waiters for whom the writer is woken at the latest: more in one commit save nothing."""
LOOK_SECONDS = 0.001
LOOKS = 4


class GroupCommitPolicy:
    """Batches waiters under load: a commit costs the same for one turn and for ten, and wakes two threads.

    Under load the writer sleeps until every active turn waits or ``ENOUGH`` do, until nothing was put for
    ``LOOK_SECONDS``, or until ``LOOKS`` such intervals passed. For the event loop only.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._turns = _ActiveTurns()
        self._notify = notify
        self._waiting = 0
        self._recent_most = 0  # the most waiters that one commit resolved lately
        self._timer: asyncio.TimerHandle | None = None
        self._looks = 0
        self._put = self._seen = 0

    def active(self) -> _ActiveTurns:
        """A context manager around a turn that will wait for a commit at least once."""
        return self._turns

    def add_waiter(self, *, waits: bool) -> None:
        """Counts an entry, and wakes the writer now or later for one with a waiter."""
        self._put += 1
        if not waits:
            return
        self._waiting += 1
        if self.is_low_load or self._waiting >= min(ENOUGH, self._turns.active_requests):
            self._wake_now()
        elif self._timer is None:
            self._looks = LOOKS
            self._look_later()

    @property
    def is_low_load(self) -> bool:
        """True while few wait: then each commit may be made at once."""
        return self._recent_most < MANY

    def resolved(self, count: int) -> None:
        """Counts the waiters that one commit resolved."""
        self._waiting -= count
        self._recent_most = max(count, self._recent_most - 1)

    def _look_later(self) -> None:
        self._seen = self._put
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looks -= 1
        if self._looks and self._put != self._seen:
            self._look_later()
        else:
            self._timer = None
            self._notify()

    def _wake_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._notify()


class _ActiveTurns:
    """Counts active turns.

    (A ``contextlib`` context manager takes ten times as long.)
    """

    def __init__(self) -> None:
        self.active_requests = 0

    def __enter__(self) -> None:
        self.active_requests += 1

    def __exit__(self, *_: object) -> None:
        self.active_requests -= 1


class CompletionQueue:
    """Used by one writer, for the futures of one event loop."""

    def __init__(self, group_commit: GroupCommitPolicy) -> None:
        self._group_commit = group_commit
        self._pending: deque[tuple[Waiter, Any]] = deque()

    def post(self, results: Resolutions) -> None:
        """Resolves these futures soon. Thread-safe."""
        if results:
            try:
                results[0][0].get_loop().call_soon_threadsafe(self._settle, results)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _settle(self, results: Resolutions) -> None:
        self._pending += results
        if len(self._pending) == len(results):
            self._resolve()

    def _resolve(self) -> None:
        """Resolves ``ENOUGH`` per iteration of the loop: their next steps begin before the others are resolved."""
        count = min(ENOUGH, len(self._pending))
        self._group_commit.resolved(count)
        for _ in range(count):
            waiter, result = self._pending.popleft()
            if waiter.done():  # cancelled meanwhile
                continue
            if isinstance(result, StoreError):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        if self._pending:
            asyncio.get_running_loop().call_soon(self._resolve)
