"""Session eggs, for the owner: open one, replay it in a frame that reaches nothing, go on from it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from rappd.daemon.app import Daemon
from rappd.errors import NotFoundError
from rappd.features.sessions.operations import moved
from rappd.http.app_keys import DAEMON
from rappd.http.loopback.security import at_operator_origin, operator_only
from rappd.http.request_body import InvalidFieldError, json_object, text_field
from rappd.http.responses import ok
from rappd.operations.daemon_eggs import whole_path
from rappd.sessions.speakers import OWNER

if TYPE_CHECKING:
    from twins.eggs.session_content import SessionContent

routes = web.RouteTableDef()

_ID = "{id:[0-9a-f]{64}}"
_FRAME_KEY = secrets.token_bytes(32)
"""Frames end with the process that gave their address."""
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


@routes.post("/sessions/eggs")
@operator_only
async def open_(request: web.Request) -> web.Response:
    """Checks the session egg at `path` on this machine and keeps a copy for a day, under the answer's `id`."""
    from rappd.sessions.session_replay import described
    from twins.eggs.readers.sessions import read_session

    daemon = request.app[DAEMON]
    path = whole_path(text_field(await json_object(request), "path"))
    content = await asyncio.to_thread(read_session, path)
    kept = await asyncio.to_thread(daemon.eggs.waiting.take_in, path)
    try:
        content = await asyncio.to_thread(read_session, kept)  # what was copied is what was checked
    except BaseException:
        if kept != path:
            await asyncio.to_thread(daemon.eggs.waiting.discard, kept)
        raise
    return ok({"egg": {"id": daemon.eggs.waiting.id_of(kept), **described(content)}})


@routes.get(f"/sessions/eggs/{_ID}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """A session egg that waits here, with its events, and `frame`: the path of the replay's page at `localhost`.

    Where the egg brought a page of another maker (`foreign`), that is at the same path with `/own` behind it.
    """
    from rappd.sessions.session_replay import described, replayed

    id = request.match_info["id"]
    content = await _content(request.app[DAEMON], id)
    frame = f"/sessions/frames/{_frame_key(id)}/{id}"
    return ok({"egg": {"id": id, **described(content)}, "frame": frame, **replayed(content)})


@routes.post(f"/sessions/eggs/{_ID}/branch")
@operator_only
async def branch(request: web.Request) -> web.Response:
    """Starts a session with the egg's events up to the number `at_event` (without it: all), and takes phones there."""
    from rappd.sessions.session_replay import branch_from_egg

    daemon = request.app[DAEMON]
    at = (await json_object(request)).get("at_event")
    if at is not None and type(at) is not int:
        raise InvalidFieldError("at_event is the number of an event", do='Send {"at_event": 12}.')
    content = await _content(daemon, request.match_info["id"])
    session = await branch_from_egg(daemon.tether.sessions, content, at, OWNER)
    return ok(await moved(daemon.tether, session))


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
    if at_operator_origin(request) or not hmac.compare_digest(request.match_info["key"], _frame_key(id)):
        raise NotFoundError("There is no such page.", do="Open the egg again: rappd sessions open FILE")
    return await _content(request.app[DAEMON], id)


async def _content(daemon: Daemon, id: str) -> SessionContent:
    from twins.eggs.readers.sessions import read_session

    path: Path = await asyncio.to_thread(daemon.eggs.waiting.find, id)
    return await asyncio.to_thread(read_session, path)


def _frame_key(id: str) -> str:
    return hmac.new(_FRAME_KEY, id.encode(), hashlib.sha256).hexdigest()
