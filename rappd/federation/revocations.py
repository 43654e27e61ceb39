"""Ended trust, repeated in ``anchors.db``: revoked peers and tokens stay so whatever becomes of the database."""

from __future__ import annotations

import logging

from rappd.daemon.anchoring import Anchoring
from rappd.errors import StoreError
from rappd.store.anchor_file import AnchorFile, Revoked
from rappd.store.peer_table import PeerTable
from rappd.store.token_table import TokenTable

log = logging.getLogger(__name__)


class Revocations:
    """Notes revocations outside of the database and brings an older database up to them."""

    def __init__(self, anchoring: Anchoring) -> None:
        self._anchoring = anchoring

    async def note(self, revoked: Revoked) -> None:
        """Writes one down. It counts in the database also where this fails, which is logged."""
        try:
            await self._anchoring.on_file(lambda file: file.add_revoked([revoked]))
        except StoreError as error:
            log.error("security: a revocation is in the database alone: %s", error)

    async def restore(self, tokens: TokenTable, peers: PeerTable) -> None:
        """Revokes again what a database that was lost or put back does not know. Raises ``StoreError``.

        A peer that was paired anew after it was revoked stays.
        """
        known = [Revoked("token", jti, at) for jti, at in (await tokens.revoked()).items()]
        known += [Revoked("peer", key, at) for key, at in (await peers.revoked_peers()).items()]

        def joined(file: AnchorFile) -> list[Revoked]:
            file.add_revoked(known)
            return file.revoked()

        kept = await self._anchoring.on_file(joined)
        missing = set(kept) - set(known)
        if not missing:
            return
        paired = {peer.fingerprint: peer.paired_at for peer in await peers.peers()}
        for revoked in missing:
            if revoked.kind == "token":
                await tokens.revoke(revoked.id, revoked.at)
            elif paired.get(revoked.id, 0) <= revoked.at:
                await peers.remove_peer(revoked.id, revoked.at)
                log.warning("security: %s was revoked before, and is again", revoked.id[:16])
