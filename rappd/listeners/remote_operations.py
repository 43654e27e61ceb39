"""Operations that other machines and phones ask for. Their files come and go in pieces, each behind the caller's right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, unquote

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.features.operation import OpenDownload, Operation, Upload
from rappd.listeners.bodies import ok

T = TypeVar("T")
MOST_SECONDS = 6 * 3600.0
"""Of one file that goes out."""
_RECEIVED, _SENT = 1 << 20, 1 << 18
_HEADER = "x-rappd-"


class TransferLimit(Protocol):
    """Lets each piece through while its caller may ask for it."""

    async def received(self, piece: Awaitable[T]) -> T:
        """The next piece of a file that comes in. Raises ``ReportableError`` once the caller may no more."""
        ...

    async def sent(self, writing: Awaitable[None]) -> None:
        """Waits until a piece went out. Raises the same, and ``TimeoutError`` for a caller that takes nothing."""
        ...


async def answer(
    request: web.Request,
    one: Operation,
    perform: Callable[..., Awaitable[Any]],
    whose: Mapping[type, Any],
    limit: TransferLimit,
    headers: Mapping[str, str],
) -> web.StreamResponse:
    """Performs the operation for a caller that is admitted.

    Arguments come in path and query; beside a file in headers, as ``X-Rappd-Name``, percent-encoded.
    """
    named = ((name.lower(), unquote(value)) for name, value in request.headers.items())
    beside = {name.removeprefix(_HEADER): text for name, text in named if name.startswith(_HEADER)}
    given = one.read({**(beside if one.takes_file else request.query), **request.match_info}, as_text=True)
    known = {**whose, Upload: Upload(_pieces(request, limit), request.content_length or 0)}
    found = await perform(**given, **{name: known[kind] for name, kind in one.of_request.items()})
    if not isinstance(found, OpenDownload):
        return ok(found)
    try:
        return await _send(request, found, limit, headers)
    finally:
        found.close()


async def _pieces(request: web.Request, limit: TransferLimit) -> AsyncIterator[bytes]:
    body = request.content.iter_chunked(_RECEIVED)
    while piece := await limit.received(anext(body, b"")):
        yield piece


async def _send(
    request: web.Request, found: OpenDownload, limit: TransferLimit, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Streams a file; the connection breaks off where the caller stalls, or may have it no more."""
    response = web.StreamResponse(headers={**headers, "Content-Type": found.kind})
    if found.name:
        response.headers["X-Rappd-Name"] = quote(found.name)
    response.content_length = await asyncio.to_thread(found.file.seek, 0, 2)
    await asyncio.to_thread(found.file.seek, 0)
    await response.prepare(request)
    try:
        async with asyncio.timeout(MOST_SECONDS):
            while piece := await asyncio.to_thread(found.file.read, _SENT):
                await limit.sent(response.write(piece))
    except (ReportableError, TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    if request.transport is not None and not request.transport.is_closing():
        found.went()
    return response
