"""A read-write lock for tasks: many that change one thing each, or one that changes any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ReadWriteLock:
    """``alone`` waits for everybody and keeps everybody out; ``together`` shares with others of its kind.

    Who wants to be alone is not overtaken by later comers.
    """

    def __init__(self) -> None:
        self._sharing = 0
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._gate = asyncio.Lock()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """A turn with nobody else."""
        async with self._gate:
            await self._nobody.wait()
            yield

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """A turn beside others that share."""
        async with self._gate:
            self._sharing += 1
            self._nobody.clear()
        try:
            yield
        finally:
            self._sharing -= 1
            if not self._sharing:
                self._nobody.set()
