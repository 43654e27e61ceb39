"""The operator's session of a browser."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.operator_sessions import SESSION_SECONDS
from rappd.errors import RefusedError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import json_object, ok, text_field
from rappd.listeners.loopback.request_guard import at_operator_origin, is_operator
from rappd.listeners.loopback.request_source import source_of
from rappd.listeners.loopback.signed_requests import COOKIE

routes = web.RouteTableDef()


@routes.post("/operator/session")
async def open_session(request: web.Request) -> web.Response:
    """Trades the key of `rappd open` for the operator's session of a browser's `public_key`.

    `link` is the key's hash, `proof` its MAC over the public key. Only wrong ones are counted and limited.
    """
    daemon = request.app[DAEMON]
    if not at_operator_origin(request):
        raise RefusedError("The operator's page is at 127.0.0.1.", do="rappd open")
    body = await json_object(request)
    cookie = daemon.operators.trade(*(text_field(body, name) for name in ("link", "public_key", "proof")))
    if cookie is None:
        daemon.failed_authentication.take(await source_of(request))
        raise RefusedError("That link was used, or is too old.", do="rappd open")
    response = ok({"operator": True})
    response.set_cookie(COOKIE, cookie, max_age=SESSION_SECONDS, httponly=True, samesite="Strict", path="/")
    return response


@routes.get("/operator/session")
async def session(request: web.Request) -> web.Response:
    """Tells if this page may change structure; `ended` when it could, with the cookie that it sent, and can't now."""
    operator, cookie = is_operator(request), request.cookies.get(COOKIE)
    if operator or cookie is None or not at_operator_origin(request):
        return ok({"operator": operator})
    response = ok({"operator": False, "ended": True})
    if request.app[DAEMON].operators.public_key(cookie) is None:  # of a former form, too: said once
        response.del_cookie(COOKIE, path="/")
    return response


@routes.delete("/operator/session")
async def close_session(request: web.Request) -> web.Response:
    """Gives the session up."""
    response = ok({"operator": False})
    response.del_cookie(COOKIE, path="/")
    return response
