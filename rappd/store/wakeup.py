"""Wakes a sleeping thread."""

from __future__ import annotations

import threading


class ThreadWakeup:
    """One thread waits, any thread notifies. A notification while nobody waits ends the next wait at once.

    A bare lock, because it is notified for every turn: 0.1 µs while the waiter is running, against
    3 µs for a ``threading.Condition``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def notify(self) -> None:
        """Ends the wait under way, or the next one."""
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:  # another thread notified in between, which has the same effect
                return

    def wait(self, seconds: float | None = None) -> bool:
        """Sleeps until notified; False when ``seconds`` went by first."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)
