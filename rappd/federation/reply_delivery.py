"""Replies that nobody waits for on a connection: those that peers get by the outbox, and those that it brings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from envelopes.envelope import ERROR, HELP, Envelope, brainstem_id
from neighborhoods.delivery.pending_replies import PendingReplies
from neighborhoods.durable_tables import EGG
from neighborhoods.peer_store import PeerStore
from neighborhoods.transport.replies import readable
from rappd.dispatch.dispatcher import Dispatcher
from rappd.federation.outgoing_eggs import OutgoingEggs
from rappd.federation.peer_notices import OwnerNotices
from rappd.federation.startup_state import Deferred
from twins.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.durable_tables import OutgoingEnvelope


class ReplyDelivery:
    """Replies to peers that did not wait, and of peers to calls here. ``sender`` is this machine."""

    def __init__(
        self,
        sender: str,
        peers: PeerStore,
        dispatcher: Dispatcher,
        outbox: Deferred[Outbox],
        pending: PendingReplies,
        notices: OwnerNotices,
        outgoing_eggs: OutgoingEggs,
        tasks: BackgroundTasks,
    ) -> None:
        self._sender, self._peers, self._dispatcher = sender, peers, dispatcher
        self._outbox, self._pending, self._notices = outbox, pending, notices
        self._outgoing_eggs, self._tasks = outgoing_eggs, tasks

    async def push(self, fingerprint: str, reply: Envelope) -> None:
        """An answer that its asker did not wait for goes by the outbox."""
        if self._peers.get(fingerprint) is not None:
            await self._outbox.now().put(fingerprint, reply, "an answer")

    async def answered(self, fingerprint: str, reply: Envelope) -> bool:
        """A DONE or ERROR came to this machine's own listener. True where somebody, or the outbox, waited for it."""
        reply = readable(reply)
        waited = self._pending.answered(fingerprint, reply)
        kept = await self._outbox.now().answered(fingerprint, reply)
        return waited or kept

    async def on_answer(self, row: OutgoingEnvelope, reply: Envelope | None) -> None:
        """Records the end of an outbox row on its thread, once."""
        if row.verb in ("DONE", "ERROR", "HELLO", "CANCEL") or not row.thread:
            return
        answer = reply or Envelope(row.id, brainstem_id(row.peer), self._sender, ERROR, _unanswered(row))
        await self._dispatcher.record_reply(answer, row.thread, late=True)
        if row.verb == HELP:
            self._notices.late_answer(row, answer)

    def over(self, row: OutgoingEnvelope) -> None:
        """Called after an outbox row is settled and committed: an egg's bytes are needed no more."""
        if row.verb == EGG:
            self._tasks.spawn(asyncio.to_thread(self._outgoing_eggs.remove, row.id))


def _unanswered(row: OutgoingEnvelope) -> dict[str, Any]:
    """Returns the reason why an outbox row ended without a reply."""
    if row.state == "dropped":
        return {"code": 499, "msg": "Not wanted any more.", "reason": row.state}
    return {"code": 504, "msg": "Nobody answered in time.", "reason": row.state}
