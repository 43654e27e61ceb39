"""The places where machines can be: announced nearby, written down, last reached."""

from __future__ import annotations

from dataclasses import dataclass

from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
from neighborhoods.discovery.peer_address_order import AddressResolver
from neighborhoods.discovery.peers_file import PeersFile


@dataclass(frozen=True, slots=True)
class PeerAddresses:
    """Machines that were announced, those that were written down, and the ways to a peer by both."""

    discovered: DiscoveredNodes
    written: PeersFile
    resolver: AddressResolver
