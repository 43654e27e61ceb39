"""``/models/local``: the model server that was found on this machine, and the operator's yes to it."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.local_models import describe_local
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidBodyError, json_object
from rappd.http.responses import ok

routes = web.RouteTableDef()


@routes.get("/models/local")
@operator_only
async def local(request: web.Request) -> web.Response:
    """The model server found on this machine that waits for a yes, and those that are agents' processes."""
    return ok(describe_local(request.app[DAEMON].providers))


@routes.post("/models/local")
@operator_only
async def use_local(request: web.Request) -> web.Response:
    """Says yes to the model server found on this machine; `server` names the one that was shown."""
    daemon = request.app[DAEMON]
    server = (await json_object(request)).get("server", "")
    if not isinstance(server, str):
        raise InvalidBodyError("server must be a string", do='Send {"server": "…"}, or nothing.')
    return ok({"status": "ok", "server": await daemon.live_settings.use_local_server(server)})
