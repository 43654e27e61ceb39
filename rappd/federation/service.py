"""Other machines: everything this daemon holds for them, opened after the listeners of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from envelopes.codecs.emergence import encode
from envelopes.envelope import ERROR, HELLO, Envelope, new_id
from envelopes.identity.keys import IdentityKey
from envelopes.problem import ReportableError
from neighborhoods.delivery.pending_replies import PendingReplies
from neighborhoods.discovery.announcement import tame
from neighborhoods.errors import KeyChangedError, NotPairedError, PeerOfflineError, PeerRefusedError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from neighborhoods.storage import EGG, WAITING
from rappd.daemon.anchoring import Anchoring
from rappd.daemon.home import Home
from rappd.dispatch.context import Caller
from rappd.dispatch.dispatcher import Dispatcher
from rappd.errors import ConflictError, RappdError
from rappd.federation.advertised_capabilities import own_id
from rappd.federation.components import EggInbox, FederationComponents
from rappd.federation.crash_recovery import requeue_interrupted_calls
from rappd.federation.handshake_client import say_hello
from rappd.federation.outgoing_eggs import OutgoingEggs
from rappd.federation.peer_events import PeerEventHandler
from rappd.federation.revocations import Revocations
from rappd.federation.wiring import build_components
from rappd.federation.witness import AnchorWitness
from rappd.settings.load import Settings
from rappd.store.connections import explain
from rappd.store.inbox_table import InboxTable, Unfinished
from rappd.store.outbox_table import OutboxTable
from rappd.store.peer_table import PeerTable
from rappd.store.store import Store
from rappd.store.token_table import TokenTable
from rappd.tenants.tenants import Tenants

if TYPE_CHECKING:
    from neighborhoods.discovery.address_resolver import AddressCandidate
    from neighborhoods.storage import OutgoingEnvelope
    from neighborhoods.transport.peer_connection import Answer

log = logging.getLogger(__name__)

DONE_KEPT_SECONDS = 8 * 86_400
"""Seconds for which a repeated request gets its recorded reply: longer than any outbox keeps it."""
PROBE_SECONDS = 4.0
"""Less than ``Presence`` has patience: what does not answer is then given up, not only stopped asking."""
PARTING_SECONDS = 1.0
READY_SECONDS = 30.0
RETRY_SECONDS = 5.0
TIDY_SECONDS = 6 * 3600.0


class FederationService(FederationComponents):
    """``ready`` is set once ``start`` is through. All calls come from the event loop."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        identity: IdentityKey,
        name: str,
        store: Store,
        dispatcher: Dispatcher,
        tenants: Tenants,
        anchoring: Anchoring,
    ) -> None:
        self.home, self.settings, self.identity, self.name = home, settings, identity, name
        self.store, self.dispatcher, self.tenants = store, dispatcher, tenants
        self.id = own_id(identity.fingerprint)
        self.port = 0
        self.loopback_port = settings.number("port")
        self.revocations = Revocations(anchoring)
        self.peer_rows = PeerTable(store, self.revocations.note)
        self.token_rows = TokenTable(store, self.revocations.note)
        self.outbox_rows = OutboxTable(store)
        self.inbox_rows = InboxTable(store)
        self.peer_store = PeerStore(self.peer_rows)
        self.witness = AnchorWitness(anchoring, self.peer_store)
        self.pending_replies = PendingReplies()
        self.outgoing_eggs = OutgoingEggs(home.root / "eggs" / ".outgoing")
        self.announced: dict[str, dict[str, Any]] = {}
        self.troubles = {}
        self.eggs: EggInbox | None = None
        self.ready = asyncio.Event()
        self._settled = asyncio.Event()  # ready, or failed at least once
        self.failure: ReportableError | None = None
        """The reason why it could not start yet; it tries again."""
        self._started = False
        self.peer_events = PeerEventHandler(self)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self, port: int) -> None:
        """Opens everything; ``port`` is where the federation listener listens, 0 when it is closed."""
        self.port = port
        try:
            unfinished = await self._opened()
        except Exception:
            self.failure = RappdError("Something went wrong inside; the log has it.", do="rappd logs")
            self._settled.set()
            raise
        self.peer_store.listen(self._peer_changed)
        self._know_peers()
        for peer in self.peer_store.all():
            self.presence.watch(peer.fingerprint, peer.seen_at)
        try:
            await self.witness.open()
        except ReportableError as problem:
            log.error("anchors of other machines cannot be read: %s", problem)
        self.presence.start()
        self.sightings.listen(self.presence.on_sighting)
        if self.settings.on("peers.nearby"):
            self.nearby.start()
        await self._clear_up_eggs()
        self.ready.set()
        self._settled.set()
        await self._catch_up(unfinished)

    async def load_peers(self) -> None:
        """Reads the peers, without those whose trust was ended. Raises ``StoreError``."""
        await self.revocations.restore(self.token_rows, self.peer_rows)
        await self.peer_store.load()

    async def _opened(self) -> list[Unfinished]:
        """Builds what needs the store and returns what was interrupted, before anything new can come in.

        Tries again until the store can be read.
        """
        while True:
            try:
                if self.failure is not None:
                    await self.load_peers()
                await build_components(self)
                self._started = True
                unfinished = await self.inbox_rows.unfinished()
                await requeue_interrupted_calls(self)
            except (ReportableError, OSError) as error:
                problem = error if isinstance(error, ReportableError) else explain(error, self.home.database)
                if str(problem) != str(self.failure):
                    log.error("other machines cannot be reached: %s", problem)
                self.failure = problem
                self._settled.set()
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self.failure = None
                return unfinished

    async def available(self) -> FederationService:
        """Itself, once ``start`` is through. Raises why it cannot start, or ``ConflictError`` when that takes too long."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._settled.wait()
        except TimeoutError:
            raise ConflictError("Other machines cannot be reached yet.", do="rappd logs") from None
        if self.failure is not None:
            raise self.failure
        return self

    async def take_leave(self) -> None:
        """At a clean stop, before the goodbye: hands out the newest anchors and asks nobody any more."""
        if self._started:
            await self._hand_anchors()
            await self.presence.close()

    async def close(self) -> None:
        """Stops everything. Accepted requests stay recorded and are resumed after the next start."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._started:
            return
        await self._hand_anchors()  # of turns that ended since the goodbye
        await self.receiver.close()
        await self.presence.close()
        await self.nearby.close()
        await self.outbox.stop()
        await self.pairings.close()
        await self.carrier.close()
        await self.witness.close()

    def caller(self, peer: Peer) -> Caller:
        """A paired machine as the dispatcher knows it."""
        return Caller("federation", peer=peer.fingerprint, caps=peer.scopes)

    def requests(self, peer: Peer) -> Answer:
        """Works on what a peer asks over a line. Whether it is trusted still is asked each time."""

        async def answer(envelope: Envelope) -> Envelope | None:
            now = self.peer_store.get(peer.fingerprint)
            if now is None or now.certificate != peer.certificate:
                ended = NotPairedError("This machine is not trusted here any more.", do="Pair anew.")
                return self.receiver.refuse(envelope, ended)
            self.on_sign_of_life(peer.fingerprint, "")
            armed = await self.credentials.armed(envelope, self.caller(now))
            return await self.receiver.receive(envelope, armed)

        return answer

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """A sign of life that proved its key."""
        self.presence.heard_from(fingerprint)
        if self.troubles.pop(fingerprint, "") or fingerprint not in self.announced:
            self.presence.hurry(fingerprint)  # it may trust this machine by now; what it can do is not known
        self.outbox.heard_from(fingerprint)
        if address and not self.peer_store.was_seen(fingerprint, address):
            self.spawn(self.peer_store.seen(fingerprint, address))

    async def candidates(self, peer: Peer) -> list[AddressCandidate]:
        """Returns the addresses at which a peer may be reached."""
        return await self.resolver.candidates(peer.fingerprint, peer.address)

    def rappid(self) -> str:
        """The rappid of the brainstem here, as a claim for those who cannot check a key; "" without one."""
        try:
            found = orjson.loads(self.tenants.host.workspace.files.read("rappid.json", 1 << 20))
            return str(found["rappid"])[:300]
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    async def probe(self, fingerprint: str) -> float:
        """Says HELLO to a peer; milliseconds. Raises ``ReportableError`` when it is away, or refuses."""
        peer = self.peer_store.get(fingerprint)
        if peer is None:
            raise PeerOfflineError("It is no peer any more.")
        started = time.perf_counter()
        offer = self.witness.offer(peer)
        try:
            reply = await self._say_hello(peer, offer, PROBE_SECONDS)
        except (KeyChangedError, NotPairedError, PeerRefusedError) as problem:
            self.peer_events.on_failed_call(fingerprint, problem)
            raise
        self.troubles.pop(fingerprint, None)
        if reply.verb != HELLO:
            raise PeerOfflineError(f"{peer.name} answered {reply.verb}.")
        self.witness.offered(peer, offer)
        self.told(fingerprint, reply.data)
        return (time.perf_counter() - started) * 1000

    async def ask_witnesses(self) -> list[dict[str, Any]]:
        """The anchors of this machine that each machine of the same owner keeps."""

        async def say(peer: Peer, more: dict[str, Any]) -> dict[str, Any]:
            reply = await self._say_hello(peer, more, PROBE_SECONDS)
            if reply.verb != HELLO:
                raise PeerOfflineError(f"{peer.name} answered {reply.verb}.")
            self.witness.offered(peer, more)
            return reply.data

        return await self.witness.ask(say)

    def greeted(self, fingerprint: str, data: dict[str, Any]) -> dict[str, Any]:
        """A peer said HELLO: what it can do is known anew."""
        if "agents" in data:
            self.told(fingerprint, {key: value for key, value in data.items() if key != "anchor"})
        return self.witness.greeted(fingerprint, data)

    def told(self, fingerprint: str, data: dict[str, Any]) -> None:
        """Keeps what a peer says of itself. What it is called here stays as its owner chose."""
        peer, name = self.peer_store.get(fingerprint), data.get("name")
        if peer is None:
            return
        self.announced[fingerprint] = data
        called = tame(name) if isinstance(name, str) else ""
        if called not in ("", tame(peer.called)):
            self.spawn(self.peer_store.calls_itself(fingerprint, called))

    def agents_changed(self) -> None:
        """Announces changed capabilities: at once to connected peers, to others when they ask."""
        if self.ready.is_set():
            for peer in self.peer_store.all():
                if self.carrier.has_line(peer.fingerprint):
                    self.presence.hurry(peer.fingerprint)

    async def introduction_at(self, address: str) -> tuple[dict[str, Any], bytes]:
        """Returns the node card and the certificate of the machine at an address."""
        hello = Envelope(new_id(), self.id, "broadcast", HELLO, {"capabilities": [], "name": self.name})
        return await say_hello(address, encode(hello))

    async def push(self, fingerprint: str, reply: Envelope) -> None:
        """An answer that its asker did not wait for goes by the outbox."""
        if self.peer_store.get(fingerprint) is not None:
            await self.outbox.put(fingerprint, reply, "an answer")

    async def answered(self, fingerprint: str, reply: Envelope) -> bool:
        """A DONE or ERROR came to this machine's own listener."""
        waited = self.pending_replies.answered(fingerprint, reply)
        kept = await self.outbox.answered(fingerprint, reply)
        return waited or kept

    async def on_answer(self, row: OutgoingEnvelope, reply: Envelope | None) -> None:
        """Something of the outbox came to an end: it is written down on its thread, once."""
        if row.verb in ("DONE", "ERROR", "HELLO", "CANCEL") or not row.thread:
            return
        told = reply or Envelope(row.id, own_id(row.peer), self.id, ERROR, _unanswered(row))
        await self.dispatcher.record_reply(told, row.thread, late=True)

    def over(self, row: OutgoingEnvelope) -> None:
        """Something of the outbox came to an end, and the disk says so: an egg's bytes are needed no more."""
        if row.verb == EGG:
            self.spawn(asyncio.to_thread(self.outgoing_eggs.remove, row.id))

    def looks(self) -> object:
        """Another value whenever a screen would show other machines differently: who is there, who asks."""
        if not self.ready.is_set():
            return ()
        asking = tuple((one.id, one.state) for one in self.pairings.asking())
        here = tuple(self.presence.presence(peer.fingerprint).state for peer in self.peer_store.all())
        troubles = tuple(self.troubles.items())
        said = sum(len(one.get("capabilities", ())) for one in self.announced.values())
        found = hash(tuple((one.fingerprint, one.name) for one in self.sightings.machines()))
        return self.peer_store.version, asking, here, troubles, said, found

    def spawn(self, work: Any) -> None:
        """Runs ``work`` beside everything else; a failure is logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _say_hello(self, peer: Peer, more: dict[str, Any], wait: float) -> Envelope:
        said = {**self.catalogue.hello(self.caller(peer)), **more}
        hello = Envelope(new_id(), self.id, own_id(peer.fingerprint), HELLO, said)
        return await self.carrier.probe(peer, encode(hello), wait=wait)

    async def _hand_anchors(self) -> None:
        """At a clean stop: those that are here get the newest anchor, if that takes no time."""

        async def hand(peer: Peer, offer: dict[str, Any]) -> None:
            with contextlib.suppress(ReportableError):
                await self._say_hello(peer, offer, PARTING_SECONDS)

        offers = [
            (peer, offer)
            for peer in self.peer_store.all()
            if self.presence.presence(peer.fingerprint).state == "here"
            and (offer := self.witness.offer(peer, now=True))
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PARTING_SECONDS):
                await asyncio.gather(*(hand(*one) for one in offers))

    def _peer_changed(self, what: str, peer: Peer) -> None:
        self._know_peers()
        if what == "changed":
            self.presence.hurry(peer.fingerprint)  # it may do other things now, and is told
        elif what == "paired":
            self.trust.pin(peer.certificate)
            self.presence.watch(peer.fingerprint, peer.seen_at)
            self.outbox.cleared(peer.fingerprint)
        elif what == "revoked":
            log.warning("security: the trust in %s (%s) was ended", peer.name, peer.fingerprint[:16])
            self.spawn(self._unpin(peer.certificate))
            self.credentials.forget(peer.fingerprint)
            self.presence.forget(peer.fingerprint)
            self.announced.pop(peer.fingerprint, None)
            self.troubles.pop(peer.fingerprint, None)
            self.spawn(self.carrier.part_from(peer.fingerprint))

    def _know_peers(self) -> None:
        peers = self.peer_store.all()
        self.resolver.remember({one.fingerprint: one.address for one in peers})
        self.sightings.pin(one.fingerprint for one in peers)

    async def _unpin(self, certificate: bytes) -> None:
        await asyncio.to_thread(self.trust.unpin, certificate)
        if self.peer_store.by_pin(sha256(certificate).digest()) is not None:  # trusted anew meanwhile
            await asyncio.to_thread(self.trust.pin, certificate)

    async def _clear_up_eggs(self) -> None:
        """Deletes what the last run left behind: bytes without an outbox row and half-received eggs."""
        try:
            ids = await asyncio.to_thread(self.outgoing_eggs.ids)
            rows = [row for id in ids for row in await self.outbox_rows.find_outgoing(id)]
            waiting = {row.id for row in rows if row.state in WAITING}
            await asyncio.to_thread(self.outgoing_eggs.keep_only, waiting)
            if self.eggs is not None:
                await self.eggs.clear_up()
        except OSError as error:  # what is in the way is told, and stops nothing else
            log.warning("left-over eggs could not be cleared up: %s", error)

    async def _catch_up(self, unfinished: list[Unfinished]) -> None:
        await self.tenants.host.ready.wait()
        by_prefix = {peer.prefix: self.caller(peer) for peer in self.peer_store.all()}
        rows: list[tuple[str, bytes]] = [(row.state, row.body) for row in unfinished if row.body]
        await self.receiver.resume(by_prefix.get, rows)
        await self.outbox.resume()
        self.spawn(self._tidy())

    async def _tidy(self) -> None:
        """Forgets, now and then, what nobody asks for any more."""
        while True:
            at = time.time_ns() // 1000 - DONE_KEPT_SECONDS * 1_000_000
            await self.inbox_rows.forget_before(at)
            await self.outbox_rows.forget_before(at)
            await asyncio.sleep(TIDY_SECONDS)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work for another machine failed", exc_info=error)


def _unanswered(row: OutgoingEnvelope) -> dict[str, Any]:
    """Returns the reason why an outbox row ended without a reply."""
    if row.state == "dropped":
        return {"code": 499, "msg": "Not wanted any more.", "reason": row.state}
    return {"code": 504, "msg": "Nobody answered in time.", "reason": row.state}
