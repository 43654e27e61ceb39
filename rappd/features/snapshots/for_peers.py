"""``/snapshot``: a paired machine reads this one for a snapshot. Writing goes by ``/eggs``, which its owner approves."""

from __future__ import annotations

import asyncio
from typing import IO

from aiohttp import web

from envelopes.errors import ReportableError
from neighborhoods.errors import NotPairedError
from neighborhoods.peer import Peer
from neighborhoods.snapshot.shared_home import CAPABILITY, SharedHome
from rappd.errors import RefusedError
from rappd.http.bodies import ok
from rappd.http.federation.callers import FEDERATION, caller
from rappd.version import __version__

STALLED_SECONDS = 30.0
"""A reader that takes nothing for so long is gone."""
MOST_SECONDS = 6 * 3600.0
"""Of one stream."""
_PIECE = 1 << 18

SHARED_HOME = web.AppKey("shared_home", SharedHome)

routes = web.RouteTableDef()


@routes.get("/snapshot")
async def probe(request: web.Request) -> web.Response:
    """The state of this machine before it is read: `version`, `host`, `free_bytes`. Needs the capability SNAPSHOT."""
    _, home = _reader(request)
    return ok({"version": __version__, **await home.probe()})


@routes.get("/snapshot/twins")
async def listing(request: web.Request) -> web.Response:
    """The twins, with `?archived=1` archived ones too, and the brainstem's agent files. Needs the capability SNAPSHOT."""
    peer, home = _reader(request)
    with home.reading(peer.fingerprint):
        for_owner = peer.whose == "mine"
        return ok(await home.listing(include_archived=_archived(request), for_owner=for_owner))


@routes.get("/snapshot/twins/{twin}")
async def read_twin(request: web.Request) -> web.StreamResponse:
    """The files of one twin as tar, in the state between two of its calls. Needs the capability SNAPSHOT.

    Keys, `.env` files and quarantined code are never part of it. For machines of the same owner its conversations are,
    and the names of what stays behind, each with its reason.
    """
    peer, home = _reader(request)
    with home.reading(peer.fingerprint):
        twin, for_owner = request.match_info["twin"], peer.whose == "mine"
        with await home.copy_twin(twin, archived=_archived(request), for_owner=for_owner) as copy:
            return await _send(request, copy)


@routes.get("/snapshot/agents")
async def read_agents(request: web.Request) -> web.StreamResponse:
    """The brainstem's agent files as tar. Needs the capability SNAPSHOT."""
    peer, home = _reader(request)
    for_owner = peer.whose == "mine"
    with home.reading(peer.fingerprint), await home.copy_agents(for_owner=for_owner) as copy:
        return await _send(request, copy)


def _reader(request: web.Request) -> tuple[Peer, SharedHome]:
    who, _ = caller(request)
    machines = request.app[FEDERATION]
    peer = machines.peer_store.get(who.peer)
    if peer is None:
        raise NotPairedError("This machine is not trusted here.", do="Pair first.")
    if not who.may(CAPABILITY):
        raise RefusedError(
            f"{machines.node.name} does not let this machine take snapshots.",
            do=f"Its owner may: rappd peers scopes PEER --add {CAPABILITY}",
        )
    return peer, request.app[SHARED_HOME]


def _archived(request: web.Request) -> bool:
    return request.query.get("archived") == "1"


async def _send(request: web.Request, copy: IO[bytes]) -> web.StreamResponse:
    """Sends the copy; the connection breaks off where the reader stalls, or may read no more."""
    size = copy.seek(0, 2)
    copy.seek(0)
    response = web.StreamResponse(headers={"Content-Type": "application/x-tar"})
    response.content_length = size
    await response.prepare(request)
    try:
        async with asyncio.timeout(MOST_SECONDS):
            while piece := await asyncio.to_thread(copy.read, _PIECE):
                _reader(request)  # the owner may have ended it meanwhile
                async with asyncio.timeout(STALLED_SECONDS):
                    await response.write(piece)
    except (ReportableError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return response
