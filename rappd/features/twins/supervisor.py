"""The interface to running twins that operations need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from twins.workspace.listing import Presence


class TwinSupervisor(Protocol):
    """Starts and stops twins."""

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
