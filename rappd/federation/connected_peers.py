"""Peers that are connected: their requests, with the rights that each has at that moment, and their signs of life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from envelopes.envelope import Envelope
from envelopes.errors import ReportableError
from neighborhoods.discovery.presence import Presence
from neighborhoods.errors import NotPairedError, PeerOfflineError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from neighborhoods.places.memberships import Memberships
from rappd.dispatch.rights import Caller
from rappd.federation.peer_greeting import PeerGreeting
from rappd.federation.startup_state import Deferred
from twins.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.transport.peer_connection import Answer
    from rappd.federation.inbound import InboundHandler
    from rappd.federation.request_auth import RequestAuthenticator


class PeerCallers:
    """Paired machines as the dispatcher knows them."""

    def __init__(self, peers: PeerStore, memberships: Memberships) -> None:
        self._peers, self._memberships = peers, memberships

    def of(self, peer: Peer) -> Caller:
        """A paired machine, with its scopes and what is published to it."""
        published = self._memberships.capabilities(peer.fingerprint)
        return Caller(
            "federation",
            peer=peer.fingerprint,
            caps=(*peer.scopes, *published),
            mine=peer.whose == "mine",
        )

    def by_key(self, fingerprint: str) -> Caller | None:
        """The paired machine of that key; None for one that is trusted no more."""
        peer = self._peers.get(fingerprint)
        return self.of(peer) if peer is not None else None


class PeerEventHandler:
    """Fulfils ``neighborhoods.transport.peer_events.PeerEvents``. All calls come from the event loop.

    ``troubles``: why a reachable peer is not used, by fingerprint.
    """

    def __init__(
        self,
        peers: PeerStore,
        presence: Presence,
        outbox: Deferred[Outbox],
        announced: Mapping[str, PeerGreeting],
        troubles: dict[str, str],
        tasks: BackgroundTasks,
    ) -> None:
        self._peers, self._presence, self._outbox = peers, presence, outbox
        self._announced, self.troubles, self._tasks = announced, troubles, tasks

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """A sign of life that proved its key."""
        self._presence.heard_from(fingerprint)
        if self.troubles.pop(fingerprint, "") or fingerprint not in self._announced:
            # It may trust this machine by now; what it can do is not known.
            self._presence.tell(fingerprint)
        self._outbox.now().heard_from(fingerprint)
        if address and not self._peers.was_seen(fingerprint, address):
            self._tasks.spawn(self._peers.seen(fingerprint, address))

    def on_doubt(self, fingerprint: str) -> None:
        """Has the peer asked, which may take as long as any. What comes by another line is no answer."""
        self._presence.tell(fingerprint)

    def on_loss(self, fingerprint: str) -> None:
        """A connection ended: the peer's program did, or its trust. A question finds out which."""
        self._presence.suspect(fingerprint)

    def on_goodbye(self, fingerprint: str) -> None:
        """The peer is offline from now on."""
        self._presence.left(fingerprint)

    def on_failed_call(self, fingerprint: str, problem: ReportableError) -> None:
        """The peer is offline; a further reason is kept for its owner."""
        if isinstance(problem, PeerOfflineError):
            if problem.maybe_sent:  # it may work on the call still
                self._presence.suspect(fingerprint)
                return
        else:
            self.troubles[fingerprint] = str(problem)
        self._presence.left(fingerprint)


class LineRequests:
    """Requests of peers over connections that stay open."""

    def __init__(
        self,
        peers: PeerStore,
        callers: PeerCallers,
        credentials: RequestAuthenticator,
        receiver: InboundHandler,
        events: PeerEventHandler,
    ) -> None:
        self._peers, self._callers, self._events = peers, callers, events
        self._credentials, self._receiver = credentials, receiver

    def of(self, peer: Peer) -> Answer:
        """Returns the function that answers a peer's requests. Whether it is trusted still is asked each time."""

        async def answer(envelope: Envelope) -> Envelope | None:
            now = self._peers.get(peer.fingerprint)
            if now is None or now.certificate != peer.certificate:
                ended = NotPairedError("This machine is not trusted here any more.", do="Pair anew.")
                return self._receiver.refuse(envelope, ended)
            self._events.on_sign_of_life(peer.fingerprint, "")
            armed = await self._credentials.armed(envelope, self._callers.of(now))
            return await self._receiver.receive(envelope, armed)

        return answer
