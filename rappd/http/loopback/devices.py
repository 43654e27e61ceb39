"""Routes for phones, for the owner: show a code, compare digits, list and remove devices, see sessions."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rappd.errors import UsageProblemError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidFieldError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path
from rappd.tether.service import TetherService

routes = web.RouteTableDef()

_RIGHTS = ("workflows", "eggs", "notices")


@routes.get("/devices")
@operator_only
async def listing(request: web.Request) -> web.Response:
    """Lists registered phones, and whether they are connected now."""
    return ok({"devices": _tether(request).listing()})


@routes.get("/devices/window")
@operator_only
async def window(request: web.Request) -> web.Response:
    """The code that is shown now, the digits to compare, or how it ended."""
    return ok(_tether(request).window_state())


@routes.post("/devices/window")
@operator_only
async def open_window(request: web.Request) -> web.Response:
    """Shows a new code: perhaps `name`, `ttl` in seconds, `scope` (`talk` or `listen`), `user`."""
    body = await json_object(request)
    ttl = body.get("ttl")
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float)):
        raise InvalidFieldError("ttl is a number of seconds", do='Send {"ttl": 120}.')
    opened = _tether(request).open_window(
        name=_maybe(body, "name"),
        seconds=ttl,
        scope=_maybe(body, "scope") or "talk",
        user=_maybe(body, "user"),
    )
    return ok(await opened)


@routes.get("/devices/window/qr")
@operator_only
async def qr_code(request: web.Request) -> web.Response:
    """The QR code that is shown now, as the text of an SVG picture: `{svg}`."""
    return ok({"svg": _tether(request).qr_code()})


@routes.post("/devices/window/answer")
@operator_only
async def answer(request: web.Request) -> web.Response:
    """Says whether both screens show the same digits: the window's `id`, `same`."""
    body = await json_object(request)
    if not isinstance(body.get("same"), bool):
        raise InvalidFieldError("same is true or false", do='Send {"id": "…", "same": true}.')
    return ok(_tether(request).answer(text_field(body, "id"), body["same"]))


@routes.delete("/devices/window")
@operator_only
async def close_window(request: web.Request) -> web.Response:
    """Takes the code back."""
    return ok(await _tether(request).close_window())


@routes.get("/devices/{device}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """One phone."""
    tether = _tether(request)
    return ok(tether.shown(tether.devices.find(request.match_info["device"])))


@routes.post("/devices/{device}")
@operator_only
async def change(request: web.Request) -> web.Response:
    """Changes a phone's `name`, `scope`, `workflows`, `eggs`, `notices` or `user`."""
    tether, body = _tether(request), await json_object(request)
    device = tether.devices.find(request.match_info["device"])
    if not body.keys() & {"name", "scope", "user", *_RIGHTS}:
        raise UsageProblemError(
            "There is nothing to change.", do="Send name, scope, workflows, eggs, notices or user."
        )
    rights = {name: body.get(name, getattr(device, name)) for name in _RIGHTS}
    for name, value in rights.items():
        if not isinstance(value, bool):
            raise InvalidFieldError(f"{name} is true or false", do=f'Send {{"{name}": true}}.')
    if body.get("name"):
        tether.devices.rename(device, text_field(body, "name"))
    user = _maybe(body, "user") if "user" in body else None
    tether.allow(device, _maybe(body, "scope") or device.scope, **rights, user=user)
    return ok(tether.shown(device))


@routes.post("/devices/{device}/eggs")
@operator_only
async def send_egg(request: web.Request) -> web.Response:
    """Puts the egg at `path` on this machine there for a phone, until it fetched it or the daemon ends."""
    tether, body = _tether(request), await json_object(request)
    device = tether.devices.find(request.match_info["device"])
    return ok({"sent": await tether.offer_egg(device, whole_path(text_field(body, "path")))})


@routes.delete("/devices/{device}")
@operator_only
async def revoke(request: web.Request) -> web.Response:
    """Removes a phone; its connection ends at once."""
    tether = _tether(request)
    device = tether.devices.find(request.match_info["device"])
    tether.revoke(device)
    return ok({"removed": device.shown()})


def _tether(request: web.Request) -> TetherService:
    return request.app[DAEMON].tether


def _maybe(body: dict[str, Any], name: str) -> str:
    found = body.get(name) or ""
    if not isinstance(found, str):
        raise InvalidFieldError(f"{name} must be a string", do=f'Send {{"{name}": "…"}}.')
    return found
