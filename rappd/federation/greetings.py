"""HELLO between paired machines: what each said last, saying it, and the anchors that travel with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from envelopes.codecs.emergence import encode
from envelopes.envelope import HELLO, Envelope, brainstem_id, new_id
from envelopes.errors import ReportableError
from neighborhoods.discovery.announcement import tame
from neighborhoods.errors import KeyChangedError, NotPairedError, PeerOfflineError, PeerRefusedError
from neighborhoods.peer import Peer
from rappd.dispatch.rights import Caller
from rappd.federation.components import FederationBase, FederationComponents, PeerEventHandler
from rappd.federation.peer_greeting import PeerGreeting, read_greeting
from rappd.federation.roster_changes import RosterChanges
from rappd.federation.witness import AnchorWitness
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

PROBE_SECONDS = 4.0
"""Less than ``Presence`` has patience: what does not answer is then given up, not only stopped asking."""
PARTING_SECONDS = 1.0
_NOTHING_SAID = PeerGreeting()


class Greetings:
    """The last HELLO of each peer, and those of this machine. All calls come from the event loop."""

    def __init__(
        self,
        base: FederationBase,
        parts: Callable[[], FederationComponents],
        caller: Callable[[Peer], Caller],
        witness: AnchorWitness,
        roster_changes: RosterChanges,
        peer_events: PeerEventHandler,
        tasks: BackgroundTasks,
    ) -> None:
        self._base, self._parts, self._caller = base, parts, caller
        self._peers = base.peer_store
        self._witness, self._roster_changes = witness, roster_changes
        self._peer_events, self._tasks = peer_events, tasks

    def of(self, fingerprint: str) -> PeerGreeting:
        """The last HELLO of that peer; an empty one before it said any."""
        return self._base.announced.get(fingerprint) or _NOTHING_SAID

    def is_known(self, fingerprint: str) -> bool:
        """True for a peer that said HELLO since this machine started, or since it was last revoked."""
        return fingerprint in self._base.announced

    async def probe(self, fingerprint: str) -> float:
        """Says HELLO to a peer; milliseconds. Raises ``ReportableError`` when it is away, or refuses."""
        peer = self._peers.get(fingerprint)
        if peer is None:
            raise PeerOfflineError("It is no peer any more.")
        offer, left = self._witness.offer(peer), self._roster_changes.offer(peer)
        try:
            reply = await self._say_hello(peer, {**offer, **left}, PROBE_SECONDS)
        except (KeyChangedError, NotPairedError, PeerRefusedError) as problem:
            self._peer_events.on_failed_call(fingerprint, problem)
            raise
        self._peer_events.troubles.pop(fingerprint, None)
        if reply.verb != HELLO:
            raise PeerOfflineError(f"{peer.name} answered {reply.verb}.")
        self._witness.offered(peer, offer)
        await self._roster_changes.offered(peer, left)
        self.heard(fingerprint, reply.data)
        return self._parts().carrier.round_trip(fingerprint) * 1000

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
        self._base.announced[fingerprint] = greeting
        if changes := self._roster_changes.heard(peer, data):
            self._tasks.spawn(changes)
        called = tame(greeting.name)
        if called not in ("", tame(peer.called)):
            self._tasks.spawn(self._peers.calls_itself(fingerprint, called))

    async def ask_witnesses(self) -> list[dict[str, Any]]:
        """The anchors of this machine that each machine of the same owner keeps."""

        async def say(peer: Peer, more: dict[str, Any]) -> dict[str, Any]:
            reply = await self._say_hello(peer, more, PROBE_SECONDS)
            if reply.verb != HELLO:
                raise PeerOfflineError(f"{peer.name} answered {reply.verb}.")
            self._witness.offered(peer, more)
            return reply.data

        return await self._witness.ask(say)

    async def hand_anchors(self) -> None:
        """At a clean stop: those that are here get the newest anchor, if that takes no time."""

        async def hand(peer: Peer, offer: dict[str, Any]) -> None:
            with contextlib.suppress(ReportableError):
                await self._say_hello(peer, offer, PARTING_SECONDS)

        offers = [
            (peer, offer)
            for peer in self._peers.all()
            if self._parts().presence.presence(peer.fingerprint).state == "here"
            and (offer := self._witness.offer(peer, now=True))
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PARTING_SECONDS):
                await asyncio.gather(*(hand(*one) for one in offers))

    async def _say_hello(self, peer: Peer, more: dict[str, Any], wait: float) -> Envelope:
        parts, node = self._parts(), self._base.node
        data = {**parts.catalogue.hello(self._caller(peer)), **more}
        hello = Envelope(new_id(), node.id, brainstem_id(peer.fingerprint), HELLO, data)
        return await parts.carrier.probe(peer, encode(hello), wait=wait)
