"""``/fleet``: all machines at once, for the operator."""

from __future__ import annotations

from aiohttp import web

from rappd.errors import UsageProblemError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object
from rappd.http.responses import ok
from rappd.operations.fleet import ARCHIVE_SECONDS, MOST_SECONDS, STATUS_SECONDS

routes = web.RouteTableDef()


@routes.get("/fleet")
@operator_only
async def status(request: web.Request) -> web.Response:
    """Every machine of the roster, asked now; `?timeout=` seconds for each."""
    seconds = _seconds(request.query.get("timeout"), STATUS_SECONDS)
    return ok(await request.app[DAEMON].fleet.status(seconds=seconds))


@routes.post("/fleet/archive_estate")
@operator_only
async def archive_estate(request: web.Request) -> web.Response:
    """Archives the twins that `filter` means on every machine; only says which, unless `confirm` is true.

    `reason` is kept. With `here`, on this machine alone. `timeout`: seconds for each of the others.
    """
    body = await json_object(request)
    reason = body.get("reason", "")
    found = await request.app[DAEMON].fleet.archive_estate(
        body.get("filter"),
        confirm=body.get("confirm") is True,
        reason=reason if isinstance(reason, str) else "",
        here_only=body.get("here") is True,
        seconds=_seconds(body.get("timeout"), ARCHIVE_SECONDS),
    )
    return ok(found)


def _seconds(given: object, usual: float) -> float:
    if given is None:
        return usual
    try:
        seconds = float(given) if isinstance(given, str | int | float) else 0.0
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageProblemError(
            f"`timeout` must be up to {MOST_SECONDS:g} seconds.", do='Send "timeout": 60.'
        )
    return seconds
