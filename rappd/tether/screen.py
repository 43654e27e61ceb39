"""A page of this computer that follows a session."""

from __future__ import annotations

import asyncio
from typing import Any

from rappd.tether.devices import OWNER

_KEEP_WAITING = 64


class Screen:
    """A listener whose messages wait to be sent. One that reads too slowly ends, and comes back for what it missed."""

    name = OWNER
    behind = False

    def __init__(self, last_seq: int) -> None:
        self.last_seq = last_seq
        self._queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def show(self, message: dict[str, Any]) -> None:
        """See ``Listener``."""
        self._queue.put_nowait(message if self._queue.qsize() < _KEEP_WAITING else None)

    def close(self) -> None:
        """Lets the page go."""
        self._queue.put_nowait(None)

    async def next(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        return await self._queue.get()
