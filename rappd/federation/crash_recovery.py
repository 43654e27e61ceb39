"""Calls that this machine made when it was stopped: they go to the outbox, which brings each its answer."""

from __future__ import annotations

import time

from envelopes.codecs import emergence
from envelopes.envelope import PATH, THREAD, Envelope
from neighborhoods.delivery.outbox import Outbox
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.dispatcher import Dispatcher
from rappd.federation.local_node import LocalNode
from rappd.store.outbox_table import CallTable

DAY = 86_400
_KNOWN_DAYS = 7
"""Less than a peer remembers what it has done: sent again later, it might do it twice."""


async def requeue_interrupted_calls(
    node: LocalNode, peers: PeerStore, dispatcher: Dispatcher, calls: CallTable, outbox: Outbox
) -> None:
    """Sends them once more with the same id: the peer answers what it has done, and does what never came.

    To be called before this machine makes new ones.
    """
    since = time.time_ns() // 1000 - _KNOWN_DAYS * DAY * 1_000_000
    for body in await calls.unanswered(node.id, since):
        asked = emergence.decode(body, max_bytes=len(body))
        peer = peers.by_prefix(asked.recipient.rpartition("_")[2])
        if peer is None:
            refusal = asked.refusal(500, "This machine was stopped before the answer came.", "interrupted")
            await dispatcher.record_reply(refusal, asked.thread, late=True)
            continue
        kept = {name: value for name, value in asked.extensions.items() if name != THREAD}
        sent = {THREAD: asked.thread, PATH: [node.identity.fingerprint[:16]], **kept}
        again = Envelope(asked.id, asked.sender, asked.recipient, asked.verb, asked.data, sent)
        what = str(asked.data.get("user_input") or asked.data.get("agent") or "")[:120]
        await outbox.put(peer.fingerprint, again, what, node.keep_seconds)
