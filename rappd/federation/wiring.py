"""Makes the parts that serve other machines and ties them together; what is heavy is imported here, after the start."""

from __future__ import annotations

import asyncio
import os
import time

from rappd.federation.components import FederationBase, FederationComponents, FederationEvents


async def build_components(
    base: FederationBase, events: FederationEvents, *, port: int, loopback_port: int
) -> FederationComponents:
    """Every part; the peers are read already. ``port`` is where the federation listener opens afterwards."""
    await asyncio.to_thread(_import)
    from neighborhoods.auth.tls import ServerTrust
    from neighborhoods.delivery.egg_sender import EggSender
    from neighborhoods.delivery.outbox import Outbox, OutboxOwner, OutboxTiming
    from neighborhoods.discovery.address_resolver import AddressResolver
    from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
    from neighborhoods.discovery.mdns_service import MdnsService
    from neighborhoods.discovery.peers_file import PeersFile
    from neighborhoods.discovery.presence import Presence
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.transport.connector import Connector
    from neighborhoods.transport.peer_client import PeerClient
    from rappd.federation.advertised_capabilities import CapabilityCatalog
    from rappd.federation.handshake_client import pairing_parts
    from rappd.federation.inbound import InboundHandler
    from rappd.federation.node_identity import material
    from rappd.federation.request_auth import RequestAuthenticator

    node, tables, peers = base.node, base.tables, base.peer_store
    own = await asyncio.to_thread(material, node.home, node.identity)
    trust = await asyncio.to_thread(ServerTrust, own.tls, [peer.certificate for peer in peers.all()])
    introduction = own.introduction(node.identity, node.name, port or 7443)
    catalogue = CapabilityCatalog(
        base.tenants,
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
        greeted=events.greeted,
    )
    sightings = DiscoveredNodes()
    trial = node.settings.on("peers.loopback")
    written = PeersFile(
        node.home.root / "peers.json",
        environment=os.environ.get("BRAINSTEM_PEERS", ""),
        allow_loopback=trial,
        own_port=loopback_port,
    )
    nearby = MdnsService(
        sightings, name=node.name, fingerprint=node.identity.fingerprint, port=port, loopback=trial
    )
    resolver = AddressResolver(sightings, written, nearby)
    presence = Presence(events.probe)
    carrier = PeerClient(
        Connector(lambda peer: resolver.candidates(peer.fingerprint, peer.address), own.tls),
        own.tls,
        events.requests,
        events.peer_events,
    )
    return FederationComponents(
        trust=trust,
        credentials=await RequestAuthenticator.open(
            node.identity, peers, tables.tokens, tables.inbox, base.memberships.capabilities
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
                verbs=lambda fingerprint: base.announced.get(fingerprint, {}).get("verbs", ()),
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


def _import() -> None:
    """In a thread, so that nobody waits for it."""
