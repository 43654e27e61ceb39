"""``POST /chat``, the wire that is forever (RAPP v1 §0.1, §8), and its streaming and stopping."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson
from aiohttp import web

from envelopes.codecs.chat import ChatRequest, decode_request, reply_body, request_envelope
from envelopes.envelope import ERROR, Envelope, is_uuid, new_id
from envelopes.errors import ReportableError
from rappd.daemon.app import Daemon
from rappd.dispatch.context import Caller
from rappd.dispatch.turn_stream import TurnStream
from rappd.errors import NotFoundError, StoreError, UsageProblemError
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import caller, tenant_of
from rappd.http.request_body import check_depth
from rappd.http.responses import ok, refusal
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
        reply = await daemon.dispatcher.dispatch(envelope, who, session=session, fresh=fresh)
        return refusal(reply) if reply.verb == ERROR else ok(_body(tenant, reply, session))
    live = _live_turn(daemon, tenant, who, asked, session)
    last: dict[str, Any] = {}
    async for _, event in live.follow(max(0, len(live.events) - 1)):
        last = orjson.loads(event)
    status, found = _whole_answer(last)
    return ok(found, status)


@routes.post("/chat/stream")
async def stream(request: web.Request) -> web.StreamResponse:
    """The same turn as server-sent events with ids; `Last-Event-ID` with the same `turn_id` continues."""
    asked = await _asked(await request.read())
    asked.turn_id = asked.turn_id or new_id()
    session = asked.session_id if asked.session_id is not None else new_id()
    live = _live_turn(request.app[DAEMON], tenant_of(request), caller(request), asked, session)
    after = request.headers.get("Last-Event-ID", "0")
    seen = int(after[:9]) if after.isdecimal() else 0
    seen = min(seen, len(live.events))  # a turn told anew has fewer events than the listener saw
    response = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
            "X-Turn-Id": asked.turn_id,
        }
    )
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):  # the listener went; the turn goes on without it
        async for number, event in live.follow(seen):
            await response.write(b"id: %d\ndata: " % number)
            for at in range(0, len(event), _LARGE):  # others are answered between the parts of a long one
                await response.write(event[at : at + _LARGE])
            await response.write(b"\n\n")
        await response.write_eof()
    return response


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
    if not request.app[DAEMON].turn_streams.cancel(str(turn_id).lower()):
        raise NotFoundError("No such turn is running.", do="It may have ended already.")
    return ok({"status": "ok", "turn_id": turn_id})


async def _asked(raw: bytes) -> ChatRequest:
    """The request; one with pictures is read beside the event loop."""
    asked = decode_request(raw) if len(raw) < _LARGE else await asyncio.to_thread(decode_request, raw)
    if asked.history or not (asked.session_id is None or isinstance(asked.session_id, str)):
        check_depth([asked.session_id, asked.history])
    return asked


def _live_turn(daemon: Daemon, tenant: Tenant, who: Caller, asked: ChatRequest, session: Any) -> TurnStream:
    """The turn of that id: the one under way or lately finished, or a new one."""
    assert asked.turn_id is not None
    who_asks = f"{asked.user_guid}\n{tenant.id}"
    known = daemon.turn_streams.get(who_asks, asked.turn_id)
    if known is not None:
        return known
    live = TurnStream()
    envelope = request_envelope(asked, recipient=tenant.id)

    async def run() -> None:
        try:
            reply = await daemon.dispatcher.dispatch(
                envelope, who, session=session, named=True, emit=live.append, said=live.said
            )
        except asyncio.CancelledError:
            live.append({"type": "error", "error": "Stopped.", "do": "", "code": "stopped", "status": 499})
            raise
        except ReportableError as found:
            live.settled = not isinstance(found, StoreError)
            live.append({"type": "error", **found.as_json(), "status": found.status})
            return
        live.append(_last_event(tenant, reply, session))

    return daemon.turn_streams.start(who_asks, asked.turn_id, live, run())


def _body(tenant: Tenant, reply: Envelope, session: Any) -> dict[str, Any]:
    modes = tenant.settings
    return reply_body(reply, session_id=session, voice_mode=modes.voice, twin_mode=modes.twin)


def _last_event(tenant: Tenant, reply: Envelope, session: Any) -> dict[str, Any]:
    if reply.verb == ERROR:
        data = reply.data
        return {
            "type": "error",
            "error": data.get("msg", ""),
            "do": data.get("do", ""),
            "code": data.get("reason", "failed"),
            "status": data.get("code", 500),
        }
    return {"type": "done", "thread": reply.thread, "turn_id": reply.id, **_body(tenant, reply, session)}


def _whole_answer(event: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    kind = event.pop("type", "error")
    if kind == "done":
        return 200, event
    status = int(event.pop("status", 500))
    return (status if status >= 400 else 500), event
