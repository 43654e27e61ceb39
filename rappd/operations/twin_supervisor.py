"""The interface to running twins that operations need, and its stand-in while no daemon runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from rappd.errors import NotRunningError
from rappd.tenants.autostart import AutostartRegistry
from twins.workspace.listing import Presence


class TwinSupervisor(Protocol):
    """Starts and stops twins. With the daemon down no twin runs (``OfflineTwinSupervisor``)."""

    def presence(self, key: str) -> Presence:
        """Returns the present state of a twin."""
        ...

    def running(self) -> dict[str, int]:
        """Ports of the twins that have one, by key."""
        ...

    async def boot(self, selector: str) -> int:
        """Gives a twin a port."""
        ...

    async def stop(self, key: str) -> None:
        """Ends it."""
        ...

    async def let_sleep(self, key: str) -> bool:
        """Stops it once its active requests are answered; True when it is stopped already."""
        ...

    def is_answering(self, key: str) -> bool:
        """True while a request to the twin is active, perhaps of the very agent that asks."""
        ...

    def activity(self, key: str) -> str:
        """A mark of the twin that is another one after each request to it; "" while no daemon runs."""
        ...

    def once_answered(self, key: str, what: str, work: Callable[[], Awaitable[object]]) -> None:
        """Runs ``work``, its ``what``, once its active requests are answered."""
        ...

    def apart(self, key: str) -> AbstractAsyncContextManager[None]:
        """Nothing of it begins to run until the block is left."""
        ...

    def resting(self, key: str) -> AbstractAsyncContextManager[None]:
        """Nothing of it runs meanwhile; one that was running is started again."""
        ...

    def renamed(self, key: str, name: str) -> None:
        """Tells what people call it from now on."""
        ...


class OfflineTwinSupervisor:
    """Twins while no daemon runs: one that was running when it ended can only be kept from waking again."""

    def __init__(self, wakes: AutostartRegistry) -> None:
        self._wakes = wakes
        self._ports = wakes.all()

    def presence(self, key: str) -> Presence:
        return Presence(port=self._ports.get(key) or None)

    def running(self) -> dict[str, int]:
        return {}

    async def boot(self, selector: str) -> int:
        raise NotRunningError("rappd isn't running here.", do="rappd start")

    async def stop(self, key: str) -> None:
        await asyncio.to_thread(self._wakes.forget, key)

    async def let_sleep(self, key: str) -> bool:
        await self.stop(key)
        return True

    def is_answering(self, key: str) -> bool:
        return False

    def activity(self, key: str) -> str:
        return ""

    def once_answered(self, key: str, what: str, work: Callable[[], Awaitable[object]]) -> None:
        raise NotRunningError("rappd isn't running here.", do="rappd start")

    @asynccontextmanager
    async def apart(self, key: str) -> AsyncIterator[None]:
        yield

    resting = apart

    def renamed(self, key: str, name: str) -> None:
        return None
