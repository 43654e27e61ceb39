"""``/cartridges/signature``: a cartridge that the page made, whose body is the file."""

from __future__ import annotations

from aiohttp import web

from rappd.features.cartridges.operations import CartridgeOperations
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import InvalidBodyError, ok
from rappd.http.loopback.security import operator_only

routes = web.RouteTableDef()


@routes.post("/cartridges/signature")
@operator_only
async def signature(request: web.Request) -> web.Response:
    """Signs a cartridge (the body is the file, `?name=` what it is called) with this machine's key.

    `signature` is the text of the file that belongs beside it.
    """
    octets, name = await request.read(), request.query.get("name", "")
    if not octets or not name:
        raise InvalidBodyError("A cartridge and its name are needed.", do="The body is the file; add ?name=.")
    daemon = request.app[DAEMON]
    return ok(await CartridgeOperations(daemon.home, daemon.host.workspace).sign(octets, name))
