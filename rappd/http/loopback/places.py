"""``/neighborhoods``: places, their rosters and what is published in them, for the operator."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from neighborhoods.places.memberships import Scope
from rappd.daemon.app import Daemon
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidBodyError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path
from rappd.operations.places import DAYS
from rappd.operations.published_agents import publishable_name

routes = web.RouteTableDef()


@routes.get("/neighborhoods")
@operator_only
async def listing(request: web.Request) -> web.Response:
    """Lists the neighborhoods that lie here, joined or not."""
    return ok(await asyncio.to_thread(request.app[DAEMON].places.listing))


@routes.post("/neighborhoods")
@operator_only
async def create(request: web.Request) -> web.Response:
    """Creates a neighborhood `name`, with a sentence `about` it."""
    body = await json_object(request)
    return ok(
        await asyncio.to_thread(
            request.app[DAEMON].places.create, text_field(body, "name"), _text(body, "about")
        )
    )


@routes.post("/neighborhoods/join")
@operator_only
async def join(request: web.Request) -> web.Response:
    """Joins by an invite or a neighborhood's egg (`path` on this machine), or one that lies here (`name`)."""
    body, daemon = await json_object(request), request.app[DAEMON]
    given = str(whole_path(_text(body, "path"))) if body.get("path") else text_field(body, "name")
    found = await daemon.eggs.to_the_end(asyncio.to_thread(daemon.places.join, given))
    daemon.federation.agents_changed()
    return ok(found)


@routes.get("/neighborhoods/{neighborhood}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """Shows one neighborhood: its roster with presence, what is shared, what is published."""
    daemon = request.app[DAEMON]
    peers = await _peers(daemon)
    return ok(await asyncio.to_thread(daemon.places.show, request.match_info["neighborhood"], peers))


@routes.post("/neighborhoods/{neighborhood}/invite")
@operator_only
async def invite(request: web.Request) -> web.Response:
    """Writes an invite, good for `days`, `into` a file; `peer` counts a paired machine among the members."""
    body, daemon = await json_object(request), request.app[DAEMON]
    days = body.get("days", DAYS)
    if not isinstance(days, int) or isinstance(days, bool):
        raise InvalidBodyError("days is a number", do='Send {"days": 14}.')
    peer = None
    if name := _text(body, "peer"):
        fingerprint = daemon.federation.peer_store.find(name).fingerprint
        peer = (await _peers(daemon))[fingerprint]
    found = await asyncio.to_thread(
        daemon.places.invite,
        request.match_info["neighborhood"],
        into=str(whole_path(_text(body, "into"))) if body.get("into") else "",
        days=days,
        peer=peer,
    )
    daemon.federation.agents_changed()
    return ok(found)


@routes.post("/neighborhoods/{neighborhood}/publish")
@operator_only
async def publish(request: web.Request) -> web.Response:
    """Publishes `agent` with a `scope`: neighborhood, public, or personal, which takes it back."""
    body, daemon = await json_object(request), request.app[DAEMON]
    try:
        scope = Scope(_text(body, "scope") or Scope.NEIGHBORHOOD)
    except ValueError:
        raise InvalidBodyError("scope is personal, neighborhood or public", do=_SCOPE) from None
    agent = text_field(body, "agent")
    if scope is not Scope.PERSONAL:
        agent = publishable_name(daemon.host, agent)
    found = await asyncio.to_thread(daemon.places.publish, request.match_info["neighborhood"], agent, scope)
    daemon.federation.agents_changed()
    return ok(found)


@routes.post("/neighborhoods/{neighborhood}/leave")
@operator_only
async def leave(request: web.Request) -> web.Response:
    """Leaves a neighborhood; its files are set aside."""
    daemon = request.app[DAEMON]
    found = await asyncio.to_thread(daemon.places.leave, request.match_info["neighborhood"])
    daemon.federation.agents_changed()
    return ok(found)


async def _peers(daemon: Daemon) -> dict[str, Any]:
    rows = (await daemon.peers.listing())["peers"]
    return {row["fingerprint"]: row for row in rows if row["paired"]}


def _text(body: dict[str, Any], key: str) -> str:
    found = body.get(key, "")
    if not isinstance(found, str):
        raise InvalidBodyError(f"{key} is text", do=f'Send {{"{key}": "…"}}.')
    return found


_SCOPE = 'Send {"agent": "Clock", "scope": "public"}.'
