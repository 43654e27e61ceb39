"""The parts of the federation that the start makes: their modules are heavy, and they read the peers' tables."""

from __future__ import annotations

import asyncio
import time

from neighborhoods.auth.tls import ServerTrust
from neighborhoods.delivery.egg_sender import EggSender
from neighborhoods.delivery.outbox import Outbox, OutboxOwner, OutboxTiming
from neighborhoods.pairing.service import PairingService
from neighborhoods.transport.connector import Connector
from neighborhoods.transport.peer_client import PeerClient
from rappd.federation.assembly import FederationAssembly
from rappd.federation.connected_peers import LineRequests
from rappd.federation.handshake_client import pairing_parts
from rappd.federation.inbound import InboundHandler
from rappd.federation.node_identity import material
from rappd.federation.peer_changes import PeerChanges
from rappd.federation.request_auth import RequestAuthenticator
from rappd.federation.totp_secrets import CodeAccess

_PORT = 7443
"""The port on the node card of a machine without a listener."""


async def open_parts(m: FederationAssembly, port: int) -> PeerChanges:
    """Makes every deferred part, and returns the part that follows changes of the peers."""
    node, peers, resolver = m.node, m.peer_store, m.addresses.resolver
    own = await asyncio.to_thread(material, node.home, node.identity)
    trust = await asyncio.to_thread(ServerTrust, own.tls, [peer.certificate for peer in peers.all()])
    introduction = own.introduction(node.identity, node.name, port or _PORT)
    credentials = await RequestAuthenticator.open(
        node.identity,
        peers,
        m.tables.tokens,
        m.tables.inbox,
        m.memberships.capabilities,
        CodeAccess(node.home.keys / "codes"),
    )
    receiver = InboundHandler(
        m.dispatcher,
        m.tenants,
        m.catalogue,
        node.identity.fingerprint,
        answered=m.replies.answered,
        push=m.replies.push,
        greeted=m.greetings.greeted,
    )
    requests = LineRequests(peers, m.callers, credentials, receiver, m.peer_events)
    peer_client = PeerClient(
        Connector(lambda peer: resolver.candidates(peer.fingerprint, peer.address), own.tls),
        own.tls,
        requests.of,
        m.peer_events,
    )
    outbox = Outbox(
        m.tables.outbox,
        peer_client,
        OutboxOwner(
            peers.get,
            m.replies.on_answer,
            m.replies.over,
            verbs=lambda fingerprint: m.greetings.of(fingerprint).verbs,
        ),
        OutboxTiming(clock=lambda: time.time_ns() // 1000),
        eggs=EggSender(peer_client, m.outgoing_eggs.path),
    )
    pairings = PairingService(
        node.identity,
        lambda: introduction,
        *pairing_parts(peers, resolver),
        known=lambda name: None,
        within=node.settings.number("peers.pairing_seconds"),
        on_asked=m.owner_notices.asked_to_pair,
    )
    m.introduction.set(introduction)
    m.trust.set(trust)
    m.credentials.set(credentials)
    m.receiver.set(receiver)
    m.peer_client.set(peer_client)
    m.outbox.set(outbox)
    m.pairings.set(pairings)
    return PeerChanges(
        peers,
        m.addresses,
        m.presence,
        trust,
        outbox,
        peer_client,
        m.announced,
        m.troubles,
        m.tasks,
    )
