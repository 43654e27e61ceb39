"""``/twins/{twin}/buddy``: a twin of kind buddy, how it is and what is done with it."""

from __future__ import annotations

from aiohttp import web

from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object, text_field
from rappd.http.responses import ok
from rappd.operations.buddies import BuddyOperations

routes = web.RouteTableDef()


@routes.get("/twins/{twin}/buddy")
async def status(request: web.Request) -> web.Response:
    """The present state of a buddy: stage, mood, energy, experience. Changes nothing."""
    return ok(await _verbs(request).status(request.match_info["twin"]))


@routes.post("/twins/{twin}/buddy")
@operator_only
async def act(request: web.Request) -> web.Response:
    """Does an `action`: feed, pet, explore, post, comment, heartbeat, remember, recall, status; `text` and `kind` for those that take them."""
    body = await json_object(request)
    action = text_field(body, "action")
    text = text_field(body, "text") if body.get("text") else ""
    kind = text_field(body, "kind") if body.get("kind") else ""
    return ok(await _verbs(request).act(request.match_info["twin"], action, text=text, kind=kind))


def _verbs(request: web.Request) -> BuddyOperations:
    return request.app[DAEMON].twins.buddies
