"""The parts that serve other machines: those that are there at once, and those that are built after the start.

Modules that are heavy are imported by ``build_components``, so that the start does not wait for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from envelopes.errors import ReportableError
from envelopes.identity.keys import IdentityKey
from neighborhoods.errors import PeerOfflineError
from neighborhoods.peer_store import PeerStore
from neighborhoods.places.memberships import Memberships
from rappd.daemon.home import Home
from rappd.dispatch.dispatcher import Dispatcher
from rappd.federation.outgoing_eggs import OutgoingEggs
from rappd.federation.peer_greeting import PeerGreeting
from rappd.settings.load import Settings
from rappd.store.inbox_table import InboxTable
from rappd.store.outbox_table import OutboxTable
from rappd.store.peer_table import PeerTable
from rappd.store.token_table import TokenTable
from rappd.tenants.tenants import Tenants

if TYPE_CHECKING:
    from envelopes.envelope import Envelope
    from neighborhoods.auth.tls import ServerTrust
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.discovery.address_resolver import AddressResolver
    from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
    from neighborhoods.discovery.mdns_service import MdnsService
    from neighborhoods.discovery.peers_file import PeersFile
    from neighborhoods.discovery.presence import Presence
    from neighborhoods.pairing.attempts import PairingAttempt
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.peer import Peer
    from neighborhoods.storage import OutgoingEnvelope
    from neighborhoods.transport.peer_client import PeerClient
    from neighborhoods.transport.peer_connection import Answer
    from neighborhoods.transport.peer_events import PeerEvents
    from rappd.federation.advertised_capabilities import CapabilityCatalog
    from rappd.federation.inbound import InboundHandler
    from rappd.federation.request_auth import RequestAuthenticator


class EggInbox(Protocol):
    """Keeps eggs that peers send."""

    async def clear_up(self) -> None:
        """Throws away what was half here when the daemon ended. Before anything comes in."""
        ...

    async def remove_old(self) -> None:
        """Removes eggs that waited too long."""
        ...

    async def received(self, peer: Peer, id: str) -> dict[str, Any]:
        """The result for an egg that a peer sent under that id.

        Raises ``NotFoundError`` when it has to send it, and what ``take_in`` would raise before it.
        """
        ...

    async def take_in(
        self, peer: Peer, name: str, body: AsyncIterator[bytes], id: str = ""
    ) -> dict[str, Any]:
        """Receives an egg from a peer, whole or not at all."""
        ...


@dataclass(frozen=True, slots=True)
class LocalNode:
    """This machine: its home, its settings, its key and what it is called. ``id`` is the sender of its envelopes.

    ``speaks_a2a`` tells if it answers over A2A now.
    """

    home: Home
    settings: Settings
    identity: IdentityKey
    name: str
    id: str
    speaks_a2a: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class FederationTables:
    """The tables of the store that concern other machines."""

    peers: PeerTable
    tokens: TokenTable
    outbox: OutboxTable
    inbox: InboxTable


@dataclass(frozen=True, slots=True)
class FederationBase:
    """The parts that are there before the store can be read."""

    node: LocalNode
    dispatcher: Dispatcher
    tenants: Tenants
    tables: FederationTables
    peer_store: PeerStore
    outgoing_eggs: OutgoingEggs
    memberships: Memberships
    announced: dict[str, PeerGreeting] = field(default_factory=dict)
    """The data of each peer's last HELLO, by fingerprint."""


@dataclass(frozen=True, slots=True)
class FederationComponents:
    """The parts that ``build_components`` makes, once the store can be read."""

    trust: ServerTrust
    credentials: RequestAuthenticator
    catalogue: CapabilityCatalog
    receiver: InboundHandler
    carrier: PeerClient
    outbox: Outbox
    sightings: DiscoveredNodes
    written: PeersFile
    nearby: MdnsService
    resolver: AddressResolver
    presence: Presence
    pairings: PairingService


class GreetingEvents(Protocol):
    """HELLO of peers, and to them."""

    def greeted(self, fingerprint: str, data: dict[str, Any]) -> dict[str, Any]:
        """A peer said HELLO; what the reply has to bring."""
        ...

    async def probe(self, fingerprint: str) -> float:
        """Says HELLO to a peer; milliseconds."""
        ...


class FederationEvents(Protocol):
    """Events of other machines that the parts report. ``FederationService`` handles them."""

    @property
    def peer_events(self) -> PeerEvents:
        """Told of connections to peers."""
        ...

    def requests(self, peer: Peer) -> Answer:
        """Works on what a peer asks over a line."""
        ...

    @property
    def greetings(self) -> GreetingEvents:
        """Handles HELLO."""
        ...

    async def push(self, fingerprint: str, reply: Envelope) -> None:
        """An answer that its asker did not wait for."""
        ...

    async def answered(self, fingerprint: str, reply: Envelope) -> bool:
        """A DONE or ERROR came to this machine's own listener."""
        ...

    async def on_answer(self, row: OutgoingEnvelope, reply: Envelope | None) -> None:
        """Something of the outbox came to an end."""
        ...

    def asked_to_pair(self, session: PairingAttempt) -> None:
        """Another machine wants to pair with this one."""
        ...

    def over(self, row: OutgoingEnvelope) -> None:
        """Handles the end of an outbox row, once it is on the disk."""
        ...


