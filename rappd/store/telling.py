"""Tells who waits what came of it: from any thread, on the event loop, in the order in which it was found out."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from rappd.errors import StoreError
from rappd.store.bell import LoopBell
from rappd.store.gathering import ENOUGH, Gathering
from rappd.store.tables import Done, Waiter


class Telling:
    """For one writer, and those who wait on one loop."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._results: deque[Done] = deque()
        self._untold: deque[tuple[Waiter, Any]] = deque()
        self._bell = LoopBell(self._settle)

    def deliver(self, results: Done) -> None:
        """From any thread: they are told soon."""
        if results:
            self._results.append(results)
            try:
                self._bell.ring(results[0][0].get_loop(), is_busy=not self._gathering.quiet)
            except RuntimeError:  # a closed loop has nobody left to tell
                return

    @property
    def is_idle(self) -> bool:
        """Whether nobody is to be told before who is told now. On the loop."""
        return not self._results and not self._untold

    def tell(self, results: Done) -> None:
        """On the loop: now, or after all before."""
        if self.is_idle:
            self._untold += results
            self._tell()
        else:
            self.deliver(results)

    def close(self) -> None:
        """On the loop, once nothing is delivered any more. Whoever waited is told, or will be in a moment."""
        self._bell.close()

    def _settle(self) -> None:
        while self._results:
            results = self._results.popleft()
            self._untold += results
            if len(self._untold) == len(results):
                self._tell()

    def _tell(self) -> None:
        """``ENOUGH`` in one round of the loop: what these do next begins before the others go on."""
        told = min(ENOUGH, len(self._untold))
        self._gathering.answered(told)
        for _ in range(told):
            waiter, result = self._untold.popleft()
            if waiter.done():  # cancelled meanwhile
                continue
            if isinstance(result, StoreError):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        if self._untold:
            asyncio.get_running_loop().call_soon(self._tell)
