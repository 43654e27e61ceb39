"""``/sessions/{id}/stream``: what is said in a session, as it comes."""

from __future__ import annotations

from aiohttp import web

from rappd.features.sessions.operations import event_number
from rappd.http.app_keys import DAEMON
from rappd.http.event_stream import opened
from rappd.http.loopback.security import operator_only
from rappd.tether.screen import Screen

routes = web.RouteTableDef()


@routes.get("/sessions/{id}/stream")
@operator_only
async def follow(request: web.Request) -> web.StreamResponse:
    """Server-sent events, as phones get them: `events` after the number `after` or `Last-Event-ID`, and `presence`."""
    tether, id = request.app[DAEMON].tether, request.match_info["id"]
    row = await tether.sessions.find("" if id == "current" else id)
    after = event_number(request.headers.get("Last-Event-ID") or request.query.get("after", "0"))
    session = await tether.sessions.open(row.id)
    screen = Screen(after)
    async with opened(request) as events:
        await events.comment("here")
        tether.screens.add(screen)
        try:
            await tether.sessions.join(session, screen)
            async for message in screen.messages(lambda: request.transport is not None):
                await events.send(message, message.get("last_seq"))
                if message.get("more"):
                    await tether.sessions.more(session, screen)
        finally:
            tether.screens.discard(screen)
            tether.sessions.leave(session, screen)
    return events.response
