"""Tasks that run beside everything else, for the layers above, too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Tasks of one owner. It keeps them alive: the event loop alone holds them weakly, and may lose one.

    ``failed`` handles the error of a task, or is a sentence for the log; cancellation is no error. All calls come from
    the event loop.
    """

    def __init__(self, failed: str | Callable[[BaseException], object]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Awaitable[_T]) -> asyncio.Task[_T]:
        """Runs ``work`` until it ends, or ``close``."""
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def cancel(self) -> None:
        """Cancels all, and waits for none."""
        for task in self._tasks:
            task.cancel()

    async def settle(self) -> None:
        """Returns once all that run now have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Cancels all, and returns once they have ended."""
        self.cancel()
        await self.settle()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if callable(self._failed):
            self._failed(error)
        else:
            log.error("%s", self._failed, exc_info=error)
