"""Rows of the outbox, as screens and ``--json`` have them. Times: seconds since 1970."""

from __future__ import annotations

from typing import Any

from neighborhoods.peer_store import PeerStore
from neighborhoods.storage import EGG, WAITING, OutgoingEnvelope


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
