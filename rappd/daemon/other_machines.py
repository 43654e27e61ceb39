"""Calls, eggs and tools of other machines, and the members of the neighborhood, put together for the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neighborhoods.peer_store import PeerStore
from rappd.daemon.home import Home
from rappd.features.calls.operations import CallOperations
from rappd.features.calls.redirected_calls import OpenCalls
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.transfer import EggTransferOperations
from rappd.features.peers.operations import PeerOperations
from rappd.federation.assembly import FederationAssembly
from rappd.federation.gateway_tools import GatewayTools
from rappd.federation.gateways import Gateways
from rappd.federation.peer_tools import PeerToolGateway
from rappd.federation.session_guests import SessionGuests
from rappd.federation.startup_state import Deferred
from rappd.notices.notices import Notices
from rappd.organism.organism_in_force import OrganismInForce
from rappd.settings.load import Settings
from rappd.store.egg_table import EggTable

if TYPE_CHECKING:
    from neighborhoods.snapshot.roster import Member
    from neighborhoods.transport.peer_client import PeerClient
    from rappd.features.snapshots.members import NeighborhoodMembers, PairedMachine, SendEgg


class MemberReader:
    """Reads the members of the neighborhood: paired machines, found ones, and those that ``peers.json`` names."""

    def __init__(
        self,
        home: Home,
        settings: Callable[[], Settings],
        peers: PeerStore,
        peer_client: Deferred[PeerClient],
        operations: PeerOperations,
        send_egg: SendEgg,
    ) -> None:
        """``settings`` gives those in force."""
        self._home, self._settings, self._peers = home, settings, peers
        self._peer_client, self._operations, self._send_egg = peer_client, operations, send_egg

    async def read(self, variables: Mapping[str, str] | None = None) -> NeighborhoodMembers:
        """Every member as it is now; ``variables`` are the caller's, see ``NeighborhoodMembers``."""
        from rappd.features.snapshots.members import NeighborhoodMembers

        listing = await self._operations.listing()
        return await asyncio.to_thread(
            NeighborhoodMembers, self._home, self._settings(), listing, self._source_of, variables
        )

    def _source_of(self, member: Member) -> PairedMachine:
        from rappd.features.snapshots.members import PairedMachine

        return PairedMachine(self._peers, self._peer_client, self._send_egg, member.name, member.fingerprint)


@dataclass(frozen=True, slots=True)
class MachineOperations:
    """The operations on other machines that further parts of the daemon are given."""

    peers: PeerOperations
    calls: CallOperations
    open_calls: OpenCalls
    egg_transfer: EggTransferOperations
    members: MemberReader
    gateways: Gateways
    peer_tools: PeerToolGateway
    gateway_tools: GatewayTools
    guests: SessionGuests


def machine_operations(
    m: FederationAssembly,
    port: Callable[[], int],
    settings: Callable[[], Settings],
    organism: OrganismInForce,
    eggs: EggOperations,
    notices: Notices,
) -> MachineOperations:
    """Puts them together. ``port`` gives that of the listener for other machines, 0 while it is closed, ``settings`` those in force."""
    peers, resolver, rows = m.peer_store, m.addresses.resolver, m.tables.outbox
    calls = CallOperations(
        m.node,
        m.availability,
        peers,
        resolver,
        m.greetings,
        m.dispatcher,
        m.tenants.host.workspace,
        m.pending_replies,
        m.peer_client,
        m.outbox,
    )
    gateways = Gateways(organism, peers, notices)
    tools = PeerToolGateway(
        m.node.id, m.availability, peers, m.presence, m.greetings, m.dispatcher, calls, m.tasks
    )
    listing = PeerOperations(
        m.node, port, m.availability, peers, m.addresses, rows, m.pairings, m.greetings, m.view
    )
    egg_transfer = EggTransferOperations(
        m.node,
        m.availability,
        peers,
        m.outbox,
        rows,
        m.outgoing_eggs,
        m.tenants,
        eggs,
        EggTable(m.store),
        notices,
    )
    return MachineOperations(
        listing,
        calls,
        OpenCalls(m.node, peers, m.outbox, rows, m.store),
        egg_transfer,
        MemberReader(m.node.home, settings, peers, m.peer_client, listing, egg_transfer.send),
        gateways,
        tools,
        GatewayTools(peers, m.greetings, tools, gateways),
        SessionGuests(
            m.node,
            m.availability,
            peers,
            m.presence,
            resolver,
            m.greetings,
            m.dispatcher,
            calls,
            tools,
            gateways,
        ),
    )
