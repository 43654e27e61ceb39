"""The parts that serve other machines, put together: each gets what it works with as arguments of its constructor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neighborhoods.delivery.pending_replies import PendingReplies
from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
from neighborhoods.discovery.mdns_service import MdnsService
from neighborhoods.discovery.peer_address_order import AddressResolver
from neighborhoods.discovery.peers_file import PeersFile
from neighborhoods.discovery.presence import Presence
from neighborhoods.peer_store import PeerStore
from neighborhoods.places.memberships import Memberships
from rappd.daemon.anchoring import Anchoring
from rappd.dispatch.dispatcher import Dispatcher
from rappd.federation.advertised_capabilities import CapabilityCatalog
from rappd.federation.connected_peers import PeerCallers, PeerEventHandler
from rappd.federation.greetings import Greetings, HelloSender, PeerAnnouncements
from rappd.federation.local_node import LocalNode
from rappd.federation.outgoing_eggs import OutgoingEggs
from rappd.federation.peer_addresses import PeerAddresses
from rappd.federation.peer_greeting import PeerGreeting
from rappd.federation.peer_notices import OwnerNotices
from rappd.federation.peer_view import PeerView
from rappd.federation.reply_delivery import ReplyDelivery
from rappd.federation.revocations import Revocations
from rappd.federation.roster_changes import RosterChanges
from rappd.federation.startup_state import Availability, Deferred
from rappd.federation.witness import AnchorWitness
from rappd.notices.notices import Notices
from rappd.store.inbox_table import InboxTable
from rappd.store.outbox_table import OutboxTable
from rappd.store.peer_table import PeerTable
from rappd.store.store import Store
from rappd.store.token_table import TokenTable
from rappd.tenants.tenants import Tenants
from twins.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from envelopes.identity.node_card import NodeCard
    from neighborhoods.auth.tls import ServerTrust
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.transport.peer_client import PeerClient
    from rappd.federation.inbound import InboundHandler
    from rappd.federation.request_auth import RequestAuthenticator


@dataclass(frozen=True, slots=True)
class FederationTables:
    """The tables of the store that concern other machines."""

    peers: PeerTable
    tokens: TokenTable
    outbox: OutboxTable
    inbox: InboxTable


class FederationAssembly:
    """For those that put further parts together, and for nobody else: a part is given those that it uses.

    Parts that are ``Deferred`` are made by ``opening.open_parts``, because their modules are heavy or they read what the start
    has to read first.
    """

    def __init__(
        self,
        node: LocalNode,
        store: Store,
        dispatcher: Dispatcher,
        tenants: Tenants,
        anchoring: Anchoring,
        notices: Notices,
        memberships: Memberships,
    ) -> None:
        self.node, self.store, self.dispatcher, self.tenants = node, store, dispatcher, tenants
        self.memberships = memberships
        self.availability = Availability()
        self.trust: Deferred[ServerTrust] = Deferred(self.availability)
        self.credentials: Deferred[RequestAuthenticator] = Deferred(self.availability)
        self.receiver: Deferred[InboundHandler] = Deferred(self.availability)
        self.peer_client: Deferred[PeerClient] = Deferred(self.availability)
        self.outbox: Deferred[Outbox] = Deferred(self.availability)
        self.pairings: Deferred[PairingService] = Deferred(self.availability)
        self.introduction: Deferred[NodeCard] = Deferred(self.availability)

        self.revocations = Revocations(anchoring)
        note = self.revocations.note
        self.tables = FederationTables(
            PeerTable(store, note), TokenTable(store, note), OutboxTable(store), InboxTable(store)
        )
        self.peer_store = PeerStore(self.tables.peers)
        self.tasks = BackgroundTasks("work for another machine failed")
        self.outgoing_eggs = OutgoingEggs(node.home.root / "eggs" / ".outgoing")
        self.pending_replies = PendingReplies()
        self.announced: dict[str, PeerGreeting] = {}
        """The data of each peer's last HELLO, by fingerprint."""
        self.troubles: dict[str, str] = {}
        """The reason why a reachable peer is not used, by fingerprint."""

        discovered = DiscoveredNodes()
        written = PeersFile(
            node.home.root / "peers.json",
            environment=node.settings.environment.get("BRAINSTEM_PEERS", ""),
            allow_loopback=node.settings.on("peers.loopback"),
            own_port=node.settings.number("port"),
        )
        self.nearby = MdnsService(
            discovered,
            name=node.name,
            fingerprint=node.identity.fingerprint,
            port=0,
            loopback=node.settings.on("peers.loopback"),
            a2a=node.speaks_a2a,
        )
        self.addresses = PeerAddresses(discovered, written, AddressResolver(discovered, written, self.nearby))
        self.presence = Presence(lambda fingerprint: self.greetings.probe(fingerprint))
        discovered.listen(self.presence.on_sighting)

        self.callers = PeerCallers(self.peer_store, memberships)
        self.catalogue = CapabilityCatalog(
            dispatcher.endpoints,
            node.name,
            self.introduction.now,
            public=memberships.public,
            shared_with=memberships.shared_with,
        )
        self.witness = AnchorWitness(anchoring, self.peer_store)
        roster_changes = RosterChanges(node.home.root, memberships, notices)
        hellos = HelloSender(node.id, self.callers, self.catalogue, self.peer_client)
        self.peer_events = PeerEventHandler(
            self.peer_store, self.presence, self.outbox, self.announced, self.troubles, self.tasks
        )
        self.greetings = Greetings(
            hellos,
            self.peer_store,
            self.announced,
            self.witness,
            roster_changes,
            self.peer_events,
            self.tasks,
        )
        self.announcements = PeerAnnouncements(
            self.availability,
            self.peer_store,
            self.presence,
            self.peer_client,
            hellos,
            roster_changes,
            self.witness,
        )
        self.owner_notices = OwnerNotices(notices, self.peer_store, self.pairings)
        self.replies = ReplyDelivery(
            node.id,
            self.peer_store,
            dispatcher,
            self.outbox,
            self.pending_replies,
            self.owner_notices,
            self.outgoing_eggs,
            self.tasks,
        )
        self.view = PeerView(
            self.peer_store,
            self.presence,
            self.addresses,
            self.greetings,
            self.troubles,
            self.peer_client,
            self.outbox,
            self.pairings,
        )
