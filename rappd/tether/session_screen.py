"""A page of this computer that follows a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from rappd.sessions.participants import OWNER

_KEEP_WAITING = 64
_LOOK_SECONDS = 1.0


class Screen:
    """A listener whose messages wait to be sent. One that reads too slowly ends, and comes back for what it missed."""

    name = OWNER
    behind = False

    def __init__(self, last_seq: int) -> None:
        self.last_seq = last_seq
        self._queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def show(self, message: dict[str, Any]) -> None:
        """Queues a message for the page, or lets go a page that is too far behind."""
        self._queue.put_nowait(message if self._queue.qsize() < _KEEP_WAITING else None)

    def close(self) -> None:
        """Lets the page go."""
        self._queue.put_nowait(None)

    async def messages(self, connected: Callable[[], bool]) -> AsyncIterator[dict[str, Any]]:
        """Messages until it is closed or no longer ``connected``, which is asked every second."""
        while connected():
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    message = await self._queue.get()
            except TimeoutError:
                continue
            if message is None:
                return
            yield message
