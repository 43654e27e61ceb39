"""A request to a pool of workers: its id, its state, and the callbacks that it makes meanwhile."""

from __future__ import annotations

import asyncio
import logging
import os
import struct
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Any, Protocol

import orjson

from envelopes.errors import ReportableError

OnCallback = Callable[[str, dict[str, Any]], Awaitable[Any]]
ReadAnswer = Callable[[bytes], Any]
"""Makes the value of an answer out of its JSON; whatever it raises is that call's failure."""

OnUse = Callable[[str, bool], None]
"""Told each ``host:port`` that a call with declared needs asks for, and whether it was given."""

_BATCH = struct.Struct("<256Q")


class Call:
    """``frame`` is ``[id, operation, body]`` as JSON.

    A call is over once its future is done. ``together``, ``read`` and ``on_use``: see ``WorkerPool.request``.
    """

    __slots__ = (
        "deadline",
        "frame",
        "future",
        "ident",
        "on_callback",
        "on_use",
        "read",
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
        read: ReadAnswer = orjson.loads,
        on_use: OnUse | None = None,
    ) -> None:
        self.ident = ident
        self.frame = frame
        self.future = future
        self.since = since
        self.timeout = timeout
        self.deadline = since + timeout
        self.on_callback = on_callback
        self.together = together
        self.read = read
        self.on_use = on_use
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


_log = logging.getLogger(__name__)


class Asker(Protocol):
    """The worker that asked; it waits for exactly one reply."""

    def reply(self, worked: bool, value: Any) -> None:
        """Send the answer to its open callback. Raises TypeError for what is not JSON."""
        ...


def start_callback(worker: Asker, call: Call, operation: str, arguments: dict[str, Any]) -> None:
    """Run the handler of ``call`` in a task and reply to the worker; reply with a refusal if there is none."""
    if call.on_callback is None:
        words = f"nobody here answers {operation!r}"
        worker.reply(False, {"message": words, "code": "callback_refused"})
        return
    task = asyncio.get_running_loop().create_task(_perform(worker, call, operation, arguments))
    call.tasks = call.tasks or set()
    call.tasks.add(task)
    task.add_done_callback(call.tasks.discard)


async def _perform(worker: Asker, call: Call, operation: str, arguments: dict[str, Any]) -> None:
    assert call.on_callback is not None
    try:
        worker.reply(True, await call.on_callback(operation, arguments))
    except asyncio.CancelledError:
        worker.reply(False, {"message": "the request is over", "code": "callback"})
        raise
    except ReportableError as problem:
        worker.reply(False, {"message": str(problem), "code": problem.code})
    except Exception:  # noqa: BLE001 - the worker must be answered, and only the log may hold the details
        _log.exception("callback %s failed", operation)
        worker.reply(False, {"message": f"{operation} failed", "code": "callback"})
