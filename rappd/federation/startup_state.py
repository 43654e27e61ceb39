"""The state of the federation's start, and the parts that are there only after it."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from envelopes.errors import ReportableError
from rappd.errors import ConflictError, NotRunningError

READY_SECONDS = 30.0

T = TypeVar("T")


class Availability:
    """The state of the start: under way, through, failed for a reason and tried again, or never to come in this process.

    All calls come from the event loop.
    """

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        """Set once the start is through."""
        self.rests = False
        """True in a command without a daemon."""
        self.failure: ReportableError | None = None
        """The reason why it could not start yet; it tries again."""
        self._settled = asyncio.Event()  # ready, or failed at least once

    def damaged(self, problem: ReportableError) -> None:
        """The peers could not be read. Requests wait all the same: the start reads them again."""
        self.failure = problem

    def failed(self, problem: ReportableError) -> None:
        """The start failed; requests that wait for it are refused with the reason."""
        self.failure = problem
        self._settled.set()

    def recovered(self) -> None:
        """The start goes on after a failure."""
        self.failure = None

    def started(self) -> None:
        """The start is through."""
        self.ready.set()
        self._settled.set()

    def rest(self) -> None:
        """No start will come: a command has this process to itself."""
        self.rests = True
        self.failed(NotRunningError("rappd isn't running here.", do="rappd start"))

    def problem(self) -> ReportableError:
        """The reason why a part is not there."""
        return self.failure or ConflictError("Other machines cannot be reached yet.", do="rappd logs")

    async def wait(self) -> None:
        """Returns once the start is through. Raises why it failed, or ``ConflictError`` when it takes too long."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._settled.wait()
        except TimeoutError:
            raise ConflictError("Other machines cannot be reached yet.", do="rappd logs") from None
        if self.failure is not None:
            raise self.failure


class Deferred(Generic[T]):
    """A part that the start makes, for those that are made before it: its modules are heavy, or it reads the store."""

    def __init__(self, availability: Availability) -> None:
        self._availability = availability
        self._part: T | None = None

    def set(self, part: T) -> None:
        """Gives the part, for the start; one that is tried again gives another."""
        self._part = part

    @property
    def is_set(self) -> bool:
        """True once the part was made."""
        return self._part is not None

    def now(self) -> T:
        """The part. Raises ``ReportableError`` before it was made."""
        if self._part is None:
            raise self._availability.problem()
        return self._part

    async def ready(self) -> T:
        """The part, once the start is through. Raises as ``Availability.wait`` does."""
        await self._availability.wait()
        return self.now()
