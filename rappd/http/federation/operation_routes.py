"""Routes of the operations that paired machines may ask for. The right is looked at anew with each piece of a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import IO, Any

from aiohttp import web

from envelopes.errors import ReportableError
from neighborhoods.errors import NotPairedError
from neighborhoods.peer import Peer
from neighborhoods.snapshot.shared_home import CAPABILITY, SharedHome
from rappd.dispatch.rights import Right
from rappd.errors import RefusedError
from rappd.features.eggs.from_peers import EggsFromPeers
from rappd.features.operation import OpenDownload, Operation, OperationTable, Upload
from rappd.features.snapshots.for_peers import SnapshotsForPeers
from rappd.federation.components import EggInbox
from rappd.federation.errors import not_allowed
from rappd.http.bodies import headers_beside_file, ok
from rappd.http.federation.callers import FEDERATION, caller

FEATURES: tuple[type, ...] = (EggsFromPeers, SnapshotsForPeers)
STALLED_SECONDS = 30.0
"""A reader that takes nothing for so long is gone."""
MOST_SECONDS = 6 * 3600.0
"""Of one file that goes out."""
_RECEIVED, _SENT = 1 << 20, 1 << 18


def routes_of(eggs: EggInbox, home: SharedHome) -> list[web.RouteDef]:
    """A route for each operation, for peers with its right."""
    table = OperationTable(EggsFromPeers(eggs), SnapshotsForPeers(home))
    return [web.RouteDef(one.method, one.path, _route(one, perform), {}) for one, perform in table]


def _route(
    one: Operation, perform: Callable[..., Awaitable[Any]]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        peer, sent = _admitted(request, one.right), request.query
        given = one.read(
            {**(headers_beside_file(request) if one.takes_file else sent), **request.match_info}, as_text=True
        )
        known = {Peer: peer, Upload: Upload(_pieces(request, one.right), request.content_length or 0)}
        found = await perform(**given, **{name: known[kind] for name, kind in one.of_request.items()})
        if not isinstance(found, OpenDownload):
            return ok(found)
        try:
            return await _send(request, found.file, one.right)
        finally:
            found.close()

    return answer


def _admitted(request: web.Request, right: Right) -> Peer:
    """The peer that asks. Raises ``NotPairedError``, ``RefusedError``."""
    who, _ = caller(request)
    machines = request.app[FEDERATION]
    peer = machines.peer_store.get(who.peer)
    if peer is None:
        raise NotPairedError("This machine is not trusted here.", do="Pair first.")
    if right.admits(who):
        return peer
    if right.scope == CAPABILITY:
        raise RefusedError(
            f"{machines.node.name} does not let this machine take snapshots.",
            do=f"Its owner may: rappd peers scopes PEER --add {CAPABILITY}",
        )
    raise not_allowed()


async def _pieces(request: web.Request, right: Right) -> AsyncIterator[bytes]:
    """The body. Raises as ``_admitted``: the owner may have ended the trust meanwhile."""
    async for piece in request.content.iter_chunked(_RECEIVED):
        _admitted(request, right)
        yield piece
    _admitted(request, right)


async def _send(request: web.Request, file: IO[bytes], right: Right) -> web.StreamResponse:
    """Sends a tar; the connection breaks off where the reader stalls, or may read no more."""
    size = file.seek(0, 2)
    file.seek(0)
    response = web.StreamResponse(headers={"Content-Type": "application/x-tar"})
    response.content_length = size
    await response.prepare(request)
    try:
        async with asyncio.timeout(MOST_SECONDS):
            while piece := await asyncio.to_thread(file.read, _SENT):
                _admitted(request, right)  # the owner may have ended it meanwhile
                async with asyncio.timeout(STALLED_SECONDS):
                    await response.write(piece)
    except (ReportableError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return response
