"""The ways to a peer, in the order in which they are tried: nearby, last address, list, typed."""

from __future__ import annotations

import contextlib
from typing import Protocol

import msgspec

from neighborhoods.discovery.address_text import BadAddressError, join, split
from neighborhoods.discovery.discovered_nodes import ADDRESS_SOURCES, AddressSource, DiscoveredNodes
from neighborhoods.discovery.peers_file import Entry, PeersFile

MOST_CANDIDATES = 24
"""Addresses given for one peer."""


class AddressCandidate(msgspec.Struct, frozen=True):
    """An address worth a try, and the source that it stands on."""

    address: str
    source: AddressSource


class SourceState(msgspec.Struct, frozen=True):
    """The state of one address source: the number of machines it knows, and what hinders it ("" for nothing)."""

    source: AddressSource
    found: int
    trouble: str


class ReportsTrouble(Protocol):
    """A part that says in words what is wrong with it, "" when nothing is."""

    @property
    def trouble(self) -> str:
        """The words."""
        ...


class AddressResolver:
    """Gives addresses. What answers there must prove its fingerprint; an address proves nothing."""

    def __init__(
        self, discovered: DiscoveredNodes, written: PeersFile, nearby: ReportsTrouble | None = None
    ) -> None:
        """Without ``nearby`` nothing is listened to; what was written down is known all the same."""
        self._discovered, self._written, self._nearby = discovered, written, nearby
        self._learned: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._sorted: tuple[Entry, ...] | None = None
        self._places: dict[tuple[AddressSource, str], list[str]] = {}

    async def candidates(self, fingerprint: str, last_address: str = "") -> list[AddressCandidate]:
        """Every address that may lead to a peer, the likeliest first, each once, at most 24.

        Written-down addresses that are known to lead to another machine are left out.
        """
        found: dict[str, AddressSource] = {}
        for sighting in self._discovered.of(fingerprint):
            for host in sighting.addresses:
                found.setdefault(join(host, sighting.port), "nearby")
        if last_address:
            with contextlib.suppress(BadAddressError):  # it is written anew when the peer is reached
                found.setdefault(join(*split(last_address)), "last address")
        places = self._by_owner(await self._written.entries())
        for source in ADDRESS_SOURCES[2:]:
            for known in (fingerprint, ""):
                for address in places.get((source, known), ())[: MOST_CANDIDATES + len(found)]:
                    found.setdefault(address, source)
        return [AddressCandidate(address, source) for address, source in found.items()][:MOST_CANDIDATES]

    def reached_by(self, fingerprint: str, address: str) -> AddressSource | None:
        """The source on which an address of a peer stands now: "last address" only where no other has it."""
        try:
            place = join(*split(address))
        except BadAddressError:
            return None
        for sighting in self._discovered.of(fingerprint):
            if any(join(host, sighting.port) == place for host in sighting.addresses):
                return "nearby"
        for entry in self._written.read:
            if not entry.legacy and entry.address == place and self._whose(entry) in ("", fingerprint):
                return entry.source
        return "last address"

    async def legacy(self) -> list[Entry]:
        """The published brainstems that were written down: ``http://`` entries."""
        return [entry for entry in await self._written.entries() if entry.legacy]

    def learn(self, address: str, fingerprint: str) -> None:
        """Notes who answered at an address, "" for nobody: then it may be anybody's again."""
        if self._learned.get(address, "") != fingerprint:
            self._sorted = None
        if not fingerprint:
            self._learned.pop(address, None)
            return
        self._learned[address] = fingerprint
        if len(self._learned) > _MOST_LEARNED:
            del self._learned[next(iter(self._learned))]

    def remember(self, addresses: dict[str, str]) -> None:
        """The last addresses of the paired peers, by fingerprint: what the second source knows."""
        self._addresses = dict(addresses)

    async def sources(self) -> list[SourceState]:
        """Each source in order, for screens."""
        entries = await self._written.entries()
        return [
            SourceState("nearby", len(self._discovered), self._nearby.trouble if self._nearby else ""),
            SourceState("last address", sum(1 for address in self._addresses.values() if address), ""),
            SourceState("list", sum(1 for entry in entries if entry.source == "list"), self._written.trouble),
            SourceState("typed", sum(1 for entry in entries if entry.source == "typed"), ""),
        ]

    def _by_owner(self, entries: tuple[Entry, ...]) -> dict[tuple[AddressSource, str], list[str]]:
        """Written-down addresses by source and whose they are: of many entries few are one peer's."""
        if entries is not self._sorted:
            self._places = {}
            for entry in entries:
                if not entry.legacy:
                    self._places.setdefault((entry.source, self._whose(entry)), []).append(entry.address)
            self._sorted = entries
        return self._places

    def _whose(self, entry: Entry) -> str:
        return self._learned.get(entry.address) or entry.fingerprint


_MOST_LEARNED = 2_000
