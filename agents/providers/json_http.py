"""One JSON question over HTTP, for GitHub and for model servers."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from agents.providers.lazy_imports import load
from agents.providers.urls import on_this_machine
from envelopes.codecs.bounded_json import bounded_object

if TYPE_CHECKING:
    from aiohttp import ClientSession

_MOST_BYTES = 1 << 20


class JsonReply(msgspec.Struct, frozen=True):
    """``status`` 0 means that nobody answered, and ``failure`` says why: one of ``FAILURES``.

    ``data`` is the JSON object, {} when there is none. ``location`` is where a redirect leads. ``headers`` have
    lower-case names.
    """

    status: int
    data: dict[str, Any]
    text: str = ""
    failure: str = ""
    location: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


FAILURES = ("refused", "unknown_host", "timeout", "untrusted", "no_tls", "broken")


async def ask(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    json: Mapping[str, Any] | None = None,
    within: float = 10.0,
) -> JsonReply:
    """Sends one request, follows no redirect, reads at most 1 MiB, gives up after ``within`` s.

    Never raises for the network's sake.
    """
    aiohttp = await load("aiohttp")
    async with aiohttp.ClientSession() as session:
        return await ask_over(session, method, url, headers=headers, form=form, json=json, within=within)


async def ask_over(
    session: ClientSession,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    json: Mapping[str, Any] | None = None,
    within: float = 10.0,
) -> JsonReply:
    """The same over connections that somebody else opened and closes."""
    import aiohttp

    proxy = None if on_this_machine(url) else await asyncio.to_thread(proxy_for, url)
    limit = aiohttp.ClientTimeout(total=within)
    try:
        async with session.request(
            method,
            url,
            headers={"Accept": "application/json", **(headers or {})},
            data=form,
            json=json,
            proxy=proxy,
            timeout=limit,
            allow_redirects=False,
        ) as response:
            raw = await _bounded(response.content)
            location = response.headers.get("Location", "")
            sent = {name.lower(): value for name, value in response.headers.items()}
            return JsonReply(
                response.status,
                bounded_object(raw, most_bytes=_MOST_BYTES),
                raw.decode("utf-8", "replace"),
                "",
                location,
                sent,
            )
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        return JsonReply(0, {}, failure=_failure(error))


def _failure(error: Exception) -> str:
    """The reason of a request that nobody answered, as one of ``FAILURES``."""
    import ssl

    import aiohttp

    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "unknown_host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        return "untrusted"
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return "no_tls"
    if isinstance(error, aiohttp.ClientConnectorError | ConnectionRefusedError):
        return "refused"
    return "broken"


async def _bounded(stream: Any) -> bytes:
    raw = bytearray()
    while len(raw) < _MOST_BYTES and (piece := await stream.read(_MOST_BYTES - len(raw))):
        raw += piece
    return bytes(raw)


def proxy_for(url: str) -> str | None:
    """The environment's proxy; the client's own look-up would also send passwords from ~/.netrc."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)
