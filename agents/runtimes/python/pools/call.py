"""A request to a pool of workers: its id, its state, the callbacks that it makes meanwhile, and what it leaves behind."""

from __future__ import annotations

import asyncio
import logging
import os
import struct
from collections.abc import Awaitable, Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, Protocol

import orjson

from agents.runtimes.python.pools.started_processes import children
from agents.runtimes.python.sandbox.syscalls import LINUX
from agents.runtimes.python.worker.protocol import CALLBACK_BYTES, CALLBACK_PARTS
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


def read_callback(value: bytes) -> tuple[str, dict[str, Any]]:
    """The operation and arguments of a callback. Raises ValueError or TypeError for anything else."""
    if len(value) > CALLBACK_BYTES or value.count(b"[") + value.count(b"{") > CALLBACK_PARTS:
        raise ValueError("a callback that is too large")
    operation, arguments = orjson.loads(value)
    if not isinstance(operation, str) or not isinstance(arguments, dict):
        raise TypeError("not a callback")
    return operation, arguments


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


_LINKS_WITH_ONE_THREAD = 3  # of /proc/PID/task: two as any folder, and one for each thread


class LeftoverCheck:
    """Looks at one worker through descriptors of its ``/proc`` entries, so that a later process with the same number is never taken for it.

    Nothing is found on systems without ``/proc``.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._tasks = _open(f"/proc/{pid}/task", os.O_RDONLY | os.O_DIRECTORY) if LINUX else -1
        self._children = _open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY) if LINUX else -1

    def find(self) -> str:
        """``"2 threads"`` or ``"3 processes"``; "" for none. Ended children do not count."""
        if self._tasks < 0:
            return ""
        try:
            threads = os.fstat(self._tasks).st_nlink - _LINKS_WITH_ONE_THREAD
            if threads > 0:
                return _counted(threads, "thread")
            if self._children >= 0 and not os.pread(self._children, 1, 0):
                return ""
        except OSError:
            return ""  # it ended, which is noticed elsewhere
        running = sum(not _has_ended(pid) for pid in children(self._pid))
        return f"{running} process{'es' * (running > 1)}" if running else ""

    def close(self) -> None:
        """Close the descriptors. Idempotent."""
        for fd in (self._tasks, self._children):
            if fd >= 0:
                os.close(fd)
        self._tasks = self._children = -1


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}"


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return True


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError:
        return -1
