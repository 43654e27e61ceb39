"""``/search``: everything that a caller may see, by the words in it."""

from __future__ import annotations

from aiohttp import web

from rappd.daemon.search import search
from rappd.http.app_keys import DAEMON
from rappd.http.bodies import ok
from rappd.http.loopback.security import is_operator

routes = web.RouteTableDef()


@routes.get("/search")
async def find(request: web.Request) -> web.Response:
    """Everything that holds all words of `?words=`: conversations, agents, twins, memories, machines, settings; else agents alone."""
    words = request.query.get("words", "")
    return ok({"found": await search(request.app[DAEMON], words, operator=is_operator(request))})
