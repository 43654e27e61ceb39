"""A reply in pieces as server-sent events: each a STREAM with its number, the last a DONE, ERROR or ACK."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from envelopes.envelope import Envelope
from neighborhoods.transport.replies import fitting

EVENTS = "text/event-stream"
BEAT = 15.0
"""Seconds of silence after which a comment shows that somebody is there."""


def wants_pieces(request: web.Request) -> bool:
    """True when the caller accepts events instead of one answer."""
    accepted = request.headers.get("Accept", "").lower().split(",")
    return any(one.partition(";")[0].strip() == EVENTS for one in accepted)


async def in_pieces(request: web.Request, pieces: AsyncIterator[tuple[int, Envelope]]) -> web.StreamResponse:
    """Writes them as they come. A caller that disconnects does not stop the work."""
    response = web.StreamResponse(
        headers={"Content-Type": f"{EVENTS}; charset=utf-8", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        async for told in _with_beats(pieces):
            await response.write(told)
        await response.write_eof()
    return response


async def _with_beats(pieces: AsyncIterator[tuple[int, Envelope]]) -> AsyncIterator[bytes]:
    while True:
        coming = asyncio.ensure_future(anext(pieces, None))
        try:
            while not (await asyncio.wait({coming}, timeout=BEAT))[0]:
                yield b":\n\n"
        finally:
            coming.cancel()  # of no effect where it came
        found = coming.result()
        if found is None:
            return
        yield b"id: %d\ndata: %b\n\n" % (found[0], fitting(found[1]))
