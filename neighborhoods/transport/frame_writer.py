"""Write coalescing: all messages of one event loop iteration make one WebSocket frame.

The reply to a request that is the only active one is sent at once instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from aiohttp import WSMsgType

from envelopes.codecs.emergence import MAX_BYTES

MAX_FRAME = MAX_BYTES
TOGETHER = 32
"""Envelopes in a frame. With more, each machine would stand still until the other is done with all of them."""
MUCH = 64
"""Unsent envelopes; further senders wait."""

LAST_SECONDS = 0.2


class FrameSink(Protocol):
    """The WebSocket methods that writing needs."""

    async def send_frame(self, message: bytes, opcode: WSMsgType) -> None:
        """Writes one frame."""
        ...


class FrameWriter:
    """One side's words.

    ``several``: the other side takes arrays; of ``TOGETHER`` envelopes and ``MAX_FRAME`` bytes at most, then.
    Else each envelope is a frame. ``failed()`` is told when nothing can be said any more.
    """

    def __init__(self, socket: FrameSink, *, several: bool, failed: Callable[[], None]) -> None:
        self._socket = socket
        self._most = TOGETHER if several else 1
        self._failed = failed
        self._unsaid: deque[bytes] = deque()
        self._speaking: asyncio.Task[None] | None = None

    def say(self, octets: bytes, *, alone: bool = False) -> None:
        """Sends it soon, after all that was said before.

        ``alone``: nothing else will be said in this round of the event loop, so it need not wait for that.
        """
        self._unsaid.append(octets)
        if self._speaking is not None:
            return
        speaking = self._speak()
        if alone:
            try:
                waits_for = speaking.send(None)
            except StopIteration:
                return
            speaking = _going_on(speaking, waits_for)
        self._speaking = asyncio.get_running_loop().create_task(speaking)

    async def room(self) -> None:
        """Returns when not too much is unsaid: a slow listener holds up who speaks."""
        while self._speaking is not None and len(self._unsaid) > MUCH:
            await asyncio.wait({self._speaking})

    async def finish(self) -> None:
        """Lets go out what was said, if that is a matter of moments."""
        if self._speaking is not None:
            await asyncio.wait({self._speaking}, timeout=LAST_SECONDS)

    async def _speak(self) -> None:
        try:
            while self._unsaid:
                await self._socket.send_frame(self._frame(), WSMsgType.TEXT)
        except (ConnectionError, RuntimeError):  # the latter where this side closed it
            self._failed()
        finally:
            self._unsaid.clear()
            self._speaking = None

    def _frame(self) -> bytes:
        first = self._unsaid.popleft()
        if self._most == 1 or not self._unsaid:
            return first
        together, size = [first], len(first) + 2
        while self._unsaid and len(together) < self._most:
            octets = self._unsaid[0]
            size += len(octets) + 1
            if size > MAX_FRAME:
                break
            together.append(octets)
            self._unsaid.popleft()
        return b"[%b]" % b",".join(together) if len(together) > 1 else first


async def _going_on(begun: Coroutine[Any, Any, None], waits_for: Any) -> None:
    """Ends what was begun outside of a task and has to wait (for a future, or for a round of the loop)."""
    try:
        while True:
            await (asyncio.sleep(0) if waits_for is None else asyncio.wait({waits_for}))
            waits_for = begun.send(None)
    except StopIteration:
        return
    finally:
        begun.close()
