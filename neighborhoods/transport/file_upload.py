"""Uploading a file to a machine: after how many seconds one that stalls has ended."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from neighborhoods.transport.http_client import whole

STALLED_SECONDS = 30.0
"""An upload of which nothing goes for so long has ended."""
LOOKED_AT_SECONDS = 900.0
"""So long may the other side look at what it got."""
LARGEST_RECEIPT = 1 << 20
_PIECE = 1 << 18


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
