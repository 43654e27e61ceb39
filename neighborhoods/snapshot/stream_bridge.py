"""A stream of the event loop for a thread that computes with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from typing import Any

SILENCE = 60.0
"""Seconds without a byte after which a stream counts as broken."""
_BATCH = 1 << 20


class StreamBridge:
    """A stream, read by a thread. While the thread looks at one batch, the next one is read.

    Batches are large: each costs a change of threads, which takes long while the other one computes.
    """

    def __init__(self, stream: AsyncIterator[bytes], count: Callable[[int], None]) -> None:
        self._stream = stream
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._asked: Future[bytes] | None = None
        self._reading: asyncio.Task[Any] | None = None
        self._is_stopped = False

    async def consume(self, work: Callable[[], None]) -> None:
        """Runs ``work`` in a thread. When the caller is cancelled, it has ended before this returns."""
        worker = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            await asyncio.shield(worker)
        except asyncio.CancelledError:
            self._is_stopped = True
            if self._asked is not None:
                self._asked.cancel()
            await asyncio.wait({worker})
            raise
        finally:
            await self._end_reading()
            close = getattr(self._stream, "aclose", None)
            if close is not None:
                await close()

    def pieces(self) -> Iterator[bytes]:
        """Called in the thread."""
        self._asked = asyncio.run_coroutine_threadsafe(self._batch(), self._loop)
        while not self._is_stopped:
            batch = self._asked.result()
            if not batch:
                return
            self._asked = asyncio.run_coroutine_threadsafe(self._batch(), self._loop)
            self._count(len(batch))
            yield batch

    async def _batch(self) -> bytes:
        self._reading = asyncio.current_task()
        batch = bytearray()
        while len(batch) < _BATCH:
            async with asyncio.timeout(SILENCE):
                piece = await anext(self._stream, None)
            if piece is None:
                break
            batch += piece
        return bytes(batch)

    async def _end_reading(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
        await asyncio.sleep(0)  # one that was just asked for begins now, or never
        if self._reading is not None and not self._reading.done():
            self._reading.cancel()
            await asyncio.wait({self._reading})
