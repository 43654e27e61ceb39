"""Makes the parts that serve other machines and ties them together; what is heavy is imported here, after the start."""

from __future__ import annotations

import asyncio
import os
import time

from rappd.federation.components import FederationComponents

_MOST_PAIRING_SECONDS = 600


async def build_components(m: FederationComponents) -> None:
    """Sets every part; the book is read already. The federation listener opens afterwards."""
    await asyncio.to_thread(_import)
    from neighborhoods.auth.tls import ServerTrust
    from neighborhoods.delivery.egg_sender import EggSender
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.discovery.address_resolver import AddressResolver
    from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
    from neighborhoods.discovery.mdns_service import MdnsService
    from neighborhoods.discovery.peers_file import PeersFile
    from neighborhoods.discovery.presence import Presence
    from neighborhoods.pairing.service import PairingService
    from neighborhoods.transport.connector import Connector
    from neighborhoods.transport.peer_client import PeerClient
    from rappd.federation.advertised_capabilities import CapabilityCatalog
    from rappd.federation.inbound import InboundHandler
    from rappd.federation.node_identity import material
    from rappd.federation.pairing_adapter import pairing_parts
    from rappd.federation.request_auth import RequestAuthenticator

    m.material = await asyncio.to_thread(material, m.home, m.identity)
    pins = [peer.certificate for peer in m.peer_store.all()]
    m.trust = await asyncio.to_thread(ServerTrust, m.material.tls, pins)
    m.credentials = await RequestAuthenticator.open(m.identity, m.peer_store, m.token_rows, m.inbox_rows)
    introduction = m.material.introduction(m.identity, m.name, m.port or 7443)
    m.catalogue = CapabilityCatalog(m.tenants, m.name, introduction)
    m.receiver = InboundHandler(
        m.dispatcher,
        m.tenants,
        m.catalogue,
        m.identity.fingerprint,
        answered=m.answered,
        push=m.push,
        greeted=m.greeted,
    )
    m.sightings = DiscoveredNodes()
    trial = m.settings.on("peers.loopback")
    m.written = PeersFile(
        m.home.root / "peers.json",
        environment=os.environ.get("BRAINSTEM_PEERS", ""),
        allow_loopback=trial,
        own_port=m.loopback_port,
    )
    m.nearby = MdnsService(
        m.sightings, name=m.name, fingerprint=m.identity.fingerprint, port=m.port, loopback=trial
    )
    m.resolver = AddressResolver(m.sightings, m.written, m.nearby)
    m.presence = Presence(m.probe)
    m.carrier = PeerClient(Connector(m.candidates, m.material.tls), m.material.tls, m.requests, m.peer_events)
    m.outbox = Outbox(
        m.outbox_rows,
        m.carrier,
        clock=lambda: time.time_ns() // 1000,
        book=m.peer_store.get,
        on_answer=m.on_answer,
        on_over=m.over,
        eggs=EggSender(m.carrier, m.outgoing_eggs.path),
        verbs=lambda fingerprint: m.announced.get(fingerprint, {}).get("verbs", ()),
    )
    m.pairings = PairingService(
        m.identity,
        lambda: introduction,
        *pairing_parts(m.peer_store, m.resolver),
        known=lambda name: None,
        within=min(max(1, m.settings.number("peers.pairing_seconds")), _MOST_PAIRING_SECONDS),
    )


def _import() -> None:
    """In a thread, so that nobody waits for it."""
