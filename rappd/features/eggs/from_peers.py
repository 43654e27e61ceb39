"""``/eggs``: eggs from a paired machine, staged until this machine's owner hatches them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import unquote

from aiohttp import web

from envelopes.envelope import is_uuid
from neighborhoods.errors import NotPairedError
from neighborhoods.peer import Peer
from rappd.errors import NotFoundError, RefusedError
from rappd.federation.components import EggInbox
from rappd.http.bodies import ok
from rappd.http.federation.callers import FEDERATION, caller

_CHUNK = 1 << 20

routes = web.RouteTableDef()


@routes.post("/eggs")
async def take_in(request: web.Request) -> web.Response:
    """The body is the file, `X-Rappd-Name` what it is called (percent-encoded), `X-Rappd-Id` a UUID that stays the same when it is sent again.

    Needs the capability EGG.
    """
    peer, eggs = _sender(request)
    name = unquote(request.headers.get("X-Rappd-Name", ""))[:200]
    given = request.headers.get("X-Rappd-Id", "")
    id = given.lower() if is_uuid(given) else ""
    return ok(await eggs.take_in(peer, name, _while_allowed(request), id))


@routes.get("/eggs/{id}")
async def received(request: web.Request) -> web.Response:
    """The state of an egg that was sent under that id; 404 when it may be sent. Needs the capability EGG."""
    peer, eggs = _sender(request)
    id = request.match_info["id"]
    if not is_uuid(id):
        raise NotFoundError("No such egg of yours arrived.", do="Send it.")
    return ok(await eggs.received(peer, id.lower()))


async def _while_allowed(request: web.Request) -> AsyncIterator[bytes]:
    """The body; with each piece its sender is looked up, since the owner may have ended the trust meanwhile.

    Raises as ``_sender``.
    """
    async for piece in request.content.iter_chunked(_CHUNK):
        _sender(request)
        yield piece
    _sender(request)


def _sender(request: web.Request) -> tuple[Peer, EggInbox]:
    who, _ = caller(request)
    machines = request.app[FEDERATION]
    peer = machines.peer_store.get(who.peer)
    if peer is None:
        raise NotPairedError("This machine is not trusted here.", do="Pair first.")
    if not who.may("EGG"):
        raise RefusedError("Not allowed.", do="Ask this machine's owner to share it.")
    return peer, machines.eggs
