"""``/models`` and the GitHub sign-in."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.local_models import describe_local
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.request_source import source_of
from rappd.http.loopback.security import is_operator, operator_only
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok

routes = web.RouteTableDef()


@routes.get("/models")
async def models(request: web.Request) -> web.Response:
    """Models that can be chosen, and the current one (RAPP v1 §8)."""
    thinking = request.app[DAEMON].providers
    return ok({"models": await thinking.models(), "current": thinking.current})


@routes.post("/models/set")
async def set_model(request: web.Request) -> web.Response:
    """Chooses a model by id, or `auto`; the choice is kept."""
    body = await json_object(request)
    return ok(await request.app[DAEMON].providers.set_model(text_field(body, "model")))


@routes.post("/login")
async def login(request: web.Request) -> web.Response:
    """Starts GitHub's device sign-in: a code to type at an address."""
    daemon = request.app[DAEMON]
    daemon.sign_in.take("operator" if is_operator(request) else await source_of(request))
    return ok(await daemon.providers.login.start())


@routes.post("/login/poll")
async def poll(request: web.Request) -> web.Response:
    """Asks GitHub whether the code was typed."""
    return ok(await request.app[DAEMON].providers.login.poll())


@routes.get("/login/status")
async def status(request: web.Request) -> web.Response:
    """Tells if a sign-in is waiting."""
    return ok(await request.app[DAEMON].providers.login.status())


@routes.post("/login/switch")
async def switch(request: web.Request) -> web.Response:
    """Signs in as somebody else."""
    daemon = request.app[DAEMON]
    daemon.sign_in.take("operator" if is_operator(request) else await source_of(request))
    return ok(await daemon.providers.login.switch())


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
