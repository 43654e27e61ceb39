"""Adapts this daemon to pairing: posts steps, and stores the new peer."""

from __future__ import annotations

from typing import Any

import orjson

from envelopes.identity.node_card import NodeCard
from neighborhoods.discovery.address_resolver import AddressResolver
from neighborhoods.errors import PeerOfflineError
from neighborhoods.pairing.local_party import OnPaired, Send
from neighborhoods.peer import Whose
from neighborhoods.peer_store import PeerStore
from rappd.federation import handshake_client


def pairing_parts(book: PeerStore, resolver: AddressResolver) -> tuple[Send, OnPaired]:
    """The two functions that ``PairingService`` is handed."""

    async def send(address: str, body: dict[str, Any]) -> dict[str, Any]:
        _, found, _ = await handshake_client.post(address, "/pairing", orjson.dumps(body))
        if not isinstance(found, dict):
            raise PeerOfflineError(f"{address} does not answer as a machine of this kind.")
        return found

    async def on_paired(introduction: NodeCard, whose: Whose, address: str) -> None:
        await book.pair(introduction, whose, address)
        resolver.learn(address, introduction.fingerprint)

    return send, on_paired
