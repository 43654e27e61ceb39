"""Changes of the peers that this machine trusts, and what follows from each at once: pins, presence, connections."""

from __future__ import annotations

import asyncio
import logging
from hashlib import sha256

from neighborhoods.auth.tls import ServerTrust
from neighborhoods.delivery.outbox import Outbox
from neighborhoods.discovery.presence import Presence
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from neighborhoods.transport.peer_client import PeerClient
from rappd.federation.peer_addresses import PeerAddresses
from rappd.federation.peer_greeting import PeerGreeting
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)


class PeerChanges:
    """Told by the peers' store. ``announced`` and ``troubles`` are by fingerprint. All calls come from the event loop."""

    def __init__(
        self,
        peers: PeerStore,
        addresses: PeerAddresses,
        presence: Presence,
        trust: ServerTrust,
        outbox: Outbox,
        peer_client: PeerClient,
        announced: dict[str, PeerGreeting],
        troubles: dict[str, str],
        tasks: BackgroundTasks,
    ) -> None:
        self._peers, self._addresses, self._presence = peers, addresses, presence
        self._trust, self._outbox, self._peer_client = trust, outbox, peer_client
        self._announced, self._troubles, self._tasks = announced, troubles, tasks

    def follow(self) -> None:
        """From now on, with those that are there already."""
        self._peers.listen(self._changed)
        self._know_peers()
        for peer in self._peers.all():
            self._presence.watch(peer.fingerprint, peer.seen_at)

    def _changed(self, what: str, peer: Peer) -> None:
        self._know_peers()
        if what == "changed":
            self._presence.tell(peer.fingerprint)  # it may do other things now
        elif what == "paired":
            self._trust.pin(peer.certificate)
            self._presence.watch(peer.fingerprint, peer.seen_at)
            self._outbox.cleared(peer.fingerprint)
        elif what == "revoked":
            log.warning("security: the trust in %s (%s) was ended", peer.name, peer.fingerprint[:16])
            self._tasks.spawn(self._unpin(peer.certificate))
            self._presence.forget(peer.fingerprint)
            self._announced.pop(peer.fingerprint, None)
            self._troubles.pop(peer.fingerprint, None)
            self._tasks.spawn(self._peer_client.part_from(peer.fingerprint))

    def _know_peers(self) -> None:
        peers = self._peers.all()
        self._addresses.resolver.remember({one.fingerprint: one.address for one in peers})
        self._addresses.discovered.pin(one.fingerprint for one in peers)

    async def _unpin(self, certificate: bytes) -> None:
        await asyncio.to_thread(self._trust.unpin, certificate)
        if self._peers.by_pin(sha256(certificate).digest()) is not None:  # trusted anew meanwhile
            await asyncio.to_thread(self._trust.pin, certificate)
