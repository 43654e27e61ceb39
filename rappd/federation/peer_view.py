"""Rows of peers, found machines, pairings and the outbox, as screens and ``--json`` have them. Times: seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from neighborhoods.discovery.address_text import join
from neighborhoods.discovery.discovered_nodes import DiscoveredNode
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.discovery.presence import Presence
from neighborhoods.durable_tables import EGG, WAITING, OutgoingEnvelope
from neighborhoods.peer import Peer, Whose
from neighborhoods.peer_store import PeerStore
from rappd.federation.greetings import Greetings
from rappd.federation.peer_addresses import PeerAddresses
from rappd.federation.startup_state import Deferred

if TYPE_CHECKING:
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.transport.peer_client import PeerClient


class PeerRow(TypedDict):
    """A machine. One that is paired has all fields but ``kind``, others those of how they were found."""

    name: str
    fingerprint: str
    short: str
    paired: bool
    legacy: bool
    presence: str
    reached: str
    address: str
    kind: NotRequired[str]
    whose: NotRequired[Whose]
    ms: NotRequired[float | None]
    since: NotRequired[float | None]
    agents: NotRequired[int | None]
    waiting: NotRequired[int]
    trouble: NotRequired[str]
    scopes: NotRequired[list[str]]
    offered: NotRequired[bool]
    called: NotRequired[str]
    note: NotRequired[str]
    paired_at: NotRequired[float | None]
    seen_at: NotRequired[float | None]


class OutboxRow(TypedDict):
    """A call or an egg that waits, or lately did; moments are seconds since 1970."""

    id: str
    to: str
    peer: str
    kind: Literal["egg", "call"]
    what: str
    state: str
    tries: int
    next: float | None
    expires: float
    created: float
    thread: str
    trouble: str


class PeerView:
    """Paired machines as screens show them. ``troubles``: why a reachable one is not used, by fingerprint."""

    def __init__(
        self,
        peers: PeerStore,
        presence: Presence,
        addresses: PeerAddresses,
        greetings: Greetings,
        troubles: Mapping[str, str],
        peer_client: Deferred[PeerClient],
        outbox: Deferred[Outbox],
        pairings: Deferred[PairingService],
    ) -> None:
        self._peers, self._presence, self._addresses = peers, presence, addresses
        self._greetings, self._troubles = greetings, troubles
        self._peer_client, self._outbox, self._pairings = peer_client, outbox, pairings

    def row(self, peer: Peer, waiting: int) -> PeerRow:
        """A paired machine: here or away, and how it was reached. Once the start is through."""
        reading = self._presence.presence(peer.fingerprint)
        address = self._peer_client.now().address(peer) or peer.address
        trouble = self._troubles.get(peer.fingerprint) or self._outbox.now().trouble(peer.fingerprint)
        return {
            **stored_peer_row(peer, waiting),
            "presence": reading.state,
            "ms": round(reading.ms, 1) if reading.ms is not None else None,
            "since": _seconds(reading.since),
            "reached": self._addresses.resolver.reached_by(peer.fingerprint, address) or "",
            "address": address,
            "agents": len(self._greetings.of(peer.fingerprint).capabilities),
            "trouble": trouble,
        }

    async def looks(self) -> object:
        """Another value whenever a screen would show other machines differently: who is there, who asks."""
        if not self._pairings.is_set:
            return ()
        asking = tuple((one.id, one.state) for one in self._pairings.now().asking())
        keys = [peer.fingerprint for peer in self._peers.all()]
        here = tuple(self._presence.presence(key).state for key in keys)
        capabilities = sum(len(self._greetings.of(key).capabilities) for key in keys)
        found = hash(tuple((one.fingerprint, one.name) for one in self._addresses.discovered.machines()))
        return self._peers.version, asking, here, tuple(self._troubles.items()), capabilities, found


def stored_peer_row(peer: Peer, waiting: int, reached: str = "") -> PeerRow:
    """A paired machine as far as it is known without asking it."""
    return {
        "name": peer.name,
        "fingerprint": peer.fingerprint,
        "short": peer.short,
        "paired": True,
        "legacy": False,
        "whose": peer.whose,
        "presence": "not known",
        "ms": None,
        "since": None,
        "reached": reached,
        "address": peer.address,
        "agents": None,
        "waiting": waiting,
        "trouble": "",
        "scopes": list(peer.scopes),
        "offered": peer.offered,
        "called": peer.called,
        "note": peer.note,
        "paired_at": _seconds(peer.paired_at),
        "seen_at": _seconds(peer.seen_at),
    }


def found_row(sighting: DiscoveredNode) -> PeerRow:
    """A machine that was announced nearby, and is not trusted."""
    return {
        "name": sighting.name,
        "fingerprint": sighting.fingerprint,
        "short": sighting.short,
        "paired": False,
        "legacy": False,
        "presence": "found",
        "reached": sighting.source,
        "address": join(sighting.addresses[0], sighting.port) if sighting.addresses else "",
        "since": _seconds(sighting.at),
    }


def legacy_row(entry: Entry) -> PeerRow:
    """A published brainstem, or an A2A agent, that was added by its address."""
    return {
        "name": entry.name or entry.host,
        "kind": entry.kind,
        "fingerprint": "",
        "short": "",
        "paired": False,
        "legacy": True,
        "presence": "written down",
        "reached": entry.source,
        "address": entry.url,
    }


def written_row(entry: Entry) -> PeerRow:
    """A machine whose address was written down, and that is neither trusted nor announced."""
    return {
        "name": entry.name,
        "fingerprint": entry.fingerprint,
        "short": entry.fingerprint[:4],
        "paired": False,
        "legacy": False,
        "presence": "written down",
        "reached": entry.source,
        "address": entry.address,
    }


def _seconds(microseconds: int) -> float | None:
    return microseconds / 1e6 if microseconds else None


def outbox_row(book: PeerStore, row: OutgoingEnvelope) -> OutboxRow:
    """One call or egg that waits, or lately did."""
    peer = book.get(row.peer)
    return {
        "id": row.id,
        "to": peer.name if peer else row.peer[:4],
        "peer": row.peer,
        "kind": "egg" if row.verb == EGG else "call",
        "what": row.what,
        "state": row.state,
        "tries": row.tries,
        "next": row.next_at / 1e6 if row.state in WAITING else None,
        "expires": row.expires_at / 1e6,
        "created": row.created_at / 1e6,
        "thread": row.thread,
        "trouble": row.trouble,
    }
