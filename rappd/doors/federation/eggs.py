"""``POST /eggs``: an egg from a paired machine, staged until this machine's owner hatches it."""

from __future__ import annotations

from urllib.parse import unquote

from aiohttp import web

from rappd.doors.answer import ok
from rappd.doors.federation.callers import caller
from rappd.doors.federation.keys import MACHINES
from rappd.errors import Refused

_CHUNK = 1 << 20

routes = web.RouteTableDef()


@routes.post("/eggs")
async def take_in(request: web.Request) -> web.Response:
    """The body is the file, `X-Rappd-Name` what it is called (percent-encoded). Needs the capability EGG."""
    who, _ = caller(request)
    machines = request.app[MACHINES]
    peer = machines.book.get(who.peer)
    if peer is None or machines.eggs is None or not who.may("EGG"):
        raise Refused("Not allowed.", do="Ask this machine's owner to share it.")
    name = unquote(request.headers.get("X-Rappd-Name", ""))[:200]
    return ok(await machines.eggs.take_in(peer, name, request.content.iter_chunked(_CHUNK)))
