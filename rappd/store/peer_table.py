"""The table of peers, and of those whose trust was ended (``neighborhoods.durable_tables.PeerStorage``)."""

from __future__ import annotations

import orjson

from neighborhoods.peer import Peer
from rappd.store.anchor_file import Note, Revoked
from rappd.store.store import Store
from rappd.store.write_operations import Row, SqlStatement

_PEERS = """SELECT fingerprint, name, whose, public_key, certificate, sealing_key, scopes, paired_at,
    called, address, seen_at, offered, note FROM peers ORDER BY name, fingerprint"""
NAMES = "SELECT fingerprint, name FROM peers"
"""Selects the name of every peer by its fingerprint."""
# A change to a pairing that was ended meanwhile must not bring it back; only pairing anew does.
_SAVE = """INSERT OR REPLACE INTO peers(fingerprint, name, whose, public_key, certificate, sealing_key,
    scopes, paired_at, called, address, seen_at, offered, note) SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13
    WHERE NOT EXISTS (SELECT 1 FROM revoked_peers WHERE fingerprint = ?1 AND at > ?8)"""
_TRUSTED_AGAIN = "DELETE FROM revoked_peers WHERE fingerprint = ? AND at <= ?"
_REVOKE = """INSERT INTO revoked_peers(fingerprint, at) VALUES(?, ?)
    ON CONFLICT(fingerprint) DO UPDATE SET at = max(at, excluded.at)"""
_REMOVE = "DELETE FROM peers WHERE fingerprint = ?"
_SEEN = "UPDATE peers SET address = ?, seen_at = ? WHERE fingerprint = ? AND seen_at <= ?"


class PeerTable:
    """Fulfils ``neighborhoods.durable_tables.PeerStorage``. All methods raise ``StoreError``."""

    def __init__(self, store: Store, note: Note | None = None) -> None:
        """``note`` gets each revocation, to write it down outside of the database; None for reading only."""
        self._store = store
        self._note = note

    async def peers(self) -> list[Peer]:
        """Every peer, in order of name."""
        return [_peer(row) for row in await self._store.rows(_PEERS)]

    async def save_peer(self, peer: Peer) -> None:
        """Saves a peer in place of one with that fingerprint.

        Without effect when its trust was ended after ``paired_at``; a later ``paired_at`` is trust anew.
        """
        values = (
            peer.fingerprint, peer.name, peer.whose, peer.public_key, peer.certificate, peer.sealing_key,
            orjson.dumps(peer.scopes).decode(), peer.paired_at, peer.called, peer.address, peer.seen_at,
            int(peer.offered), peer.note,
        )  # fmt: skip
        lifted = SqlStatement(_TRUSTED_AGAIN, (peer.fingerprint, peer.paired_at))
        await self._store.change(SqlStatement(_SAVE, values, lifted))

    async def remove_peer(self, fingerprint: str, at: int) -> None:
        """Ends the trust and remembers that it was ended."""
        if self._note is not None:
            await self._note(Revoked("peer", fingerprint, at))
        await self._store.change(
            SqlStatement(_REVOKE, (fingerprint, at), SqlStatement(_REMOVE, (fingerprint,)))
        )

    async def seen_peer(self, fingerprint: str, address: str, at: int) -> None:
        """Notes where a peer was last reached, unless a later moment is noted. Not synced."""
        await self._store.change(SqlStatement(_SEEN, (address, at, fingerprint, at)), strict=False)

    async def revoked_peers(self) -> dict[str, int]:
        """Fingerprints whose trust was ended, and when."""
        return dict(await self._store.rows("SELECT fingerprint, at FROM revoked_peers ORDER BY at"))


def _peer(row: Row) -> Peer:
    fields = dict(zip(Peer.__struct_fields__, row, strict=True))
    fields["scopes"] = tuple(orjson.loads(fields["scopes"]))
    fields["offered"] = bool(fields["offered"])
    return Peer(**fields)
