"""Eggs of the outbox: an egg's row is a note, its bytes a file, which goes in a request of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envelopes.codecs import emergence
from envelopes.envelope import DONE, Envelope
from neighborhoods.delivery.delivery_route import EggTransport
from neighborhoods.errors import DeclinedError
from neighborhoods.peer import Peer


class EggSender:
    """The transport of a queue of eggs (see ``BatchTransport``): one row at a time. ``file_of(id)`` is where its bytes are."""

    def __init__(self, transport: EggTransport, file_of: Callable[[str], Path]) -> None:
        self._transport = transport
        self._file_of = file_of
        self._under_way: dict[str, asyncio.Task[dict[str, Any]]] = {}

    async def send_batch(self, peer: Peer, envelopes: list[bytes]) -> list[Envelope]:
        """The DONE of the one egg, once the peer keeps it. It is asked first: a try before may have arrived."""
        (row,) = envelopes
        note = emergence.decode(row, max_bytes=len(row))
        task = self._under_way[note.id] = asyncio.ensure_future(self._send(peer, note))
        try:
            return [note.reply(DONE, {"arrived": await task})]
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if this is not None and this.cancelling():
                raise
            raise DeclinedError("It is not wanted any more.", answered=499, reason="dropped") from None
        finally:
            self._under_way.pop(note.id, None)

    async def fetch(self, peer: Peer, id: str, envelope: bytes = b"") -> Envelope | None:
        """Never needed: no egg is kept first and answered later."""
        return None

    def stop(self, id: str) -> None:
        """Ends the upload of an egg that nobody wants any more; half of one is nothing to the peer."""
        if (task := self._under_way.get(id)) is not None:
            task.cancel()

    async def _send(self, peer: Peer, note: Envelope) -> dict[str, Any]:
        found = await self._transport.egg(peer, note.id)
        if found is None:
            file = self._file_of(note.id)
            if not await asyncio.to_thread(file.is_file):
                raise DeclinedError("Its file is gone from this machine.", answered=410, reason="gone")
            found = await self._transport.send_egg(peer, note.id, str(note.data.get("name", "")), file)
        return found
