"""Resolves the futures of committed entries on the event loop, in the order of the commits."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from rappd.errors import StoreError
from rappd.store.group_commit import ENOUGH, GroupCommitPolicy
from rappd.store.transactions import Resolutions, Waiter


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
