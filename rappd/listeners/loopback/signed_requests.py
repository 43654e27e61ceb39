"""The check that a request is signed by the operator's session, before any handler sees it."""

from __future__ import annotations

import asyncio

from aiohttp import web

from rappd.daemon.request_signatures import NotSignedError, Signature, UsedSignatureError, body_hash
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.later_routes import handler_itself
from rappd.listeners.loopback.request_source import source_of

COOKIE = "rappd_operator"
SIGNATURE = "X-Rappd-Signature"

OPERATOR_KEY = web.RequestKey("operator_key", str)
"""The public key of the operator's session that signed the request; absent in all others."""

_ONCE = (SIGNATURE, "Host", "Content-Type", "Content-Length", "Cookie")
_LARGE = 1 << 18


async def check_signature(request: web.Request) -> None:
    """Notes that the operator's session signed a request that has a signature; the body has been read then.

    One of a session that ended stays what anybody may send. Raises ``ReportableError`` for a signature of anything
    else than exactly this request: it was changed on its way, is sent a second time, or was made by another key.
    """
    daemon = request.app[DAEMON]
    public = daemon.operators.public_key(request.cookies.get(COOKIE, ""))
    if public is None:
        return
    try:
        _check_framing(request)
        signature = Signature.parse(request.headers[SIGNATURE])
        if (signature.length is not None) != _streams_body(request):
            raise NotSignedError
        daemon.request_signatures.check(
            signature,
            public=public,
            method=request.method,
            host=request.headers["Host"],
            target=request.raw_path,
            content_type=request.headers.get("Content-Type", ""),
        )
        await _check_body(request, signature)
    except (NotSignedError, UsedSignatureError):
        daemon.failed_authentication.take(await source_of(request))
        raise
    request[OPERATOR_KEY] = public


def _streams_body(request: web.Request) -> bool:
    """True for a body that is a file which is not held in memory: its length is signed, not its hash."""
    operation = getattr(handler_itself(request.match_info.handler), "operation", None)
    return operation is not None and operation.takes_stream


def _check_framing(request: web.Request) -> None:
    """Refuses what could be read in two ways: headers that are there twice, and bodies that are packed or in pieces."""
    headers = request.headers
    if any(len(headers.getall(name, ())) > 1 for name in _ONCE):
        raise NotSignedError
    if "Transfer-Encoding" in headers or "Content-Encoding" in headers or "Upgrade" in headers:
        raise NotSignedError
    if not request.raw_path.startswith("/"):
        raise NotSignedError


async def _check_body(request: web.Request, signature: Signature) -> None:
    """Reads the body, which handlers get from memory then; of a file that is streamed, the length alone is known."""
    if signature.length is not None:
        if signature.length != request.content_length:
            raise NotSignedError
        return
    raw = await request.read()
    found = await asyncio.to_thread(body_hash, raw) if len(raw) > _LARGE else body_hash(raw)
    if found != signature.body:
        raise NotSignedError
