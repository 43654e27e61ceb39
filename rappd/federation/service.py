"""Other machines: opened after the listeners of this machine, tried again until the store can be read, and closed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from envelopes.codecs import emergence
from envelopes.envelope import PATH, THREAD, Envelope
from envelopes.errors import ReportableError
from neighborhoods.delivery.outbox import Outbox
from neighborhoods.durable_tables import WAITING
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.dispatcher import Dispatcher
from rappd.errors import RappdError
from rappd.features.eggs.received import ReceivedEggs
from rappd.federation.assembly import FederationAssembly
from rappd.federation.local_node import LocalNode
from rappd.store.connections import explain
from rappd.store.inbox_table import DONE_KEPT_SECONDS, Unfinished
from rappd.store.outbox_table import CallTable

if TYPE_CHECKING:
    from rappd.federation.peer_changes import PeerChanges

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
TIDY_SECONDS = 6 * 3600.0
_DAY = 86_400
_KNOWN_DAYS = 7
"""Less than a peer remembers what it has done: sent again later, it might do it twice."""


class FederationService:
    """Starts and stops what serves other machines. All calls come from the event loop."""

    def __init__(self, machines: FederationAssembly, eggs: ReceivedEggs) -> None:
        """``eggs`` keeps eggs that peers send."""
        self._machines, self._eggs = machines, eggs
        self.port = 0
        self.hosts: tuple[str, ...] = ()
        """The hosts at which the listener for other machines listens, as 0.0.0.0 and ::."""

    def listens_at(self, hosts: tuple[str, ...], port: int) -> None:
        """Tells where the listener for other machines is, before ``start``; port 0 when it is closed."""
        self.hosts, self.port = hosts, port
        self._machines.nearby.announce(port=port, hosts=hosts)

    async def start(self) -> None:
        """Opens everything."""
        m = self._machines
        try:
            changes, unfinished = await self._opened()
        except Exception:
            m.availability.failed(RappdError("Something went wrong inside; the log has it.", do="rappd logs"))
            raise
        changes.follow()
        try:
            await m.witness.open()
        except ReportableError as problem:
            log.error("anchors of other machines cannot be read: %s", problem)
        m.presence.start()
        if m.node.settings.on("peers.nearby"):
            m.nearby.start()
        await self._clear_up_eggs()
        m.availability.started()
        await self._catch_up(unfinished)

    async def load_peers(self) -> None:
        """Reads the peers, without those whose trust was ended; what fails is tried again by ``start``."""
        try:
            await self._load_peers()
        except ReportableError as problem:  # a damaged table: the brainstem works without
            self._machines.availability.damaged(problem)

    async def _load_peers(self) -> None:
        m = self._machines
        await m.revocations.restore(m.tables.tokens, m.tables.peers)
        await m.peer_store.load()

    async def _opened(self) -> tuple[PeerChanges, list[Unfinished]]:
        """Makes what needs the store and returns what was interrupted, before anything new can come in.

        Tries again until the store can be read.
        """
        m = self._machines
        open_parts = await asyncio.to_thread(_opening)
        while True:
            try:
                if m.availability.failure is not None:
                    await self._load_peers()
                changes = await open_parts(m, self.port)
                unfinished = await m.tables.inbox.unfinished()
                calls = CallTable(m.store)
                await _requeue_interrupted_calls(m.node, m.peer_store, m.dispatcher, calls, m.outbox.now())
            except (ReportableError, OSError) as error:
                problem = (
                    error if isinstance(error, ReportableError) else explain(error, m.node.home.database)
                )
                if str(problem) != str(m.availability.failure):
                    log.error("other machines cannot be reached: %s", problem)
                m.availability.failed(problem)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                m.availability.recovered()
                return changes, unfinished

    async def take_leave(self) -> None:
        """At a clean stop, before the goodbye: hands out the newest anchors and asks nobody any more."""
        if self._machines.peer_client.is_set:
            await self._machines.announcements.hand_anchors()
            await self._machines.presence.close()

    async def close(self) -> None:
        """Stops everything. Accepted requests stay recorded and are resumed after the next start."""
        m = self._machines
        await m.tasks.close()
        if not m.peer_client.is_set:
            return
        await m.announcements.hand_anchors()  # of turns that ended since the goodbye
        await m.receiver.now().close()
        await m.presence.close()
        await m.nearby.close()
        await m.outbox.now().stop()
        await m.pairings.now().close()
        await m.peer_client.now().close()
        await m.witness.close()

    async def _clear_up_eggs(self) -> None:
        """Deletes what the last run left behind: bytes without an outbox row and half-received eggs."""
        m = self._machines
        try:
            ids = await asyncio.to_thread(m.outgoing_eggs.ids)
            rows = [row for id in ids for row in await m.tables.outbox.find_outgoing(id)]
            waiting = {row.id for row in rows if row.state in WAITING}
            await asyncio.to_thread(m.outgoing_eggs.keep_only, waiting)
            await self._eggs.clear_up()
        except OSError as error:  # what is in the way is told, and stops nothing else
            log.warning("left-over eggs could not be cleared up: %s", error)

    async def _catch_up(self, unfinished: list[Unfinished]) -> None:
        m = self._machines
        await m.tenants.host.ready.wait()
        by_prefix = {peer.prefix: m.callers.of(peer) for peer in m.peer_store.all()}
        await m.receiver.now().resume(by_prefix.get, [row for row in unfinished if row.body])
        await m.outbox.now().resume()
        m.tasks.spawn(self._tidy())

    async def _tidy(self) -> None:
        """Forgets, now and then, what nobody asks for any more."""
        tables = self._machines.tables
        while True:
            at = time.time_ns() // 1000 - DONE_KEPT_SECONDS * 1_000_000
            await tables.inbox.forget_before(at)
            await tables.outbox.forget_before(at)
            await self._eggs.remove_old()
            await asyncio.sleep(TIDY_SECONDS)


def _opening() -> Callable[[FederationAssembly, int], Awaitable[PeerChanges]]:
    """In a thread: the modules take long to import, and requests are answered meanwhile."""
    from rappd.federation.opening import open_parts

    return open_parts


async def _requeue_interrupted_calls(
    node: LocalNode, peers: PeerStore, dispatcher: Dispatcher, calls: CallTable, outbox: Outbox
) -> None:
    """Sends calls that a stop cut off once more, with the same id: the peer answers what it has done, and does what never came.

    To be called before this machine makes new ones.
    """
    since = time.time_ns() // 1000 - _KNOWN_DAYS * _DAY * 1_000_000
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
