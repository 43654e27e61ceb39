"""Frames that replay session eggs: pages without origin, storage or network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from rappd.errors import NotFoundError
from rappd.features.sessions.replays import content_of, opens_frame
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.loopback.request_guard import at_operator_origin

if TYPE_CHECKING:
    from twins.eggs.session_content import SessionContent

routes = web.RouteTableDef()

_ID = "{id:[0-9a-f]{64}}"
_FRAME_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data:; font-src data:; media-src data:; connect-src 'none'; frame-src 'none'; worker-src 'none'; "
        "form-action 'none'; base-uri 'none'; webrtc 'block'; frame-ancestors http://127.0.0.1:*"
    ),
    "Permissions-Policy": (
        "camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=(), display-capture=(), "
        "fullscreen=(), payment=(), usb=(), serial=(), hid=(), midi=(), screen-wake-lock=(), web-share=()"
    ),
    "Connection-Allowlist": "()",  # WebRTC and speculative connections, too; only Chromium has it
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "no-store",
}


@routes.get(f"/sessions/frames/{{key:[0-9a-f]{{64}}}}/{_ID}")
async def frame(request: web.Request) -> web.Response:
    """The page that replays a session egg, for a frame of the operator's page: no origin, storage or network."""
    from rappd.sessions.replay_page import replay_page

    await _framed(request)
    return web.Response(body=replay_page().encode(), headers=_FRAME_HEADERS)


@routes.get(f"/sessions/frames/{{key:[0-9a-f]{{64}}}}/{_ID}/own")
async def own_frame(request: web.Request) -> web.Response:
    """The same with the page that the egg brought; it was compared with its hash a moment ago."""
    from rappd.sessions.replay_page import replay_page

    content = await _framed(request)
    return web.Response(body=(content.page or replay_page()).encode(), headers=_FRAME_HEADERS)


async def _framed(request: web.Request) -> SessionContent:
    id = request.match_info["id"]
    if at_operator_origin(request) or not opens_frame(request.match_info["key"], id):
        raise NotFoundError("There is no such page.", do="Open the egg again: rappd sessions open FILE")
    return await content_of(request.app[DAEMON].eggs.waiting, id)
