"""What pairing needs of this daemon: a way to post steps, and a book to write the new peer into."""

from __future__ import annotations

from typing import Any

import orjson

from envelopes.identity.node_card import Introduction
from neighborhoods.discovery.address_resolver import Ladder
from neighborhoods.errors import PeerAway
from neighborhoods.pairing.local_party import OnPaired, Send
from neighborhoods.peer import Whose
from neighborhoods.peer_store import PeerBook
from rappd.federation import handshake_client


def pairing_parts(book: PeerBook, ladder: Ladder) -> tuple[Send, OnPaired]:
    """The two functions that ``Pairings`` is handed."""

    async def send(address: str, body: dict[str, Any]) -> dict[str, Any]:
        _, found, _ = await handshake_client.post(address, "/pairing", orjson.dumps(body))
        if not isinstance(found, dict):
            raise PeerAway(f"{address} does not answer as a machine of this kind.")
        return found

    async def on_paired(introduction: Introduction, whose: Whose, address: str) -> None:
        await book.pair(introduction, whose, address)
        ladder.learn(address, introduction.fingerprint)

    return send, on_paired