async def build_components(
    base: FederationBase, events: FederationEvents, *, port: int, hosts: Sequence[str], loopback_port: int
) -> FederationComponents:
    """Every part; the peers are read already. The federation listener is at ``hosts`` and ``port``."""
    await asyncio.to_thread(_import)
    from neighborhoods.auth.tls import ServerTrust
    from neighborhoods.delivery.egg_sender import EggSender
    from neighborhoods.delivery.outbox import Outbox, OutboxOwner, OutboxTiming
    from neighborhoods.discovery.address_resolver import AddressResolver
    from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
    from neighborhoods.discovery.mdns_service import MdnsService
    from neighborhoods.discovery.presence import Presence
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.transport.connector import Connector
    from neighborhoods.transport.peer_client import PeerClient
    from rappd.federation.advertised_capabilities import CapabilityCatalog
    from rappd.federation.code_access import CodeAccess
    from rappd.federation.handshake_client import pairing_parts
    from rappd.federation.inbound import InboundHandler
    from rappd.federation.node_identity import material
    from rappd.federation.request_auth import RequestAuthenticator

    node, tables, peers = base.node, base.tables, base.peer_store
    own = await asyncio.to_thread(material, node.home, node.identity)
    trust = await asyncio.to_thread(ServerTrust, own.tls, [peer.certificate for peer in peers.all()])
    introduction = own.introduction(node.identity, node.name, port or 7443)
    catalogue = CapabilityCatalog(
        base.dispatcher.endpoints,
        node.name,
        introduction,
        public=base.memberships.public,
        shared_with=base.memberships.shared_with,
    )
    receiver = InboundHandler(
        base.dispatcher,
        base.tenants,
        catalogue,
        node.identity.fingerprint,
        answered=events.answered,
        push=events.push,
        greeted=events.greetings.greeted,
    )
    sightings = DiscoveredNodes()
    written = written_addresses(node, loopback_port)
    nearby = MdnsService(
        sightings,
        name=node.name,
        fingerprint=node.identity.fingerprint,
        port=port,
        hosts=hosts,
        loopback=node.settings.on("peers.loopback"),
        a2a=node.speaks_a2a,
    )
    resolver = AddressResolver(sightings, written, nearby)
    presence = Presence(events.greetings.probe)
    carrier = PeerClient(
        Connector(lambda peer: resolver.candidates(peer.fingerprint, peer.address), own.tls),
        own.tls,
        events.requests,
        events.peer_events,
    )
    return FederationComponents(
        trust=trust,
        credentials=await RequestAuthenticator.open(
            node.identity,
            peers,
            tables.tokens,
            tables.inbox,
            base.memberships.capabilities,
            CodeAccess(node.home.keys / "codes"),
        ),
        catalogue=catalogue,
        receiver=receiver,
        carrier=carrier,
        outbox=Outbox(
            tables.outbox,
            carrier,
            OutboxOwner(
                peers.get,
                events.on_answer,
                events.over,
                verbs=lambda fingerprint: found.verbs if (found := base.announced.get(fingerprint)) else (),
            ),
            OutboxTiming(clock=lambda: time.time_ns() // 1000),
            eggs=EggSender(carrier, base.outgoing_eggs.path),
        ),
        sightings=sightings,
        written=written,
        nearby=nearby,
        resolver=resolver,
        presence=presence,
        pairings=PairingService(
            node.identity,
            lambda: introduction,
            *pairing_parts(peers, resolver),
            known=lambda name: None,
            within=node.settings.number("peers.pairing_seconds"),
            on_asked=events.asked_to_pair,
        ),
    )


def written_addresses(node: LocalNode, loopback_port: int) -> PeersFile:
    """The addresses of machines that were written down; one at ``loopback_port`` of this machine is itself."""
    from neighborhoods.discovery.peers_file import PeersFile  # a start has it imported in a thread

    return PeersFile(
        node.home.root / "peers.json",
        environment=node.settings.environment.get("BRAINSTEM_PEERS", ""),
        allow_loopback=node.settings.on("peers.loopback"),
        own_port=loopback_port,
    )


def _import() -> None:
    """In a thread, so that nobody waits for it."""


class PeerEventHandler:
    """Fulfils ``neighborhoods.transport.peer_events.PeerEvents``. All calls come from the event loop.

    ``presence`` gives it once it is built; ``troubles``: why a reachable peer is not used, by fingerprint.
    """

    def __init__(
        self,
        on_sign_of_life: Callable[[str, str], None],
        presence: Callable[[], Presence],
        troubles: dict[str, str],
    ) -> None:
        self.on_sign_of_life, self._presence, self.troubles = on_sign_of_life, presence, troubles

    def on_doubt(self, fingerprint: str) -> None:
        """Has the peer asked, which may take as long as any. What comes by another line is no answer."""
        self._presence().tell(fingerprint)

    def on_loss(self, fingerprint: str) -> None:
        """Its program ended, or it trusts this machine no more: asking tells."""
        self._presence().suspect(fingerprint)

    def on_goodbye(self, fingerprint: str) -> None:
        """It is away from now on."""
        self._presence().left(fingerprint)

    def on_failed_call(self, fingerprint: str, problem: ReportableError) -> None:
        """It is away; what is more than that is kept for its owner."""
        if isinstance(problem, PeerOfflineError):
            if problem.maybe_sent:  # it may work on the call still
                self._presence().suspect(fingerprint)
                return
        else:
            self.troubles[fingerprint] = str(problem)
        self._presence().left(fingerprint)
