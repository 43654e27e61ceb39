"""``POST /pairing``: what a machine that is not trusted yet says, step by step, until it is."""

from __future__ import annotations

from typing import Any, Final

import orjson
from aiohttp import web

from envelopes.problem import Problem
from neighborhoods.pairing.pairings import Pairings
from rappd.doors.answer import JSON, ok, problem
from rappd.limits import RateLimit

PAIRING: Final = web.AppKey("pairing", Pairings)
PAIRING_LIMIT: Final = web.AppKey("pairing_limit", RateLimit)
"""20 in a minute for each address; steps of an attempt that is known here do not count."""

MOST_BYTES: Final = 16 << 10

routes = web.RouteTableDef()


class BadPairingBody(Problem):
    """A body that is not JSON."""

    code = "bad_body"
    status = 400


class PairingBodyTooLong(Problem):
    """More than any step needs."""

    code = "too_large"
    status = 413


class PairingMedia(Problem):
    """A body that does not say that it is JSON."""

    code = "media_type"
    status = 415


@routes.post("/pairing")
async def pairing(request: web.Request) -> web.Response:
    """One step of a pairing, by anybody who can reach this door."""
    host = request.remote or ""
    pairings, limit = request.app[PAIRING], request.app[PAIRING_LIMIT]
    try:
        try:
            body = await _body(request)
        except Problem:
            limit.take(host)
            raise
        if not pairings.goes_on(body):
            limit.take(host)
        return ok(await pairings.answer(body, host))
    except Problem as found:
        return problem(found)


async def _body(request: web.Request) -> Any:
    if request.content_type != JSON:
        raise PairingMedia("A step of a pairing is JSON.", do="Send application/json.")
    raw = b""
    async for piece in request.content.iter_any():
        raw += piece
        if len(raw) > MOST_BYTES:
            raise PairingBodyTooLong("That is longer than any step of a pairing.", do="Send less.")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadPairingBody("That is not JSON.", do="Send a JSON object.") from error
