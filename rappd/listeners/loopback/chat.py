"""``POST /chat``, the wire that is forever (RAPP v1 §0.1, §8), and its streaming and stopping."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from aiohttp import web

from envelopes.codecs.chat import ChatRequest, decode_request, last_event, reply_body, request_envelope
from envelopes.envelope import ERROR, is_uuid, new_id
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, UsageProblemError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import check_depth, ok, refusal
from rappd.listeners.event_stream import last_seen, opened
from rappd.listeners.loopback.request_guard import caller, tenant_of
from rappd.tenants.tenant import Tenant

routes = web.RouteTableDef()

_LARGE = 1 << 18


@routes.post("/chat")
async def chat(request: web.Request) -> web.Response:
    """One turn: a sentence in, an answer out."""
    asked = await _asked(await request.read())
    daemon, tenant, who = request.app[DAEMON], tenant_of(request), caller(request)
    fresh = asked.session_id is None
    session = new_id() if fresh else asked.session_id
    if asked.turn_id is None:
        envelope = request_envelope(asked, recipient=tenant.id)
        reply = await daemon.dispatcher.submit(envelope, who, session=session, fresh=fresh).reply()
        return (
            refusal(reply)
            if reply.verb == ERROR
            else ok(reply_body(reply, session_id=session, **_modes(tenant)))
        )
    reply = await _named_turn(request, asked, session).end()
    last = last_event(reply, session_id=session, **_modes(tenant))
    status, found = _whole_answer(last)
    return ok(found, status)


@routes.post("/chat/stream")
async def stream(request: web.Request) -> web.StreamResponse:
    """The same turn as server-sent events with ids; `Last-Event-ID` with the same `turn_id` continues."""
    asked = await _asked(await request.read())
    asked.turn_id = asked.turn_id or new_id()
    session = asked.session_id if asked.session_id is not None else new_id()
    turn = _named_turn(request, asked, session)
    async with opened(request, **{"X-Turn-Id": asked.turn_id}) as events:
        async for number, event in turn.events(last_seen(request)):
            await events.send(event, number)
        last = last_event(await turn.end(), session_id=turn.session, **_modes(tenant_of(request)))
        await events.send(last, turn.number + 1)
    return events.response


@routes.post("/chat/cancel")
async def cancel(request: web.Request) -> web.Response:
    """Stops a running turn, its model call and its agent calls."""
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError:
        body = None
    turn_id = body.get("turn_id") if isinstance(body, dict) else None
    if not is_uuid(turn_id):
        raise UsageProblemError("turn_id must be a UUID", do="Send the turn_id of the turn to stop.")
    if not request.app[DAEMON].dispatcher.turns.cancel(str(turn_id).lower()):
        raise NotFoundError("No such turn is running.", do="It may have ended already.")
    return ok({"status": "ok", "turn_id": turn_id})


async def _asked(raw: bytes) -> ChatRequest:
    """The request; one with pictures is read beside the event loop."""
    asked = decode_request(raw) if len(raw) < _LARGE else await asyncio.to_thread(decode_request, raw)
    if asked.history or not (asked.session_id is None or isinstance(asked.session_id, str)):
        check_depth([asked.session_id, asked.history])
    return asked


def _named_turn(request: web.Request, asked: ChatRequest, session: Any) -> Turn:
    """The turn of that id: the one under way or lately over, or a new one."""
    envelope = request_envelope(asked, recipient=tenant_of(request).id)
    return request.app[DAEMON].dispatcher.submit(envelope, caller(request), session=session, named=True)


def _modes(tenant: Tenant) -> dict[str, bool]:
    return {"voice_mode": tenant.settings.voice, "twin_mode": tenant.settings.twin}


def _whole_answer(event: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    kind = event.pop("type", "error")
    if kind == "done":
        return 200, event
    status = int(event.pop("status", 500))
    return (status if status >= 400 else 500), event
