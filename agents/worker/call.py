"""One request on its way through a crew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

OnCallback = Callable[[str, dict[str, Any]], Awaitable[Any]]


class Call:
    """``body`` is ``[op, body]`` as JSON. ``number`` is its place in the queue's withdrawal marks, -1 while
    no queue has it. A call is over once its future is done, also when the queue still holds it."""

    __slots__ = (
        "body",
        "deadline",
        "future",
        "ident",
        "number",
        "on_callback",
        "since",
        "tasks",
        "timeout",
        "tries",
    )

    def __init__(
        self,
        ident: int,
        body: bytes,
        future: asyncio.Future[Any],
        since: float,
        timeout: float,
        on_callback: OnCallback | None,
    ) -> None:
        self.ident = ident
        self.body = body
        self.future = future
        self.since = since
        self.timeout = timeout
        self.deadline = since + timeout
        self.on_callback = on_callback
        self.number = -1
        self.tries = 0  # queues it went through of which no worker took anything
        self.tasks: set[asyncio.Task[None]] | None = None

    def succeed(self, value: Any) -> None:
        """Give ``value`` to whoever waits, unless the call is over."""
        if not self.future.done():
            self.future.set_result(value)
        self.drop_tasks()

    def fail(self, problem: BaseException) -> None:
        """Raise ``problem`` for whoever waits, unless the call is over."""
        if not self.future.done():
            self.future.set_exception(problem)
        self.drop_tasks()

    def drop_tasks(self) -> None:
        """Cancel callbacks still being handled: nobody waits for them any more."""
        if self.tasks:
            for task in self.tasks:
                task.cancel()
