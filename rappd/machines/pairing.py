"""What pairing needs of this daemon: a way to post steps, and a book to write the new peer into."""

from __future__ import annotations

from typing import Any

import orjson

from envelopes.introduction import Introduction
from neighborhoods.book import PeerBook
from neighborhoods.discovery.ladder import Ladder
from neighborhoods.errors import PeerAway
from neighborhoods.pairing.here import OnPaired, Send
from neighborhoods.peer import Whose
from rappd.machines import stranger


def pairing_parts(book: PeerBook, ladder: Ladder) -> tuple[Send, OnPaired]:
    """The two functions that ``Pairings`` is handed."""

    async def send(address: str, body: dict[str, Any]) -> dict[str, Any]:
        _, found, _ = await stranger.post(address, "/pairing", orjson.dumps(body))
        if not isinstance(found, dict):
            raise PeerAway(f"{address} does not answer as a machine of this kind.")
        return found

    async def on_paired(introduction: Introduction, whose: Whose, address: str) -> None:
        await book.pair(introduction, whose, address)
        ladder.learn(address, introduction.fingerprint)

    return send, on_paired
