"""``POST /pairing``: what a machine that is not trusted yet says, step by step, until it is."""

from __future__ import annotations

from typing import Any, Final

import orjson
from aiohttp import web

from envelopes.errors import ReportableError
from envelopes.ip_addresses import dialled_text
from neighborhoods.pairing.service import PairingService
from rappd.daemon.rate_limit import AddressLimit
from rappd.listeners.bodies import InvalidBodyError, body_of, ok, problem, refuse_privileged_body

PAIRING: Final = web.AppKey("pairing", PairingService)
PAIRING_LIMIT: Final = web.AppKey("pairing_limit", AddressLimit)
"""20 in a minute for each address; steps of an attempt that is known here do not count."""

MOST_BYTES: Final = 16 << 10

routes = web.RouteTableDef()


@routes.post("/pairing")
async def pairing(request: web.Request) -> web.Response:
    """One step of a pairing, by anybody who can reach this listener."""
    host = dialled_text(request.remote or "")
    pairings, limit = request.app[PAIRING], request.app[PAIRING_LIMIT]
    try:
        try:
            body = await _body(request)
        except ReportableError:
            limit.take(host)
            raise
        if not pairings.goes_on(body):
            limit.take(host)
        return ok(await pairings.answer(body, host))
    except ReportableError as found:
        return problem(found)


async def _body(request: web.Request) -> Any:
    raw = await body_of(request, MOST_BYTES)
    refuse_privileged_body(raw, listener="for other machines")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidBodyError("That is not JSON.", do="Send a JSON object.") from error
