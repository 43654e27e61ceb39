"""Rows of peers, found machines, pairings and the outbox, as screens and ``--json`` have them. Times: seconds since 1970."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neighborhoods.discovery.addresses import join
from neighborhoods.discovery.discovered_nodes import DiscoveredNode
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from neighborhoods.storage import EGG, WAITING, OutgoingEnvelope

if TYPE_CHECKING:
    from neighborhoods.pairing.attempts import PairingAttempt
    from neighborhoods.pairing.service import PairingService
    from rappd.federation.service import FederationService


def peer_row(m: FederationService, peer: Peer, waiting: int) -> dict[str, Any]:
    """A paired machine: here or away, and how it was reached."""
    reading = m.parts.presence.presence(peer.fingerprint)
    address = m.parts.carrier.address(peer) or peer.address
    return {
        **stored_peer_row(peer, waiting),
        "presence": reading.state,
        "ms": round(reading.ms, 1) if reading.ms is not None else None,
        "since": _seconds(reading.since),
        "reached": m.parts.resolver.reached_by(peer.fingerprint, address) or "",
        "address": address,
        "agents": len(m.greetings.of(peer.fingerprint).capabilities),
        "trouble": m.troubles.get(peer.fingerprint) or m.parts.outbox.trouble(peer.fingerprint),
    }


def stored_peer_row(peer: Peer, waiting: int, reached: str = "") -> dict[str, Any]:
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


def found_row(sighting: DiscoveredNode) -> dict[str, Any]:
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


def legacy_row(entry: Entry) -> dict[str, Any]:
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


def written_row(entry: Entry) -> dict[str, Any]:
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


def asking_row(attempt: PairingAttempt, pairings: PairingService) -> dict[str, Any]:
    """A pairing under way, or lately over."""
    return attempt.row(pairings.now())


def _seconds(microseconds: int) -> float | None:
    return microseconds / 1e6 if microseconds else None


def outbox_row(book: PeerStore, row: OutgoingEnvelope) -> dict[str, Any]:
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
