"""Other machines: everything this daemon holds for them, opened after the listeners of this machine."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from envelopes.codecs.emergence import encode
from envelopes.envelope import ERROR, HELLO, HELP, Envelope, brainstem_id, new_id
from envelopes.errors import ReportableError
from neighborhoods.delivery.pending_replies import PendingReplies
from neighborhoods.errors import NotPairedError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from neighborhoods.places.memberships import Memberships
from neighborhoods.storage import EGG, WAITING, IssuedToken
from neighborhoods.transport.replies import readable
from rappd.daemon.anchoring import Anchoring
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.errors import ConflictError, NotRunningError, RappdError
from rappd.federation.components import (
    EggInbox,
    FederationBase,
    FederationComponents,
    FederationTables,
    LocalNode,
    PeerEventHandler,
    build_components,
    written_addresses,
)
from rappd.federation.crash_recovery import requeue_interrupted_calls
from rappd.federation.greetings import Greetings
from rappd.federation.outgoing_eggs import OutgoingEggs
from rappd.federation.owner_notices import OwnerNotices
from rappd.federation.revocations import Revocations
from rappd.federation.roster_changes import RosterChanges
from rappd.federation.witness import AnchorWitness
from rappd.notices.notices import Notices
from rappd.store.connections import explain
from rappd.store.inbox_table import DONE_KEPT_SECONDS, InboxTable, Unfinished
from rappd.store.outbox_table import CallTable, OutboxTable
from rappd.store.peer_table import PeerTable
from rappd.store.store import Store
from rappd.store.token_table import TokenTable
from rappd.tenants.tenants import Tenants
from twins.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from neighborhoods.discovery.peers_file import PeersFile
    from neighborhoods.pairing.attempts import PairingAttempt
    from neighborhoods.storage import OutgoingEnvelope
    from neighborhoods.transport.peer_connection import Answer

log = logging.getLogger(__name__)

READY_SECONDS = 30.0
RETRY_SECONDS = 5.0
TIDY_SECONDS = 6 * 3600.0


class FederationService:
    """``ready`` is set once ``start`` is through. All calls come from the event loop."""

    def __init__(
        self,
        node: LocalNode,
        store: Store,
        dispatcher: Dispatcher,
        tenants: Tenants,
        anchoring: Anchoring,
        notices: Notices,
        memberships: Memberships,
        eggs: Callable[[], EggInbox],
    ) -> None:
        """``eggs`` gives the inbox for eggs, which is built on this service."""
        self.node, self.store, self.dispatcher, self.tenants = node, store, dispatcher, tenants
        self.memberships = memberships
        self.notices = notices
        self.port = 0
        self.hosts: tuple[str, ...] = ()
        """The hosts at which the listener for other machines listens, as 0.0.0.0 and ::."""
        self._loopback_port = node.settings.number("port")
        self.revocations = Revocations(anchoring)
        note = self.revocations.note
        self.tables = FederationTables(
            PeerTable(store, note), TokenTable(store, note), OutboxTable(store), InboxTable(store)
        )
        self.peer_store = PeerStore(self.tables.peers)
        self._owner_notices = OwnerNotices(notices, self.peer_store, self._is_asking)
        self._roster_changes = RosterChanges(node.home.root, memberships, notices)
        self.outgoing_eggs = OutgoingEggs(node.home.root / "eggs" / ".outgoing")
        self._base = FederationBase(
            node,
            dispatcher,
            tenants,
            self.tables,
            self.peer_store,
            self.outgoing_eggs,
            memberships,
        )
        self.announced = self._base.announced
        self._parts: FederationComponents | None = None
        self.witness = AnchorWitness(anchoring, self.peer_store)
        self.pending_replies = PendingReplies()
        self.troubles: dict[str, str] = {}
        """The reason why a reachable peer is not used, by fingerprint."""
        self._eggs = eggs
        self.ready = asyncio.Event()
        self.rests = False
        """True in a command without a daemon."""
        self._settled = asyncio.Event()  # ready, or failed at least once
        self.failure: ReportableError | None = None
        """The reason why it could not start yet; it tries again."""
        self.peer_events = PeerEventHandler(self.on_sign_of_life, lambda: self.parts.presence, self.troubles)
        self.tasks = BackgroundTasks("work for another machine failed")
        self.greetings = Greetings(
            self._base,
            lambda: self.parts,
            self.caller,
            self.witness,
            self._roster_changes,
            self.peer_events,
            self.tasks,
        )

    @property
    def parts(self) -> FederationComponents:
        """The parts that ``start`` builds. Raises ``ReportableError`` before that."""
        if self._parts is None:
            raise self.failure or ConflictError("Other machines cannot be reached yet.", do="rappd logs")
        return self._parts

    @property
    def eggs(self) -> EggInbox:
        """Keeps eggs that peers send."""
        return self._eggs()

    def listens_at(self, hosts: tuple[str, ...], port: int) -> None:
        """Tells where the listener for other machines is, before ``start``; port 0 when it is closed."""
        self.hosts, self.port = hosts, port

    def brainstem_at(self, port: int) -> None:
        """Tells the port of the loopback listener, before ``start``: an address of this machine is no peer's."""
        self._loopback_port = port

    async def start(self) -> None:
        """Opens everything."""
        try:
            unfinished = await self._opened()
        except Exception:
            self.failure = RappdError("Something went wrong inside; the log has it.", do="rappd logs")
            self._settled.set()
            raise
        self.peer_store.listen(self._peer_changed)
        self._know_peers()
        for peer in self.peer_store.all():
            self.parts.presence.watch(peer.fingerprint, peer.seen_at)
        try:
            await self.witness.open()
        except ReportableError as problem:
            log.error("anchors of other machines cannot be read: %s", problem)
        self.parts.presence.start()
        self.parts.sightings.listen(self.parts.presence.on_sighting)
        if self.node.settings.on("peers.nearby"):
            self.parts.nearby.start()
        await self._clear_up_eggs()
        self.ready.set()
        self._settled.set()
        await self._catch_up(unfinished)

    def rest(self) -> None:
        """In place of ``start``, where no daemon runs: nobody is reached, and what is kept can be read."""
        self.rests, self.failure = True, NotRunningError("rappd isn't running here.", do="rappd start")
        self._settled.set()

    def written(self) -> PeersFile:
        """The addresses that were written down, for who asks while this rests."""
        return written_addresses(self.node, self._loopback_port)

    async def load_peers(self) -> None:
        """Reads the peers, without those whose trust was ended; what fails is tried again by ``start``."""
        try:
            await self._load_peers()
        except ReportableError as problem:  # a damaged table: the brainstem works without
            self.failure = problem

    async def _load_peers(self) -> None:
        await self.revocations.restore(self.tables.tokens, self.tables.peers)
        await self.peer_store.load()

    async def _opened(self) -> list[Unfinished]:
        """Builds what needs the store and returns what was interrupted, before anything new can come in.

        Tries again until the store can be read.
        """
        while True:
            try:
                if self.failure is not None:
                    await self._load_peers()
                parts = await build_components(
                    self._base, self, port=self.port, hosts=self.hosts, loopback_port=self._loopback_port
                )
                self._parts = parts
                unfinished = await self.tables.inbox.unfinished()
                await requeue_interrupted_calls(self._base, CallTable(self.store), parts.outbox)
            except (ReportableError, OSError) as error:
                problem = (
                    error if isinstance(error, ReportableError) else explain(error, self.node.home.database)
                )
                if str(problem) != str(self.failure):
                    log.error("other machines cannot be reached: %s", problem)
                self.failure = problem
                self._settled.set()
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self.failure = None
                return unfinished

    async def available(self) -> FederationComponents:
        """The parts, once ``start`` is through. Raises why it cannot start, or ``ConflictError`` when that takes too long."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._settled.wait()
        except TimeoutError:
            raise ConflictError("Other machines cannot be reached yet.", do="rappd logs") from None
        if self.failure is not None:
            raise self.failure
        return self.parts

    async def take_leave(self) -> None:
        """At a clean stop, before the goodbye: hands out the newest anchors and asks nobody any more."""
        if self._parts is not None:
            await self.greetings.hand_anchors()
            await self._parts.presence.close()

    async def close(self) -> None:
        """Stops everything. Accepted requests stay recorded and are resumed after the next start."""
        await self.tasks.close()
        if self._parts is None:
            return
        await self.greetings.hand_anchors()  # of turns that ended since the goodbye
        await self.parts.receiver.close()
        await self.parts.presence.close()
        await self.parts.nearby.close()
        await self.parts.outbox.stop()
        await self.parts.pairings.close()
        await self.parts.carrier.close()
        await self.witness.close()

    def caller(self, peer: Peer) -> Caller:
        """A paired machine as the dispatcher knows it."""
        published = self.memberships.capabilities(peer.fingerprint)
        return Caller(
            "federation",
            peer=peer.fingerprint,
            caps=(*peer.scopes, *published),
            mine=peer.whose == "mine",
        )

    def caller_of(self, fingerprint: str) -> Caller | None:
        """The paired machine of that key, with the rights that it has now; None for one that is trusted no more."""
        peer = self.peer_store.get(fingerprint)
        return self.caller(peer) if peer is not None else None

    async def issued_tokens(self) -> list[IssuedToken]:
        """Every token that was issued here, those that ended included."""
        return await self.tables.tokens.tokens()

    def requests(self, peer: Peer) -> Answer:
        """Works on what a peer asks over a line. Whether it is trusted still is asked each time."""

        async def answer(envelope: Envelope) -> Envelope | None:
            now = self.peer_store.get(peer.fingerprint)
            if now is None or now.certificate != peer.certificate:
                ended = NotPairedError("This machine is not trusted here any more.", do="Pair anew.")
                return self.parts.receiver.refuse(envelope, ended)
            self.on_sign_of_life(peer.fingerprint, "")
            armed = await self.parts.credentials.armed(envelope, self.caller(now))
            return await self.parts.receiver.receive(envelope, armed)

        return answer

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """A sign of life that proved its key."""
        self.parts.presence.heard_from(fingerprint)
        if self.troubles.pop(fingerprint, "") or fingerprint not in self.announced:
            # It may trust this machine by now; what it can do is not known.
            self.parts.presence.tell(fingerprint)
        self.parts.outbox.heard_from(fingerprint)
        if address and not self.peer_store.was_seen(fingerprint, address):
            self.tasks.spawn(self.peer_store.seen(fingerprint, address))

    def agents_changed(self) -> None:
        """Announces what changed: at once to connected peers and to members that were left, to others when they ask."""
        if self.ready.is_set():
            for peer in self.peer_store.all():
                if self.parts.carrier.has_line(peer.fingerprint) or self._roster_changes.offer(peer):
                    self.parts.presence.tell(peer.fingerprint)

    async def introduction_at(self, address: str) -> tuple[dict[str, Any], bytes]:
        """Returns the node card and the certificate of the machine at an address."""
        hello = Envelope(
            new_id(), self.node.id, "broadcast", HELLO, {"capabilities": [], "name": self.node.name}
        )
        from rappd.federation.handshake_client import (
            say_hello,  # aiohttp is for those who are asked something
        )

        return await say_hello(address, encode(hello))

    async def push(self, fingerprint: str, reply: Envelope) -> None:
        """An answer that its asker did not wait for goes by the outbox."""
        if self.peer_store.get(fingerprint) is not None:
            await self.parts.outbox.put(fingerprint, reply, "an answer")

    async def answered(self, fingerprint: str, reply: Envelope) -> bool:
        """A DONE or ERROR came to this machine's own listener."""
        reply = readable(reply)
        waited = self.pending_replies.answered(fingerprint, reply)
        kept = await self.parts.outbox.answered(fingerprint, reply)
        return waited or kept

    async def on_answer(self, row: OutgoingEnvelope, reply: Envelope | None) -> None:
        """Something of the outbox came to an end: it is written down on its thread, once."""
        if row.verb in ("DONE", "ERROR", "HELLO", "CANCEL") or not row.thread:
            return
        told = reply or Envelope(row.id, brainstem_id(row.peer), self.node.id, ERROR, _unanswered(row))
        await self.dispatcher.record_reply(told, row.thread, late=True)
        if row.verb == HELP:
            self._owner_notices.late_answer(row, told)

    def asked_to_pair(self, session: PairingAttempt) -> None:
        """Tells the owner, who may not be looking."""
        self._owner_notices.asked_to_pair(session)

    def asking(self) -> list[dict[str, Any]]:
        """The pairings that other machines began and that wait for this one's owner."""
        if self._parts is None:
            return []
        pairings = self._parts.pairings
        asked = [one for one in pairings.asking() if one.role == "answers" and not one.yes]
        return [one.row(pairings.now()) for one in asked if one.live]

    def _is_asking(self, session: str) -> bool:
        return self._parts is not None and session in {one.id for one in self._parts.pairings.asking()}

    def over(self, row: OutgoingEnvelope) -> None:
        """Something of the outbox came to an end, and the disk says so: an egg's bytes are needed no more."""
        if row.verb == EGG:
            self.tasks.spawn(asyncio.to_thread(self.outgoing_eggs.remove, row.id))

    async def looks(self) -> object:
        """Another value whenever a screen would show other machines differently: who is there, who asks."""
        if not self.ready.is_set():
            return ()
        asking = tuple((one.id, one.state) for one in self.parts.pairings.asking())
        here = tuple(self.parts.presence.presence(peer.fingerprint).state for peer in self.peer_store.all())
        troubles = tuple(self.troubles.items())
        said = sum(len(one.capabilities) for one in self.announced.values())
        found = hash(tuple((one.fingerprint, one.name) for one in self.parts.sightings.machines()))
        return self.peer_store.version, asking, here, troubles, said, found

    def _peer_changed(self, what: str, peer: Peer) -> None:
        self._know_peers()
        if what == "changed":
            self.parts.presence.tell(peer.fingerprint)  # it may do other things now
        elif what == "paired":
            self.parts.trust.pin(peer.certificate)
            self.parts.presence.watch(peer.fingerprint, peer.seen_at)
            self.parts.outbox.cleared(peer.fingerprint)
        elif what == "revoked":
            log.warning("security: the trust in %s (%s) was ended", peer.name, peer.fingerprint[:16])
            self.tasks.spawn(self._unpin(peer.certificate))
            self.parts.credentials.forget(peer.fingerprint)
            self.parts.presence.forget(peer.fingerprint)
            self.announced.pop(peer.fingerprint, None)
            self.troubles.pop(peer.fingerprint, None)
            self.tasks.spawn(self.parts.carrier.part_from(peer.fingerprint))

    def _know_peers(self) -> None:
        peers = self.peer_store.all()
        self.parts.resolver.remember({one.fingerprint: one.address for one in peers})
        self.parts.sightings.pin(one.fingerprint for one in peers)

    async def _unpin(self, certificate: bytes) -> None:
        await asyncio.to_thread(self.parts.trust.unpin, certificate)
        if self.peer_store.by_pin(sha256(certificate).digest()) is not None:  # trusted anew meanwhile
            await asyncio.to_thread(self.parts.trust.pin, certificate)

    async def _clear_up_eggs(self) -> None:
        """Deletes what the last run left behind: bytes without an outbox row and half-received eggs."""
        try:
            ids = await asyncio.to_thread(self.outgoing_eggs.ids)
            rows = [row for id in ids for row in await self.tables.outbox.find_outgoing(id)]
            waiting = {row.id for row in rows if row.state in WAITING}
            await asyncio.to_thread(self.outgoing_eggs.keep_only, waiting)
            await self.eggs.clear_up()
        except OSError as error:  # what is in the way is told, and stops nothing else
            log.warning("left-over eggs could not be cleared up: %s", error)

    async def _catch_up(self, unfinished: list[Unfinished]) -> None:
        await self.tenants.host.ready.wait()
        by_prefix = {peer.prefix: self.caller(peer) for peer in self.peer_store.all()}
        await self.parts.receiver.resume(by_prefix.get, [row for row in unfinished if row.body])
        await self.parts.outbox.resume()
        self.tasks.spawn(self._tidy())

    async def _tidy(self) -> None:
        """Forgets, now and then, what nobody asks for any more."""
        while True:
            at = time.time_ns() // 1000 - DONE_KEPT_SECONDS * 1_000_000
            await self.tables.inbox.forget_before(at)
            await self.tables.outbox.forget_before(at)
            await self.eggs.remove_old()
            await asyncio.sleep(TIDY_SECONDS)


def _unanswered(row: OutgoingEnvelope) -> dict[str, Any]:
    """Returns the reason why an outbox row ended without a reply."""
    if row.state == "dropped":
        return {"code": 499, "msg": "Not wanted any more.", "reason": row.state}
    return {"code": 504, "msg": "Nobody answered in time.", "reason": row.state}
