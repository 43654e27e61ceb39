"""``/models`` and the GitHub sign-in."""

from __future__ import annotations

import msgspec
from aiohttp import web

from envelopes.codecs.chat import model_name
from rappd.daemon.local_models import describe_local
from rappd.daemon.model_servers import changes_for, describe_servers, try_server
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.request_source import source_of
from rappd.http.loopback.security import is_operator, operator_only
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok

routes = web.RouteTableDef()


@routes.get("/models")
async def models(request: web.Request) -> web.Response:
    """Models that can be chosen, with the `limits` that are known of each, and the current one (RAPP v1 §8)."""
    thinking = request.app[DAEMON].providers
    return ok({"models": await thinking.models(), "current": thinking.current})


@routes.get("/models/pictures")
async def pictures(request: web.Request) -> web.Response:
    """Tells if the model `?model=`, or the current one, takes `pictures`: true or false, or null where only trying tells."""
    thinking = request.app[DAEMON].providers
    model = model_name(request.query.get("model")) or thinking.current
    return ok({"model": model, "pictures": await thinking.takes_pictures(model)})


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


@routes.get("/models/servers")
@operator_only
async def servers(request: web.Request) -> web.Response:
    """The model servers to choose between: those found here, those set up, and the one in use; no keys."""
    daemon = request.app[DAEMON]
    return ok(await describe_servers(daemon.settings, daemon.providers))


@routes.post("/models/test")
@operator_only
async def test(request: web.Request) -> web.Response:
    """Asks a model server one question before it is used: `works`, or the reason why not and what to do."""
    daemon = request.app[DAEMON]
    kind, fields = await _server_fields(request)
    found = await try_server(daemon.settings, daemon.providers, kind, fields)
    return ok({"works": found.works, **msgspec.structs.asdict(found)})


@routes.post("/models/use")
@operator_only
async def use(request: web.Request) -> web.Response:
    """Takes answers from a server of this `kind` from now on, with its `url`, `key`, `model`, `version`, `server`."""
    daemon = request.app[DAEMON]
    kind, fields = await _server_fields(request)
    await daemon.live_settings.set_all(changes_for(daemon.settings, kind, fields))
    await daemon.providers.look()
    return ok({"status": "ok", "used": daemon.providers.kind})


async def _server_fields(request: web.Request) -> tuple[str, dict[str, str]]:
    body = await json_object(request)
    kind = text_field(body, "kind")
    fields = {name: text for name, text in body.items() if name != "kind"}
    if not all(isinstance(text, str) for text in fields.values()):
        raise InvalidBodyError("every field must be a string", do='Send {"kind": "server", "url": "…"}.')
    return kind, fields
