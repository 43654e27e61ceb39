"""Routes of the operations that paired machines may ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aiohttp import web

from neighborhoods.errors import NotPairedError
from neighborhoods.peer import Peer
from neighborhoods.snapshot.served_home import CAPABILITY, SharedHome
from rappd.dispatch.rights import Right
from rappd.errors import RefusedError
from rappd.features.eggs.peer_operations import EggsFromPeers
from rappd.features.eggs.received import ReceivedEggs
from rappd.features.operation import Operation, OperationTable
from rappd.features.snapshots.peer_operations import SnapshotsForPeers
from rappd.federation.errors import not_allowed
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.federation.callers import FEDERATION, caller
from rappd.listeners.remote_operations import answer

T = TypeVar("T")
FEATURES: tuple[type, ...] = (EggsFromPeers, SnapshotsForPeers)
STALLED_SECONDS = 30.0
"""A reader that takes nothing for so long is gone."""


def routes_of(eggs: ReceivedEggs, home: SharedHome) -> list[web.RouteDef]:
    """A route for each operation, for peers with its right."""
    table = OperationTable(EggsFromPeers(eggs), SnapshotsForPeers(home))
    return [web.RouteDef(one.method, one.path, _route(one, perform), {}) for one, perform in table]


def _route(
    one: Operation, perform: Callable[..., Awaitable[Any]]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        peer = _admitted(request, one.right)
        return await answer(request, one, perform, {Peer: peer}, _PeerTransferLimit(request, one.right), {})

    return handle


def _admitted(request: web.Request, right: Right) -> Peer:
    """The peer that asks. Raises ``NotPairedError``, ``RefusedError``."""
    who, _ = caller(request)
    peer = request.app[FEDERATION].peers.get(who.peer)
    if peer is None:
        raise NotPairedError("This machine is not trusted here.", do="Pair first.")
    if right.admits(who):
        return peer
    if right.scope == CAPABILITY:
        raise RefusedError(
            f"{request.app[DAEMON].name} does not let this machine take snapshots.",
            do=f"Its owner may: rappd peers scopes PEER --add {CAPABILITY}",
        )
    raise not_allowed()


class _PeerTransferLimit:
    def __init__(self, request: web.Request, right: Right) -> None:
        self._request, self._right = request, right

    async def received(self, piece: Awaitable[T]) -> T:
        found = await piece
        _admitted(self._request, self._right)  # the owner may have ended the trust meanwhile
        return found

    async def sent(self, writing: Awaitable[None]) -> None:
        async with asyncio.timeout(STALLED_SECONDS):
            await writing
        _admitted(self._request, self._right)  # the owner may have ended it meanwhile
