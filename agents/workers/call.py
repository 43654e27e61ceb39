"""One request to a pool of workers, and the ids of requests."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Any

OnCallback = Callable[[str, dict[str, Any]], Awaitable[Any]]

_BATCH = struct.Struct("<256Q")


class Call:
    """``frame`` is ``[id, operation, body]`` as JSON. A call is over once its future is done. ``together``: see
    ``WorkerPool.request``."""

    __slots__ = (
        "deadline",
        "frame",
        "future",
        "ident",
        "on_callback",
        "since",
        "tasks",
        "timeout",
        "together",
        "tries",
    )

    def __init__(
        self,
        ident: int,
        frame: bytes,
        future: asyncio.Future[Any],
        since: float,
        timeout: float,
        on_callback: OnCallback | None,
        together: Hashable | None = None,
    ) -> None:
        self.ident = ident
        self.frame = frame
        self.future = future
        self.since = since
        self.timeout = timeout
        self.deadline = since + timeout
        self.on_callback = on_callback
        self.together = together
        self.tries = 0  # workers that ended before they read it
        self.tasks: set[asyncio.Task[None]] | None = None

    def succeed(self, value: Any) -> None:
        """Give ``value`` to the caller, unless the call is over."""
        if not self.future.done():
            self.future.set_result(value)
        self.drop_tasks()

    def fail(self, problem: BaseException) -> None:
        """Raise ``problem`` for the caller, unless the call is over."""
        if not self.future.done():
            self.future.set_exception(problem)
        self.drop_tasks()

    def drop_tasks(self) -> None:
        """Cancel callbacks that are still handled."""
        if self.tasks:
            for task in self.tasks:
                task.cancel()


def random_ids() -> Iterator[int]:
    """Endless 64-bit ids that cannot be guessed; 0 stands for no call and is never one."""
    while True:
        yield from filter(None, _BATCH.unpack(os.urandom(_BATCH.size)))
