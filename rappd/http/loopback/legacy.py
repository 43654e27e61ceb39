"""The legacy listener, for its owner."""

from __future__ import annotations

from aiohttp import web

from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidBodyError, json_object
from rappd.http.responses import ok

routes = web.RouteTableDef()


@routes.get("/legacy")
@operator_only
async def show(request: web.Request) -> web.Response:
    """The state of the legacy listener: open or closed, addresses, allowed callers."""
    return ok(request.app[DAEMON].legacy.show())


@routes.post("/legacy")
@operator_only
async def open_(request: web.Request) -> web.Response:
    """Opens it to published brainstems at `addresses`; `scopes`: what they may do."""
    body = await json_object(request)
    return ok(await request.app[DAEMON].legacy.open(_texts(body, "addresses"), _texts(body, "scopes")))


@routes.delete("/legacy")
@operator_only
async def close(request: web.Request) -> web.Response:
    """Closes it."""
    return ok(await request.app[DAEMON].legacy.close())


def _texts(body: dict[str, object], name: str) -> list[str]:
    found = body.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidBodyError(f"{name} is a list of texts", do='Send {"addresses": ["192.168.1.20"]}.')
    return found
