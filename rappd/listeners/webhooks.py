"""``POST /hooks/{id}``: what comes to a webhook, on loopback, and on the port for machines for those with a token."""

from __future__ import annotations

import re

from aiohttp import web

from rappd.daemon.rate_limit import RateLimitedError
from rappd.errors import RefusedError
from rappd.features.webhooks.webhooks import MOST_OCTETS
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import BodyTooLargeError, ok, problem
from rappd.listeners.federation.callers import FEDERATION, caller

CAPABILITY = "WEBHOOK"
"""The capability of tokens and machines that may call webhooks over the network; the address is needed, too."""
routes = web.RouteTableDef()


@routes.post("/hooks/{id}")
async def hook(request: web.Request) -> web.Response:
    """Begins a turn with what is posted, and answers at once: 202 with the turn's id, 429 with when to come again."""
    if FEDERATION in request.app:
        who, _ = caller(request)
        if not who.may(CAPABILITY):
            raise RefusedError("Not allowed.", do=f"Ask this machine's owner for a token: --may {CAPABILITY}")
    body = await _bounded(request)
    try:
        turn = await request.app[DAEMON].webhooks.post(
            request.match_info["id"],
            body,
            signature=request.headers.get("X-Hub-Signature-256", ""),
            delivery=request.headers.get("X-GitHub-Delivery", ""),
        )
    except RateLimitedError as limited:
        answer = problem(limited)
        wait = re.search(r"\d+", limited.do)
        answer.headers["Retry-After"] = wait[0] if wait else "60"
        return answer
    return ok({"status": "accepted", "turn_id": turn}, 202)


async def _bounded(request: web.Request) -> bytes:
    """The body. Raises ``BodyTooLargeError`` before more than that is kept."""
    too_large = BodyTooLargeError(f"A webhook takes {MOST_OCTETS >> 10} kB at most.", do="Send less at once.")
    if (request.content_length or 0) > MOST_OCTETS:
        raise too_large
    found = bytearray()
    async for piece in request.content.iter_chunked(1 << 16):
        found += piece
        if len(found) > MOST_OCTETS:
            raise too_large
    return bytes(found)
