"""``/login``: the GitHub sign-in, limited by who asks."""

from __future__ import annotations

from aiohttp import web

from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import ok
from rappd.listeners.loopback.request_guard import is_operator
from rappd.listeners.loopback.request_source import source_of

routes = web.RouteTableDef()


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
