"""Server-sent events, as all listeners write them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson
from aiohttp import web

T = TypeVar("T")
MEDIA_TYPE = "text/event-stream"
_LARGE = 1 << 18


class EventStream:
    """An answer that is made of events."""

    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response

    async def send(self, event: bytes | dict[str, Any], number: int | None = None, *, name: str = "") -> None:
        """Writes one event, as JSON. With its number a reader can go on after it (``last_seen``)."""
        data = event if isinstance(event, bytes) else orjson.dumps(event, default=str)
        head = b"" if number is None else b"id: %d\n" % number
        if name:
            head += b"event: %b\n" % name.encode()
        if len(data) <= _LARGE:
            await self.response.write(b"%bdata: %b\n\n" % (head, data))
            return
        await self.response.write(b"%bdata: " % head)
        for at in range(0, len(data), _LARGE):  # others are answered between the parts of a long one
            await self.response.write(data[at : at + _LARGE])
        await self.response.write(b"\n\n")

    async def comment(self, text: str = "") -> None:
        """Writes what readers pass over: somebody is there."""
        await self.response.write(b":%b\n\n" % (f" {text}".encode() if text else b""))


@asynccontextmanager
async def opened(request: web.Request, **headers: str) -> AsyncIterator[EventStream]:
    """The answer to ``request``, until the block ends. That its reader goes ends the block, and is no error."""
    response = web.StreamResponse(
        headers={
            "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
            "Cache-Control": "no-store",
            **headers,
        }
    )
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        yield EventStream(response)
        await response.write_eof()


async def with_beats(pieces: AsyncIterator[T], seconds: float) -> AsyncIterator[T | None]:
    """The pieces, and None after each silence of so many seconds: for a comment that shows that somebody is there."""
    while True:
        coming = asyncio.ensure_future(anext(pieces, None))
        try:
            while not (await asyncio.wait({coming}, timeout=seconds))[0]:
                yield None
        finally:
            coming.cancel()  # of no effect where it came
        found = coming.result()
        if found is None:
            return
        yield found


def is_wanted(request: web.Request) -> bool:
    """True for a caller that accepts events instead of one answer."""
    accepted = request.headers.get("Accept", "").lower().split(",")
    return any(one.partition(";")[0].strip() == MEDIA_TYPE for one in accepted)


def last_seen(request: web.Request) -> int:
    """The number of the last event that the caller has, by ``Last-Event-ID``; 0 without one."""
    after = request.headers.get("Last-Event-ID", "0")
    return int(after[:9]) if after.isascii() and after.isdecimal() else 0
