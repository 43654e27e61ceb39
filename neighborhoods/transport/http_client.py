"""HTTP requests to machines: nothing of what they answer leads anywhere else, or swells."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import aiohttp

STALLED_SECONDS = 30.0
"""An upload of which nothing goes for so long has ended."""
LOOKED_AT_SECONDS = 900.0
"""So long may the other side look at what it got."""
LARGEST_RECEIPT = 1 << 20
_PIECE = 1 << 18


class UnexpectedRedirectError(aiohttp.ClientError):
    """A machine answered that somebody else should be asked; nobody is."""


class ResponseTooLongError(aiohttp.ClientError):
    """An answer without end."""


def session(
    connector: aiohttp.BaseConnector | None = None, *, timeout: aiohttp.ClientTimeout | None = None
) -> aiohttp.ClientSession:
    """A client that follows no redirects, keeps no cookies and unpacks nothing."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout or aiohttp.ClientTimeout(),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"Accept-Encoding": "identity"},
        trace_configs=[trace],
    )


async def whole(response: aiohttp.ClientResponse, most: int) -> bytes:
    """All of an answer's body. Raises ``ResponseTooLongError`` beyond ``most`` bytes."""
    found = bytearray()
    async for piece in response.content.iter_any():
        found += piece
        if len(found) > most:
            raise ResponseTooLongError(f"an answer of more than {most} bytes")
    return bytes(found)


async def _refuse(
    client: aiohttp.ClientSession, context: SimpleNamespace, redirect: aiohttp.TraceRequestRedirectParams
) -> None:
    raise UnexpectedRedirectError("redirected")


async def upload(
    client: aiohttp.ClientSession, url: str, file: Path, headers: dict[str, str], context: ssl.SSLContext
) -> tuple[int, bytes]:
    """Posts a file, however long it takes as long as it goes on; status and body of the answer.

    Raises ``OSError``, ``TimeoutError`` and ``aiohttp.ClientError``.
    """
    loop = asyncio.get_running_loop()
    size = (await asyncio.to_thread(file.stat)).st_size
    async with asyncio.timeout(STALLED_SECONDS) as limit:

        async def pieces() -> AsyncIterator[bytes]:
            with await asyncio.to_thread(file.open, "rb") as content:
                while piece := await asyncio.to_thread(content.read, _PIECE):
                    limit.reschedule(loop.time() + STALLED_SECONDS)
                    yield piece
            limit.reschedule(loop.time() + LOOKED_AT_SECONDS)

        sent = {**headers, "Content-Length": str(size)}
        none = aiohttp.ClientTimeout(total=None)
        async with client.post(url, data=pieces(), headers=sent, ssl=context, timeout=none) as response:
            return response.status, await whole(response, LARGEST_RECEIPT)
