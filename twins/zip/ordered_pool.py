"""Work on all cores, done a bounded stretch ahead and taken in the order in which it was handed in."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

_MOST_THREADS = 4  # more than these wait for the disk and for each other
_AT_ONCE = 4  # pieces of work that are done by the time threads would have started
_AHEAD = 2  # pieces of work for each thread, besides the one it is at
_MOMENT = 0.1
_TASK_BYTES, _TASK_FILES = 1 << 20, 64


class PoolStoppedError(Exception):
    """This piece of work is not wanted any more: an earlier one failed, or its caller gave up."""


class OrderedThreadPool(Generic[T]):
    """A context manager; leaving it waits for nothing but what is under way, which ``unless_stopped`` ends soon.

    What a piece of work raises is raised when its turn comes, so that of several failures the first in order
    is told. Work should let go of the interpreter: hashing, deflating, reading and writing do. Where there is
    one core, and until there is more than a little to do, all of it is done by the thread that hands it in.
    """

    def __init__(self, *, threads: int | None = None, meanwhile: Callable[[], object] | None = None) -> None:
        """``threads``: how many may work; as many as there are cores without it.

        ``meanwhile`` is called from time to time while others work.
        """
        self._threads = min(_cores(), _MOST_THREADS) if threads is None else threads
        self._meanwhile = meanwhile
        self._alone = _AT_ONCE
        self._pool: ThreadPoolExecutor | None = None
        self._pending: deque[Future[T]] = deque()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, work: Callable[[], T]) -> list[T]:
        """Hands in a piece of work; what is done by now and has to make room for it."""
        if self._pool is None:
            if self._threads < 2 or self._alone:
                self._alone -= 1 if self._alone else 0
                return [work()]
            self._pool = _pool(self._threads)
        self._pending.append(self._pool.submit(work))
        return [self._next_result()] if len(self._pending) > self._threads * (1 + _AHEAD) else []

    def each(self, works: Iterable[Callable[[], T]]) -> Iterator[T]:
        """The results of all of these, in their order."""
        for work in works:
            yield from self.put(work)
        yield from self.rest()

    def rest(self) -> Iterator[T]:
        """Items that were handed in and not taken yet."""
        while self._pending:
            yield self._next_result()

    def unless_stopped(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """``pieces``, until nobody wants them any more; then it raises ``stopped``. For work that takes long."""
        for piece in pieces:
            if self._stopped:
                raise PoolStoppedError
            yield piece

    def _next_result(self) -> T:
        next_one = self._pending.popleft()
        if self._meanwhile is not None:
            while not next_one.done():
                _wait(next_one)
                self._meanwhile()
        return next_one.result()

    def close(self) -> None:
        """Gives up what was not taken; no thread is left. Twice is once."""
        self._stopped = True
        self._pending.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
            self._threads = 0


@contextmanager
def beside(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Does one piece of work meanwhile, on a thread of its own; what this gives waits for it, and returns or raises what it comes to.

    It is over when the context is left, however that is.
    """
    with _pool(1) as pool:
        yield pool.submit(work).result


def in_tasks(sizes: Iterable[tuple[T, int]]) -> Iterator[list[T]]:
    """Groups items of these sizes, in their order, so many together that handing them on costs little.

    Small files by the dozen, large ones one by one.
    """
    task: list[T] = []
    octets = 0
    for one, size in sizes:
        if task and (octets + size > _TASK_BYTES or len(task) >= _TASK_FILES):
            yield task
            task, octets = [], 0
        task.append(one)
        octets += size
    if task:
        yield task


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _wait(future: Future[Any]) -> None:
    from concurrent.futures import wait

    wait((future,), timeout=_MOMENT)


def _pool(threads: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # small eggs never need it

    return ThreadPoolExecutor(threads, thread_name_prefix="eggs")
