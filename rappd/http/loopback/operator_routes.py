"""The operator's session, what was said, settings and the log: the page's own routes."""

from __future__ import annotations

import asyncio

from aiohttp import web

from rappd.daemon.operator_sessions import SESSION_SECONDS
from rappd.daemon.status import describe
from rappd.errors import RefusedError
from rappd.features.conversations.conversations import given_titles, titled
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import InvalidBodyError, json_object, ok, text_field
from rappd.http.event_stream import opened
from rappd.http.loopback.request_source import source_of
from rappd.http.loopback.security import at_operator_origin, from_control, is_operator, operator_only
from rappd.http.loopback.signed_requests import COOKIE
from rappd.store.peer_table import NAMES
from rappd.transcript.jsonl import export_jsonl
from rappd.transcript.markdown import export_markdown
from rappd.transcript.speakers import Speakers

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


@routes.post("/operator/key")
@operator_only
async def key(request: web.Request) -> web.Response:
    """A fresh one-use key, for `rappd open`; over the control socket alone, since others can read TCP on loopback."""
    if not from_control(request):
        raise RefusedError("Only the command gives a link for the page.", do="rappd open")
    daemon = request.app[DAEMON]
    made = daemon.operators.mint_key()
    return ok({"key": made, "url": f"http://127.0.0.1:{daemon.port}/#k={made}"})


@routes.get("/operator/status")
@operator_only
async def status(request: web.Request) -> web.Response:
    """The state that the start screen and `rappd status` show; `url`, a link for the page, over the control socket."""
    return ok(await describe(request.app[DAEMON], with_link=from_control(request)))


@routes.get("/activity/stream")
@operator_only
async def follow(request: web.Request) -> web.StreamResponse:
    """Records and agent files as they come, as server-sent events."""
    async with opened(request) as events:
        await events.comment("here")
        async for line in request.app[DAEMON].activity.follow():
            await events.send(line)
    return events.response


@routes.get("/threads/{thread}/export")
@operator_only
async def export(request: web.Request) -> web.Response:
    """One conversation as JSONL or Markdown."""
    daemon = request.app[DAEMON]
    store = daemon.store
    found = titled(await store.find_thread(request.match_info["thread"]), await given_titles(store))
    events = await store.thread_events(found.id)
    form = request.query.get("format", "jsonl")
    if form == "markdown":
        names = Speakers(daemon.name, daemon.identity.fingerprint, dict(await store.rows(NAMES)))
        body = (await asyncio.to_thread(export_markdown, found, events, names)).encode()
        name, kind = f"{found.id[:8]}.md", "text/markdown; charset=utf-8"
    elif form == "jsonl":
        body = b"".join(await asyncio.to_thread(lambda: list(export_jsonl(events))))
        name, kind = f"{found.id[:8]}.jsonl", "application/x-ndjson"
    else:
        raise InvalidBodyError("format is jsonl or markdown", do="?format=markdown")
    return web.Response(
        body=body, headers={"Content-Type": kind, "Content-Disposition": f'attachment; filename="{name}"'}
    )
