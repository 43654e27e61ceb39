"""The owner's operations on other machines: list, add, pair, rename, share, revoke."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from envelopes.identity.capabilities import check as check_capability
from envelopes.identity.node_card import NodeCard
from neighborhoods.discovery.discovered_nodes import ADDRESS_SOURCES, DiscoveredNode
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import NoSuchPeerError, PeerOfflineError
from neighborhoods.pairing.pairing_states import PairingRow
from neighborhoods.peer_store import PeerStore
from rappd.errors import UsageProblemError
from rappd.features.operation import OWNER, Text, operation
from rappd.features.peers.pairing_operations import introduced_at
from rappd.federation.greetings import Greetings
from rappd.federation.local_node import LocalNode
from rappd.federation.peer_addresses import PeerAddresses
from rappd.federation.peer_view import (
    PeerRow,
    PeerView,
    found_row,
    legacy_row,
    stored_peer_row,
    written_row,
)
from rappd.federation.startup_state import Availability, Deferred
from rappd.store.outbox_table import OutboxTable

if TYPE_CHECKING:
    from neighborhoods.pairing.service import PairingService

_OPEN_SECONDS = 2.0
_LONGEST_NOTE = 200


class AddressSource(TypedDict):
    """A source of addresses, how many machines it found, and why it does not work, "" where it does."""

    source: str
    found: int
    trouble: str


class Listening(TypedDict):
    """The listener for other machines; ``port`` is 0 while it is closed."""

    port: int
    open: bool


class ThisMachine(TypedDict):
    """This machine as others know it; ``running`` is there where it is not."""

    name: str
    fingerprint: str
    short: str
    running: NotRequired[Literal[False]]


class ShownPeer(PeerRow):
    """A peer with its agents, as they were announced, and its twins that may be used here."""

    agents_here: list[dict[str, Any]]
    twins_here: list[str]


class AddedAddress(TypedDict):
    """An address that was written down. ``other``: something answers there that is no machine with rappd."""

    address: str
    legacy: bool
    name: str
    fingerprint: str
    kind: NotRequired[str]
    other: NotRequired[bool]


class RemovedAddress(TypedDict):
    """An address that is not written down any more."""

    address: str


class RevokedPeer(TypedDict):
    """A machine that is trusted no more."""

    name: str
    fingerprint: str


class Peers(TypedDict):
    """The answer of ``peers.list``. ``sources``: where addresses come from; ``listener``: the one for other machines."""

    peers: list[PeerRow]
    asking: list[PairingRow]
    sources: list[AddressSource]
    listener: Listening
    self: ThisMachine


class PeerOperations:
    """Each answers the JSON object that the page and the command line show. ``peer``: a name, or digits of a key."""

    def __init__(
        self,
        node: LocalNode,
        port: Callable[[], int],
        availability: Availability,
        peers: PeerStore,
        addresses: PeerAddresses,
        outbox: OutboxTable,
        pairings: Deferred[PairingService],
        greetings: Greetings,
        view: PeerView,
    ) -> None:
        """``port`` gives that of the listener for other machines, 0 while it is closed."""
        self._node, self._port, self._availability = node, port, availability
        self._peers, self._addresses, self._outbox = peers, addresses, outbox
        self._pairings, self._greetings, self._view = pairings, greetings, view

    @operation("peers.list", "GET", "/peers", right=OWNER)
    async def listing(self) -> Peers:
        """Paired machines, found ones, who asks to be paired, and how each way of finding does."""
        if self._availability.rests:
            return await self._kept()
        pairings, resolver = await self._pairings.ready(), self._addresses.resolver
        waiting = await self._outbox.peers_waiting()
        written = await self._addresses.written.entries()
        rows = [self._view.row(peer, waiting.get(peer.fingerprint, 0)) for peer in self._peers.all()]
        rows += [legacy_row(entry) for entry in await resolver.legacy()]
        rows += [found_row(sighting) for sighting in self._found()]
        known = {self._node.identity.fingerprint, *(row["fingerprint"] for row in rows if row["fingerprint"])}
        places = {row["address"] for row in rows}
        rows += [
            written_row(entry)
            for entry in written
            if not entry.legacy and entry.fingerprint not in known and entry.address not in places
        ]
        return {
            "peers": rows,
            "asking": [one.row(pairings.now()) for one in pairings.asking()],
            "sources": [
                {"source": one.source, "found": one.found, "trouble": one.trouble or self._silent(one.source)}
                for one in await resolver.sources()
            ],
            "listener": {"port": self._port(), "open": self._port() > 0},
            "self": self._self(),
        }

    async def _kept(self) -> Peers:
        """The listing of a home whose daemon does not run: nobody is asked."""
        waiting = await self._outbox.peers_waiting()
        entries, resolver = await self._addresses.written.entries(), self._addresses.resolver
        rows = [
            stored_peer_row(
                peer,
                waiting.get(peer.fingerprint, 0),
                resolver.reached_by(peer.fingerprint, peer.address) or "",
            )
            for peer in self._peers.all()
        ]
        silent = "not tried, rappd isn't running"
        return {
            "peers": [*rows, *(legacy_row(entry) for entry in entries if entry.legacy)],
            "asking": [],
            "sources": [{"source": source, "found": 0, "trouble": silent} for source in ADDRESS_SOURCES],
            "listener": {"port": 0, "open": False},
            "self": {**self._self(), "running": False},
        }

    async def _kept_row(self, selector: str) -> PeerRow:
        peer = self._peers.find(selector)
        waiting = (await self._outbox.peers_waiting()).get(peer.fingerprint, 0)
        return stored_peer_row(peer, waiting, "last address" if peer.address else "")

    @operation("peers.add", "POST", "/peers", right=OWNER, answers="added")
    async def add(self, address: Text) -> AddedAddress:
        """Writes an `address` down, and says who answers there.

        HOST or HOST:PORT is a machine, `http://HOST:PORT` or a Tier 2 path a published brainstem, the URL of an agent
        card an A2A agent.
        """
        await self._availability.wait()
        written = self._addresses.written
        entry = await written.checked(address)
        if entry.kind == "agent":
            return await self._add_agent(entry)
        entry = await written.add(address)
        if entry.legacy:
            return _added(entry)
        found: NodeCard | None = None
        with contextlib.suppress(NoSuchPeerError):  # it may be away; then it is written down without its name
            found = await introduced_at(self._node, entry.address)
        if found is not None:
            await written.add(address, name=found.name, fingerprint=found.fingerprint)
            self._addresses.resolver.learn(entry.address, found.fingerprint)
        return {
            "address": entry.address,
            "legacy": False,
            "name": found.name if found else "",
            "fingerprint": found.fingerprint if found else "",
            "other": found is None and await _is_open(entry.address),
        }

    async def _add_agent(self, entry: Entry) -> AddedAddress:
        """Writes an A2A agent down by the name on its card; one that does not answer now, without.

        Raises ``PeerFailedError`` for what is no card that can be used.
        """
        from neighborhoods.transport.a2a_agent import fetch_card

        name = ""
        with contextlib.suppress(PeerOfflineError):
            name = (await fetch_card(entry.url)).name
        return _added(await self._addresses.written.add(entry.url, name=name))

    @operation("peers.forget", "POST", "/peers/forget", right=OWNER, answers="removed")
    async def forget(self, address: Text) -> RemovedAddress:
        """Takes a written-down `address` out again."""
        await self._availability.wait()
        try:
            removed = await self._addresses.written.remove(address)
        except ValueError:  # no address at all
            removed = False
        if not removed:
            raise NoSuchPeerError(f"{address[:80]} is not written down.", do="rappd peers list")
        return {"address": address}

    @operation("peers.show", "GET", "/peers/{peer}", right=OWNER, answers="peer")
    async def show(self, peer: str) -> ShownPeer:
        """Shows a peer, and what of it may be used here."""
        if self._availability.rests:
            return {**await self._kept_row(peer), "agents_here": [], "twins_here": []}
        await self._availability.wait()
        found = self._peers.find(peer)
        await self._addresses.written.entries()  # how it is reached may stand there
        waiting = (await self._outbox.peers_waiting()).get(found.fingerprint, 0)
        greeting = self._greetings.of(found.fingerprint)
        return {
            **self._view.row(found, waiting),
            "agents_here": list(greeting.agents),
            "twins_here": list(greeting.twins),
        }

    @operation("peers.rename", "POST", "/peers/{peer}/rename", right=OWNER, answers="peer")
    async def rename(self, peer: str, name: Text) -> PeerRow:
        """Calls a peer `name` here."""
        await self._availability.wait()
        return self._view.row(await self._peers.rename(peer, name), 0)

    @operation("peers.note", "POST", "/peers/{peer}/note", right=OWNER, answers="peer")
    async def note(self, peer: str, text: str = "") -> PeerRow:
        """Keeps a line of `text` about a peer; "" forgets it. Nobody is told."""
        await self._availability.wait()
        line = " ".join(text.split())
        if len(line) > _LONGEST_NOTE:
            raise UsageProblemError(
                f"The note has {len(line)} characters, {_LONGEST_NOTE} fit.", do="Shorten it."
            )
        return self._view.row(await self._peers.set_note(peer, line), 0)

    @operation("peers.scopes", "POST", "/peers/{peer}/scopes", right=OWNER, answers="peer")
    async def scopes(self, peer: str, scopes: list[str]) -> PeerRow:
        """Sets what a peer may do here: `scopes`, a list of capabilities."""
        await self._availability.wait()
        proper = tuple(check_capability(one) for one in scopes)
        return self._view.row(await self._peers.set_scopes(peer, proper), 0)

    @operation("peers.offer", "POST", "/peers/{peer}/offer", right=OWNER, answers="peer")
    async def offer(self, peer: str, on: bool = False) -> PeerRow:
        """Sets if the brainstem here may use a peer's agents: `on`."""
        await self._availability.wait()
        return self._view.row(await self._peers.offer(peer, on), 0)

    @operation("peers.revoke", "POST", "/peers/{peer}/revoke", right=OWNER, answers="revoked")
    async def revoke(self, peer: str) -> RevokedPeer:
        """Ends the trust in a peer, at once."""
        await self._availability.wait()
        revoked = await self._peers.revoke(peer)
        return {"name": revoked.name, "fingerprint": revoked.fingerprint}

    def _silent(self, source: str) -> str:
        off = source == "nearby" and not self._node.settings.on("peers.nearby")
        return "switched off (peers.nearby)" if off else ""

    def _found(self) -> list[DiscoveredNode]:
        own = self._node.identity.fingerprint
        return [
            one
            for one in self._addresses.discovered.machines()
            if one.fingerprint != own and self._peers.get(one.fingerprint) is None
        ]

    def _self(self) -> ThisMachine:
        fingerprint = self._node.identity.fingerprint if self._node.home.has_identity() else ""
        return {"name": self._node.name, "fingerprint": fingerprint, "short": fingerprint[:4]}


def _added(entry: Entry) -> AddedAddress:
    return {
        "address": entry.url,
        "legacy": True,
        "kind": entry.kind,
        "name": entry.name,
        "fingerprint": "",
    }


async def _is_open(address: str) -> bool:
    """True when a program takes connections at an address; which one, a HELLO has told."""
    from neighborhoods.discovery.address_text import split

    host, port = split(address)
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
