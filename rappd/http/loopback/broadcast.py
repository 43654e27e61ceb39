"""Several machines asked at once, for their owner."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidBodyError, json_object
from rappd.http.responses import ok
from rappd.operations.broadcast import EVERYBODY, BroadcastOperations, Which

routes = web.RouteTableDef()

_SHAPE = 'Send {"which": "first", "peers": ["pi", "shed"], "text": "…"}.'


@routes.post("/call/broadcast")
@operator_only
async def call(request: web.Request) -> web.Response:
    """Asks `peers`, a list or `all`, at once; `which`: the `first` that gets it done, or `all` within `wait` seconds.

    `@NAME` in the list is a neighborhood's paired members. `text`, `twin`, `agent` and `args` as with `/call`.
    """
    body = await json_object(request)
    text = {key: value for key, value in body.items() if isinstance(value, str)}
    args: Any = body.get("args")
    if args is not None and not isinstance(args, dict):
        raise InvalidBodyError("args is an object", do='Send {"args": {"city": "Rome"}}.')
    wait = body.get("wait")
    found = await _verbs(request).call(
        _which(body.get("which")),
        _peers(body.get("peers")),
        text=text.get("text", ""),
        agent=text.get("agent", ""),
        args=args,
        twin=text.get("twin", ""),
        wait=float(wait) if isinstance(wait, (int, float)) and not isinstance(wait, bool) else 30.0,
    )
    return ok(found)


@routes.post("/peers/hello")
@operator_only
async def hello(request: web.Request) -> web.Response:
    """Says HELLO to every peer, and tells who answered how fast."""
    return ok(await _verbs(request).hello())


def _verbs(request: web.Request) -> BroadcastOperations:
    daemon = request.app[DAEMON]
    return BroadcastOperations(daemon.federation, daemon.calls, daemon.places.members_of)


def _which(found: object) -> Which:
    if found == "first":
        return "first"
    if found in ("all", None):
        return "all"
    raise InvalidBodyError("which is first or all", do=_SHAPE)


def _peers(found: object) -> list[str]:
    if found == EVERYBODY:
        return [EVERYBODY]
    if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
        raise InvalidBodyError("peers is a list of names, or all", do=_SHAPE)
    return list(found)
