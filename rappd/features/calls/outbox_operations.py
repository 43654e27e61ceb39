"""The owner's operations on the outbox: what waits for machines that are away."""

from __future__ import annotations

from envelopes.envelope import HELP
from neighborhoods.delivery import outbox as delivery
from neighborhoods.durable_tables import EGG
from neighborhoods.peer_store import PeerStore
from rappd.features.calls.redirected_calls import OpenCalls
from rappd.features.operation import OWNER, Text, operation
from rappd.federation.peer_view import OutboxRow, outbox_row
from rappd.federation.startup_state import Availability, Deferred
from rappd.store.outbox_table import OutboxTable


class OutboxOperations:
    """``rappd outbox``, for the page, too."""

    def __init__(
        self,
        availability: Availability,
        peers: PeerStore,
        outbox: Deferred[delivery.Outbox],
        rows: OutboxTable,
        open_calls: OpenCalls,
    ) -> None:
        """``rows`` are those of the outbox."""
        self._availability, self._peers, self._outbox = availability, peers, outbox
        self._rows, self._open_calls = rows, open_calls

    @operation("outbox.list", "GET", "/outbox", right=OWNER, answers="outbox")
    async def listing(self, waiting: bool = False, restored: bool = False) -> list[OutboxRow]:
        """The outbox: what waits for other machines; without `?waiting=1` also recent results.

        `?restored=1`: also calls that came back with a snapshot, unanswered (`state` `open`).
        """
        if self._availability.rests:
            rows = await self._rows.outgoing(waiting=waiting)
        else:
            rows = await (await self._outbox.ready()).listing(waiting=waiting)
        found = await self._open_calls.listing() if restored else []
        return [outbox_row(self._peers, row) for row in rows if row.verb in (HELP, EGG)] + found

    @operation("outbox.redirect", "POST", "/outbox/{id}/redirect", right=OWNER, answers="redirected")
    async def redirect(self, id: str, peer: Text) -> OutboxRow:
        """Sends a call to the machine `peer`: for one that was set up anew, or that came back with a snapshot."""
        return await self._open_calls.redirect(id, peer)

    @operation("outbox.retry", "POST", "/outbox/{id}/retry", right=OWNER, answers="retried")
    async def retry(self, id: str) -> OutboxRow:
        """Tries one now."""
        return outbox_row(self._peers, await self._outbox.now().retry(id))

    @operation("outbox.drop", "DELETE", "/outbox/{id}", right=OWNER, answers="dropped")
    async def drop(self, id: str) -> OutboxRow:
        """Cancels a waiting call."""
        return outbox_row(self._peers, await self._outbox.now().drop(id))
