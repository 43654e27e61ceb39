"""Exchanges under way with each peer, so that each can be broken off when the trust in that peer ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from neighborhoods.errors import PeerOfflineError
from neighborhoods.peer import Peer


class Exchange:
    """One of them."""

    def __init__(self) -> None:
        self.limit = asyncio.timeout(None)
        self.ended = False

    def check(self, peer: Peer) -> None:
        """Raises ``PeerOfflineError`` once it was broken off, also where what it waited for came at that moment."""
        if self.ended:
            raise PeerOfflineError(f"{peer.name} is no peer any more.", maybe_sent=True)


class Exchanges:
    """Requests, uploads and connections being opened, by the peer that they are with."""

    def __init__(self) -> None:
        self._open: dict[str, set[Exchange]] = {}

    @asynccontextmanager
    async def with_peer(self, peer: Peer) -> AsyncIterator[Exchange]:
        """The block is cancelled when ``end`` is called for the peer, and raises ``PeerOfflineError``."""
        every = self._open.setdefault(peer.fingerprint, set())
        exchange = Exchange()
        every.add(exchange)
        try:
            async with exchange.limit:
                yield exchange
                exchange.check(peer)
        except TimeoutError:
            exchange.check(peer)
            raise
        finally:
            every.discard(exchange)
            if not every and self._open.get(peer.fingerprint) is every:
                del self._open[peer.fingerprint]

    def end(self, fingerprint: str) -> None:
        """Break off all that is under way with that peer."""
        for exchange in self._open.pop(fingerprint, set()):
            exchange.ended = True
            exchange.limit.reschedule(asyncio.get_running_loop().time())
