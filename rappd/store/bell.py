"""Wakes a sleeping thread, or an event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable


class Bell:
    """One thread waits, any thread rings. A ring while nobody waits ends the next wait at once.

    A bare lock, because ringing happens for every turn: 0.1 µs while the waiter is awake, against
    3 µs for a ``threading.Condition``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Ends the wait under way, or the next one."""
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:  # another thread rang in between, which serves as well
                return

    def wait(self, seconds: float | None = None) -> bool:
        """Sleeps until the bell rings; False when ``seconds`` went by first."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)


class LoopBell:
    """Any thread rings, and ``heard()`` runs on the event loop soon after: once at least for all who rang until then.

    ``call_soon_threadsafe`` wakes the loop's thread while its caller holds the interpreter: it wakes only to wait
    for that. A write to a descriptor lets go of the interpreter first. Where the loop is busy, that would be a
    mistake: who lets go then waits until the loop pauses.
    """

    def __init__(self, heard: Callable[[], None]) -> None:
        self._heard = heard
        self._descriptor = -1
        self._closed = False

    def ring(self, loop: asyncio.AbstractEventLoop, *, is_busy: bool) -> None:
        """From any thread; always for the same loop. Raises RuntimeError when it is closed."""
        if sys.platform == "linux" and self._descriptor >= 0 and not is_busy:
            os.eventfd_write(self._descriptor, 1)
        else:
            loop.call_soon_threadsafe(self._answer, loop)

    def close(self) -> None:
        """On the loop, once nobody rings any more. Whoever rang was heard when it returns."""
        self._closed = True
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        self._heard()

    def _answer(self, loop: asyncio.AbstractEventLoop) -> None:
        if sys.platform == "linux" and self._descriptor < 0 and not self._closed:
            self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            loop.add_reader(self._descriptor, self._read)
        self._heard()

    def _read(self) -> None:
        if sys.platform == "linux":
            os.eventfd_read(self._descriptor)
        self._heard()
