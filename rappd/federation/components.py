"""The parts that serve other machines: those that are there at once, and those that are built after the start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from envelopes.identity.keys import IdentityKey, brainstem_id
from neighborhoods.peer_store import PeerStore
from neighborhoods.places.memberships import Memberships
from rappd.daemon.home import Home
from rappd.dispatch.dispatcher import Dispatcher
from rappd.federation.outgoing_eggs import OutgoingEggs
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
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.pairing.session import PairingSession
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
    """This machine: its home, its settings, its key and what it is called."""

    home: Home
    settings: Settings
    identity: IdentityKey
    name: str

    @property
    def id(self) -> str:
        """The sender of its envelopes."""
        return brainstem_id(self.identity.fingerprint)


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
    announced: dict[str, dict[str, Any]] = field(default_factory=dict)
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


class FederationEvents(Protocol):
    """Events of other machines that the parts report. ``FederationService`` handles them."""

    @property
    def peer_events(self) -> PeerEvents:
        """Told of connections to peers."""
        ...

    def requests(self, peer: Peer) -> Answer:
        """Works on what a peer asks over a line."""
        ...

    def greeted(self, fingerprint: str, data: dict[str, Any]) -> dict[str, Any]:
        """A peer said HELLO; what the reply has to bring."""
        ...

    async def probe(self, fingerprint: str) -> float:
        """Says HELLO to a peer; milliseconds."""
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

    def asked_to_pair(self, session: PairingSession) -> None:
        """Another machine wants to pair with this one."""
        ...

    def over(self, row: OutgoingEnvelope) -> None:
        """Handles the end of an outbox row, once it is on the disk."""
        ...
