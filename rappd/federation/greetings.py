"""HELLO between paired machines: what each said last, saying it, and the anchors that travel with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from envelopes.codecs.emergence import encode
from envelopes.envelope import HELLO, Envelope, brainstem_id, new_id
from envelopes.errors import ReportableError
from neighborhoods.discovery.announcement import tame
from neighborhoods.discovery.presence import Presence
from neighborhoods.errors import KeyChangedError, NotPairedError, PeerOfflineError, PeerRefusedError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.federation.advertised_capabilities import CapabilityCatalog
from rappd.federation.connected_peers import PeerCallers, PeerEventHandler
from rappd.federation.peer_greeting import PeerGreeting, read_greeting
from rappd.federation.roster_changes import RosterChanges
from rappd.federation.startup_state import Availability, Deferred
from rappd.federation.witness import AnchorWitness, WitnessRow
from twins.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from neighborhoods.transport.peer_client import PeerClient

log = logging.getLogger(__name__)

PROBE_SECONDS = 4.0
"""Less than ``Presence`` has patience: what does not answer is then given up, not only stopped asking."""
PARTING_SECONDS = 1.0
_NOTHING_SAID = PeerGreeting()


class HelloSender:
    """Says HELLO: what each peer may know of this machine, and what goes along. ``sender`` is this machine."""

    def __init__(
        self,
        sender: str,
        callers: PeerCallers,
        catalogue: CapabilityCatalog,
        peer_client: Deferred[PeerClient],
    ) -> None:
        self._sender, self._callers, self._catalogue = sender, callers, catalogue
        self._peer_client = peer_client

    async def probe(self, peer: Peer, more: dict[str, Any], wait: float) -> Envelope:
        """The reply of a peer, which is tried by further ways where it is silent; ``more`` goes along."""
        return await self._peer_client.now().probe(peer, self._hello(peer, more), wait=wait)

    async def call(self, peer: Peer, wait: float) -> Envelope:
        """The reply of a peer, by the way that calls take."""
        return await self._peer_client.now().send(peer, self._hello(peer, {}), wait=wait)

    def milliseconds(self, fingerprint: str) -> float:
        """The time that the last probe took on its open connection."""
        return self._peer_client.now().round_trip(fingerprint) * 1000

    def _hello(self, peer: Peer, more: dict[str, Any]) -> bytes:
        data = {**self._catalogue.hello(self._callers.of(peer)), **more}
        return encode(Envelope(new_id(), self._sender, brainstem_id(peer.fingerprint), HELLO, data))


class Greetings:
    """The last HELLO of each peer, ``announced`` by fingerprint, and those of this machine. Belongs to the event loop."""

    def __init__(
        self,
        sender: HelloSender,
        peers: PeerStore,
        announced: dict[str, PeerGreeting],
        witness: AnchorWitness,
        roster_changes: RosterChanges,
        peer_events: PeerEventHandler,
        tasks: BackgroundTasks,
    ) -> None:
        self._sender, self._peers, self._announced = sender, peers, announced
        self._witness, self._roster_changes = witness, roster_changes
        self._peer_events, self._tasks = peer_events, tasks

    def of(self, fingerprint: str) -> PeerGreeting:
        """The last HELLO of that peer; an empty one before it said any."""
        return self._announced.get(fingerprint) or _NOTHING_SAID

    def is_known(self, fingerprint: str) -> bool:
        """True for a peer that said HELLO since this machine started, or since it was last revoked."""
        return fingerprint in self._announced

    async def probe(self, fingerprint: str) -> float:
        """Says HELLO to a peer; milliseconds. Raises ``ReportableError`` when it is away, or refuses."""
        peer = self._peers.get(fingerprint)
        if peer is None:
            raise PeerOfflineError("It is no peer any more.")
        offer, left = self._witness.offer(peer), self._roster_changes.offer(peer)
        try:
            reply = await self._sender.probe(peer, {**offer, **left}, PROBE_SECONDS)
        except (KeyChangedError, NotPairedError, PeerRefusedError) as problem:
            self._peer_events.on_failed_call(fingerprint, problem)
            raise
        self._peer_events.troubles.pop(fingerprint, None)
        if reply.verb != HELLO:
            raise PeerOfflineError(f"{peer.name} answered {reply.verb}.")
        self._witness.offered(peer, offer)
        await self._roster_changes.offered(peer, left)
        self.heard(fingerprint, reply.data)
        return self._sender.milliseconds(fingerprint)

    def greeted(self, fingerprint: str, data: dict[str, Any]) -> dict[str, Any]:
        """A peer said HELLO: what it can do is known anew. Returns what the reply has to bring."""
        if "agents" in data:
            self.heard(fingerprint, {key: value for key, value in data.items() if key != "anchor"})
        return self._witness.greeted(fingerprint, data)

    def heard(self, fingerprint: str, data: dict[str, Any]) -> None:
        """Keeps what a peer says of itself. What it is called here stays as its owner chose."""
        peer, greeting = self._peers.get(fingerprint), read_greeting(data)
        if peer is None:
            return
        if greeting.unread and greeting.unread != self.of(fingerprint).unread:
            log.warning(
                "the HELLO of %s has no documented shape in: %s (docs/wire.md, Verbs)",
                peer.name,
                ", ".join(greeting.unread),
            )
        self._announced[fingerprint] = greeting
        if changes := self._roster_changes.heard(peer, data):
            self._tasks.spawn(changes)
        called = tame(greeting.name)
        if called not in ("", tame(peer.called)):
            self._tasks.spawn(self._peers.calls_itself(fingerprint, called))

    async def ask_witnesses(self) -> list[WitnessRow]:
        """The anchors of this machine that each machine of the same owner keeps."""

        async def say(peer: Peer, more: dict[str, Any]) -> dict[str, Any]:
            reply = await self._sender.probe(peer, more, PROBE_SECONDS)
            if reply.verb != HELLO:
                raise PeerOfflineError(f"{peer.name} answered {reply.verb}.")
            self._witness.offered(peer, more)
            return reply.data

        return await self._witness.ask(say)

    async def call(self, peer: Peer) -> Envelope:
        """Says HELLO to a peer by the way that calls take, and keeps what it answers. Raises ``ReportableError``."""
        reply = await self._sender.call(peer, PROBE_SECONDS)
        if reply.verb == HELLO:
            self.heard(peer.fingerprint, reply.data)
        return reply


class PeerAnnouncements:
    """Told by HELLO to those that are here. All calls come from the event loop."""

    def __init__(
        self,
        availability: Availability,
        peers: PeerStore,
        presence: Presence,
        peer_client: Deferred[PeerClient],
        sender: HelloSender,
        roster_changes: RosterChanges,
        witness: AnchorWitness,
    ) -> None:
        self._availability, self._peers, self._presence = availability, peers, presence
        self._peer_client, self._sender = peer_client, sender
        self._roster_changes, self._witness = roster_changes, witness

    def agents_changed(self) -> None:
        """Announces what changed: at once to connected peers and to members that were left, to others when they ask."""
        if self._availability.ready.is_set():
            peer_client = self._peer_client.now()
            for peer in self._peers.all():
                if peer_client.has_line(peer.fingerprint) or self._roster_changes.offer(peer):
                    self._presence.tell(peer.fingerprint)

    async def hand_anchors(self) -> None:
        """At a clean stop: those that are here get the newest anchor, if that takes no time."""

        async def hand(peer: Peer, offer: dict[str, Any]) -> None:
            with contextlib.suppress(ReportableError):
                await self._sender.probe(peer, offer, PARTING_SECONDS)

        offers = [
            (peer, offer)
            for peer in self._peers.all()
            if self._presence.presence(peer.fingerprint).state == "here"
            and (offer := self._witness.offer(peer, now=True))
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PARTING_SECONDS):
                await asyncio.gather(*(hand(*one) for one in offers))
