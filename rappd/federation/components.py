"""The components that serve other machines, as a protocol. ``FederationService`` implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

from neighborhoods.peer_store import PeerStore
from rappd.store.inbox_table import InboxTable
from rappd.store.outbox_table import OutboxTable
from rappd.store.token_table import TokenTable

if TYPE_CHECKING:
    from envelopes.envelope import Envelope
    from envelopes.identity.keys import IdentityKey
    from neighborhoods.auth.tls import ServerTrust
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.discovery.address_resolver import AddressCandidate, AddressResolver
    from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
    from neighborhoods.discovery.mdns_service import MdnsService
    from neighborhoods.discovery.peers_file import PeersFile
    from neighborhoods.discovery.presence import Presence
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.peer import Peer
    from neighborhoods.storage import OutgoingEnvelope
    from neighborhoods.transport.peer_client import PeerClient
    from neighborhoods.transport.peer_connection import Answer
    from neighborhoods.transport.peer_events import PeerEvents
    from rappd.daemon.home import Home
    from rappd.dispatch.dispatcher import Dispatcher
    from rappd.federation.advertised_capabilities import CapabilityCatalog
    from rappd.federation.inbound import InboundHandler
    from rappd.federation.node_identity import NodeIdentity
    from rappd.federation.outgoing_eggs import OutgoingEggs
    from rappd.federation.request_auth import RequestAuthenticator
    from rappd.settings.load import Settings
    from rappd.store.store import Store
    from rappd.tenants.tenants import Tenants


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


class FederationComponents(ABC):
    """The first are there from the beginning, the others once ``opening`` is through."""

    home: Home
    settings: Settings
    identity: IdentityKey
    name: str
    id: str
    port: int
    loopback_port: int
    store: Store
    dispatcher: Dispatcher
    tenants: Tenants
    peer_store: PeerStore
    inbox_rows: InboxTable
    outbox_rows: OutboxTable
    token_rows: TokenTable
    outgoing_eggs: OutgoingEggs
    peer_events: PeerEvents
    announced: dict[str, dict[str, Any]]
    """The data of each peer's last HELLO, by fingerprint."""
    troubles: dict[str, str]
    """The reason why a reachable peer is not used, by fingerprint."""

    material: NodeIdentity
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

    @abstractmethod
    def requests(self, peer: Peer) -> Answer:
        """Works on what a peer asks over a line."""

    @abstractmethod
    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """A sign of life that proved its key."""

    @abstractmethod
    def greeted(self, fingerprint: str, data: dict[str, Any]) -> dict[str, Any]:
        """A peer said HELLO; what the reply has to bring."""

    @abstractmethod
    async def candidates(self, peer: Peer) -> list[AddressCandidate]:
        """Returns the addresses at which a peer may be reached."""

    @abstractmethod
    async def probe(self, fingerprint: str) -> float:
        """Says HELLO to a peer; milliseconds."""

    @abstractmethod
    async def push(self, fingerprint: str, reply: Envelope) -> None:
        """An answer that its asker did not wait for."""

    @abstractmethod
    async def answered(self, fingerprint: str, reply: Envelope) -> bool:
        """A DONE or ERROR came to this machine's own listener."""

    @abstractmethod
    async def on_answer(self, row: OutgoingEnvelope, reply: Envelope | None) -> None:
        """Something of the outbox came to an end."""

    @abstractmethod
    def over(self, row: OutgoingEnvelope) -> None:
        """Handles the end of an outbox row, once it is on the disk."""
