"""Calls that go to another machine than the one they were made to, because their owner says so.

A machine that was set up anew has another key: what waits for it never goes out by itself. Calls that came back with
a snapshot of a brainstem are open in its record, and nothing of a snapshot is sent by itself.
"""

from __future__ import annotations

import time

from msgspec.structs import replace

from envelopes.codecs import emergence
from envelopes.envelope import PARENT, PATH, SIG, THREAD, THREAD_PATH, Envelope, brainstem_id
from neighborhoods.delivery.outbox import Outbox
from neighborhoods.durable_tables import EGG, WAITING, OutgoingEnvelope
from neighborhoods.errors import NoSuchPeerError, OutboxConflictError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.federation.local_node import LocalNode
from rappd.federation.peer_view import OutboxRow, outbox_row
from rappd.federation.startup_state import Deferred
from rappd.store.outbox_table import CallTable, OutboxTable
from rappd.store.store import Store

_KNOWN_DAYS = 30
OPEN = "open"
"""The state of a call that came back with a snapshot, unanswered."""


class OpenCalls:
    """``rappd outbox redirect``, and the open calls of the record."""

    def __init__(
        self,
        node: LocalNode,
        peers: PeerStore,
        outbox: Deferred[Outbox],
        rows: OutboxTable,
        store: Store,
    ) -> None:
        """``rows`` are those of the outbox."""
        self._node, self._peers, self._outbox = node, peers, outbox
        self._rows, self._store = rows, store

    async def listing(self) -> list[OutboxRow]:
        """Rows like those of the outbox, the oldest first."""
        return [open_row(asked, at) for asked, at in await self._found()]

    async def count(self) -> int:
        """The number of calls that came back with a snapshot, unanswered."""
        return len(await self._found())

    async def redirect(self, id: str, selector: str) -> OutboxRow:
        """Sends a call to the peer ``selector``; its answer comes to the thread that it was made on.

        ``id`` may be shortened. Raises ``not_in_outbox``, ``NoSuchPeerError``, and ``OutboxConflictError`` for
        eggs, and while the machine that it waits for is trusted.
        """
        outbox = await self._outbox.ready()
        peer = self._peers.find(selector)
        waiting = [row for row in await self._rows.find_outgoing(id) if id and row.state in WAITING]
        opened = [asked for asked, _ in await self._found() if id and asked.id.startswith(id)]
        if len(waiting) + len(opened) > 1:
            raise OutboxConflictError(f"'{id}' begins several ids.", do="Give more of the id.")
        if waiting:
            return await self._move(waiting[0], peer)
        if not opened:
            raise NoSuchPeerError(
                f"Nothing in the outbox goes by '{id}'.",
                do="rappd outbox list shows what is there.",
                code="not_in_outbox",
            )
        asked = opened[0]
        what = str(asked.data.get("user_input") or asked.data.get("agent") or "")[:120]
        await outbox.put(peer.fingerprint, self._addressed(asked, peer), what, self._node.keep_seconds)
        return await self._answer_of(asked.id, peer)

    async def _move(self, row: OutgoingEnvelope, peer: Peer) -> OutboxRow:
        if row.verb == EGG:
            raise OutboxConflictError(
                "An egg is sealed for one machine; another cannot open it.", do="rappd egg send FILE PEER"
            )
        if (before := self._peers.get(row.peer)) is not None:
            raise OutboxConflictError(
                f"It waits for {before.name}, which is paired.",
                do="It goes out by itself; rappd call asks another.",
            )
        asked = emergence.decode(row.body, max_bytes=len(row.body))
        await self._outbox.now().move_to(
            row, peer.fingerprint, self._addressed(asked, peer), self._node.keep_seconds
        )
        return await self._answer_of(row.id, peer)

    async def _answer_of(self, id: str, peer: Peer) -> OutboxRow:
        row = await self._rows.by_id(peer.fingerprint, id)
        assert row is not None
        return outbox_row(self._peers, row)

    def _addressed(self, asked: Envelope, peer: Peer) -> Envelope:
        own = self._node.identity.fingerprint[:16]
        kept = {
            key: value
            for key, value in asked.extensions.items()
            if key not in (SIG, PATH, PARENT, THREAD_PATH)
        }
        return replace(
            asked,
            sender=self._node.id,
            recipient=brainstem_id(peer.fingerprint),
            extensions={**kept, THREAD: asked.thread, PATH: [own]},
        )

    async def _found(self) -> list[tuple[Envelope, int]]:
        return await restored_calls(self._store, self._node.id)


async def restored_calls(store: Store, node: str) -> list[tuple[Envelope, int]]:
    """The calls of this machine, ``node``, that came back with a snapshot, and when they were made."""
    since = (time.time_ns() // 1000) - _KNOWN_DAYS * 86_400 * 1_000_000
    rows = await CallTable(store).restored(node, since)
    found = [(emergence.decode(body, max_bytes=len(body)), at) for body, at in rows]
    own = node.rpartition("_")[2]  # calls of others to this machine are none of its own
    return [(asked, at) for asked, at in found if asked.recipient.rpartition("_")[2] != own]


def open_row(asked: Envelope, at: int) -> OutboxRow:
    """The row of an open call, like those of the outbox."""
    key = asked.recipient.rpartition("_")[2]
    return {
        "id": asked.id,
        "to": key[:4],
        "peer": key,
        "kind": "call",
        "what": str(asked.data.get("user_input") or asked.data.get("agent") or "")[:120],
        "state": OPEN,
        "tries": 0,
        "next": None,
        "expires": at / 1e6,
        "created": at / 1e6,
        "thread": asked.thread,
        "trouble": "",
    }
