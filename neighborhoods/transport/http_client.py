"""HTTP requests to machines: nothing of what they answer leads anywhere else, or swells."""

from __future__ import annotations

from types import SimpleNamespace

import aiohttp


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
