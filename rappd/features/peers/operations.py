"""The owner's operations on other machines: list, add, pair, rename, share, revoke."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypedDict

from envelopes.errors import BadNodeCardError
from envelopes.identity.capabilities import check as check_capability
from envelopes.identity.node_card import NodeCard
from neighborhoods.discovery.discovered_nodes import ADDRESS_SOURCES, DiscoveredNode, DiscoveredNodes
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import KeyChangedError, NoSuchPeerError, PeerOfflineError
from neighborhoods.peer import Whose
from rappd.errors import UsageProblemError
from rappd.features.arguments import MissingArgumentError
from rappd.features.operation import OWNER, Text, operation
from rappd.federation.peer_view import (
    asking_row,
    found_row,
    legacy_row,
    peer_row,
    stored_peer_row,
    written_row,
)
from rappd.federation.service import FederationService

if TYPE_CHECKING:
    from neighborhoods.pairing.attempts import PairingAttempt

STATE_WAIT = 20.0
_OPEN_SECONDS = 2.0
_LONGEST_NOTE = 200


Row = dict[str, Any]
"""A machine, a pairing or a way of finding, as ``rappd.federation.peer_view`` makes it."""


class Peers(TypedDict):
    """The answer of ``peers.list``; a way of finding is a ``rung``, the listener for machines the ``door``."""

    peers: list[Row]
    asking: list[Row]
    rungs: list[Row]
    door: Row
    self: Row


class OnePeer(TypedDict):
    """The answer of ``peers.show``."""

    peer: Row


class Pairing(TypedDict):
    """A pairing under way, or lately over."""

    pairing: Row


class PeerOperations:
    """Each answers the JSON object that the page and the command line show. ``peer``: a name, or digits of a key."""

    def __init__(self, machines: FederationService) -> None:
        self._machines = machines

    @operation("peers.list", "GET", "/peers", right=OWNER)
    async def listing(self) -> Peers:
        """Paired machines, found ones, who asks to be paired, and how each way of finding does."""
        if self._machines.rests:
            return await self._kept()
        m, parts = self._machines, await self._machines.available()
        waiting = await m.tables.outbox.peers_waiting()
        written = await parts.written.entries()
        rows = [peer_row(m, peer, waiting.get(peer.fingerprint, 0)) for peer in m.peer_store.all()]
        rows += [legacy_row(entry) for entry in await parts.resolver.legacy()]
        rows += [found_row(sighting) for sighting in self._found()]
        known = {m.node.identity.fingerprint, *(row["fingerprint"] for row in rows if row["fingerprint"])}
        places = {row["address"] for row in rows}
        rows += [
            written_row(entry)
            for entry in written
            if not entry.legacy and entry.fingerprint not in known and entry.address not in places
        ]
        return {
            "peers": rows,
            "asking": [asking_row(one, parts.pairings) for one in parts.pairings.asking()],
            "rungs": [
                {"rung": one.source, "found": one.found, "trouble": one.trouble or self._silent(one.source)}
                for one in await parts.resolver.sources()
            ],
            "door": {"port": m.port, "open": m.port > 0},
            "self": _self(m),
        }

    async def _kept(self) -> Peers:
        """The listing of a home whose daemon does not run: nobody is asked."""
        from neighborhoods.discovery.address_resolver import AddressResolver

        m = self._machines
        waiting, written = await m.tables.outbox.peers_waiting(), m.written()
        entries, resolver = await written.entries(), AddressResolver(DiscoveredNodes(), written)
        rows = [
            stored_peer_row(
                peer,
                waiting.get(peer.fingerprint, 0),
                resolver.reached_by(peer.fingerprint, peer.address) or "",
            )
            for peer in m.peer_store.all()
        ]
        silent = "not tried, rappd isn't running"
        return {
            "peers": [*rows, *(legacy_row(entry) for entry in entries if entry.legacy)],
            "asking": [],
            "rungs": [{"rung": source, "found": 0, "trouble": silent} for source in ADDRESS_SOURCES],
            "door": {"port": 0, "open": False},
            "self": {**_self(m), "running": False},
        }

    async def _kept_row(self, selector: str) -> Row:
        m = self._machines
        peer = m.peer_store.find(selector)
        waiting = (await m.tables.outbox.peers_waiting()).get(peer.fingerprint, 0)
        return stored_peer_row(peer, waiting, "last address" if peer.address else "")

    @operation("peers.add", "POST", "/peers", right=OWNER)
    async def add(self, address: Text) -> dict[str, Any]:
        """Writes an `address` down, and says who answers there.

        HOST or HOST:PORT is a machine, `http://HOST:PORT` or a Tier 2 path a published brainstem, the URL of an agent
        card an A2A agent.
        """
        parts = await self._machines.available()
        entry = await parts.written.checked(address)
        if entry.kind == "agent":
            return {"added": await self._add_agent(entry)}
        entry = await parts.written.add(address)
        if entry.legacy:
            return {"added": _added(entry)}
        found: NodeCard | None = None
        with contextlib.suppress(NoSuchPeerError):  # it may be away; then it is written down without its name
            found = await self._introduced(entry.address)
        if found is not None:
            await parts.written.add(address, name=found.name, fingerprint=found.fingerprint)
            parts.resolver.learn(entry.address, found.fingerprint)
        return {
            "added": {
                "address": entry.address,
                "legacy": False,
                "name": found.name if found else "",
                "fingerprint": found.fingerprint if found else "",
                "other": found is None and await _is_open(entry.address),
            }
        }

    async def _add_agent(self, entry: Entry) -> dict[str, Any]:
        """Writes an A2A agent down by the name on its card; one that does not answer now, without.

        Raises ``PeerFailedError`` for what is no card that can be used.
        """
        from neighborhoods.transport.a2a_agent import fetch_card

        name = ""
        with contextlib.suppress(PeerOfflineError):
            name = (await fetch_card(entry.url)).name
        return _added(await (await self._machines.available()).written.add(entry.url, name=name))

    @operation("peers.forget", "POST", "/peers/forget", right=OWNER)
    async def forget(self, address: Text) -> dict[str, Any]:
        """Takes a written-down `address` out again."""
        parts = await self._machines.available()
        try:
            removed = await parts.written.remove(address)
        except ValueError:  # no address at all
            removed = False
        if not removed:
            raise NoSuchPeerError(f"{address[:80]} is not written down.", do="rappd peers list")
        return {"removed": {"address": address}}

    @operation("peers.show", "GET", "/peers/{peer}", right=OWNER)
    async def show(self, peer: str) -> OnePeer:
        """Shows a peer, and what of it may be used here."""
        if self._machines.rests:
            return {"peer": {**await self._kept_row(peer), "agents_here": [], "twins_here": []}}
        m, parts = self._machines, await self._machines.available()
        found = m.peer_store.find(peer)
        await parts.written.entries()  # how it is reached may stand there
        waiting = (await m.tables.outbox.peers_waiting()).get(found.fingerprint, 0)
        said = m.greetings.of(found.fingerprint)
        told = {"agents_here": list(said.agents), "twins_here": list(said.twins)}
        return {"peer": {**peer_row(m, found, waiting), **told}}

    @operation("pairings.begin", "POST", "/pairings", right=OWNER)
    async def begin_pairing(
        self,
        peer: str = "",
        fingerprint: str = "",
        code: str = "",
        offer_code: bool = False,
        whose: Whose | None = None,
    ) -> Pairing:
        """Begins pairing with `peer` (a name or an address); `fingerprint` or `code` settle it at once.

        `offer_code` shows a code to type on the other machine. `whose`: mine or friend.
        """
        if offer_code:
            parts = await self._machines.available()
            return self._row(await parts.pairings.offer_code(whose or "friend"))
        if not peer:
            raise MissingArgumentError("peer is required", do='Send {"peer": "…"}.')
        return await self.pair(peer, fingerprint=fingerprint, code=code, whose=whose)

    async def pair(
        self, peer: str, *, fingerprint: str = "", code: str = "", whose: Whose | None = None
    ) -> Pairing:
        """Begins pairing with a discovered machine, one that asks, or an address.

        With its whole fingerprint or the code that it shows, pairing is completed at once.
        """
        m, parts = self._machines, await self._machines.available()
        address, introduction = await self._meet(peer)
        if fingerprint:
            if fingerprint.strip().lower() != introduction.fingerprint:
                raise KeyChangedError(
                    f"{introduction.name} has another fingerprint; nothing was paired.",
                    do="Look it up there: rappd peers list --json",
                )
            paired = await m.peer_store.pair(introduction, whose or "friend", address)
            parts.resolver.learn(address, introduction.fingerprint)
            return {"pairing": {"state": "paired", "peer": paired.name, "address": address, "attempt": ""}}
        if code:
            attempt = await parts.pairings.use_code(address, introduction, code, whose or "friend")
        else:
            attempt = await parts.pairings.ask(introduction, address, whose)
        return self._row(attempt)

    @operation("pairings.show", "GET", "/pairings/{attempt}", right=OWNER)
    async def pairing(self, attempt: str, state: str = "") -> Pairing:
        """The state of a pairing; with `?state=` it waits up to 20 s for another state than that."""
        parts = await self._machines.available()
        if state:
            known: Any = state
            return self._row(await parts.pairings.wait(attempt, known, STATE_WAIT))
        return self._row(parts.pairings.get(attempt))

    @operation("pairings.confirm", "POST", "/pairings/{attempt}", right=OWNER)
    async def confirm(self, attempt: str, same: bool, whose: Whose | None = None) -> Pairing:
        """Confirms a pairing: if the words are the `same`, and `whose` the other machine is."""
        parts = await self._machines.available()
        return self._row(await parts.pairings.confirm(attempt, same, whose))

    @operation("pairings.stop", "DELETE", "/pairings/{attempt}", right=OWNER)
    async def stop(self, attempt: str) -> Pairing:
        """Wants no pairing."""
        parts = await self._machines.available()
        return self._row(await parts.pairings.stop(attempt))

    @operation("peers.rename", "POST", "/peers/{peer}/rename", right=OWNER)
    async def rename(self, peer: str, name: Text) -> OnePeer:
        """Calls a peer `name` here."""
        m = await self._ready()
        return {"peer": peer_row(m, await m.peer_store.rename(peer, name), 0)}

    @operation("peers.note", "POST", "/peers/{peer}/note", right=OWNER)
    async def note(self, peer: str, text: str = "") -> OnePeer:
        """Keeps a line of `text` about a peer; "" forgets it. Nobody is told."""
        m = await self._ready()
        line = " ".join(text.split())
        if len(line) > _LONGEST_NOTE:
            raise UsageProblemError(
                f"The note has {len(line)} characters, {_LONGEST_NOTE} fit.", do="Shorten it."
            )
        return {"peer": peer_row(m, await m.peer_store.set_note(peer, line), 0)}

    @operation("peers.scopes", "POST", "/peers/{peer}/scopes", right=OWNER)
    async def scopes(self, peer: str, scopes: list[str]) -> OnePeer:
        """Sets what a peer may do here: `scopes`, a list of capabilities."""
        m = await self._ready()
        proper = tuple(check_capability(one) for one in scopes)
        return {"peer": peer_row(m, await m.peer_store.set_scopes(peer, proper), 0)}

    @operation("peers.offer", "POST", "/peers/{peer}/offer", right=OWNER)
    async def offer(self, peer: str, on: bool = False) -> OnePeer:
        """Sets if the brainstem here may use a peer's agents: `on`."""
        m = await self._ready()
        return {"peer": peer_row(m, await m.peer_store.offer(peer, on), 0)}

    @operation("peers.revoke", "POST", "/peers/{peer}/revoke", right=OWNER)
    async def revoke(self, peer: str) -> dict[str, Any]:
        """Ends the trust in a peer, at once."""
        m = await self._ready()
        revoked = await m.peer_store.revoke(peer)
        return {"revoked": {"name": revoked.name, "fingerprint": revoked.fingerprint}}

    async def _ready(self) -> FederationService:
        await self._machines.available()
        return self._machines

    def _silent(self, source: str) -> str:
        off = source == "nearby" and not self._machines.node.settings.on("peers.nearby")
        return "switched off (peers.nearby)" if off else ""

    def _found(self) -> list[DiscoveredNode]:
        m = self._machines
        own = m.node.identity.fingerprint
        return [
            one
            for one in m.parts.sightings.machines()
            if one.fingerprint != own and m.peer_store.get(one.fingerprint) is None
        ]

    async def _meet(self, selector: str) -> tuple[str, NodeCard]:
        """The address and introduction of whom the owner means. Raises ``NoSuchPeerError``, ``KeyChangedError``."""
        m = self._machines
        between: NoSuchPeerError | None = None
        for address in await self._addresses(selector):
            try:
                introduction = await self._introduced(address)
            except NoSuchPeerError as problem:
                between = problem if isinstance(problem, IdentityMismatchError) else between
                continue
            known = m.peer_store.named(selector.strip().lower())
            if known is not None and known != introduction.fingerprint:
                raise _key_changed(selector)
            for peer in m.peer_store.all():  # the same machine by its address, or by its new key
                is_there = (peer.address, peer.called) == (address, introduction.name)
                if is_there and peer.fingerprint != introduction.fingerprint:
                    raise _key_changed(peer.name)
            return address, introduction
        raise between or NoSuchPeerError(
            f'No machine "{selector[:60]}" answers.', do="rappd peers list, or rappd peers add ADDRESS"
        )

    async def _addresses(self, selector: str) -> list[str]:
        from neighborhoods.discovery.addresses import BadAddressError, join, split

        m = self._machines
        wanted = selector.strip().lower()
        asking = [one for one in m.parts.pairings.asking() if one.peer is not None]
        claimed = [(one.name, one.fingerprint, [one.address]) for one in asking]
        claimed += [
            (one.name, one.fingerprint, [join(host, one.port) for host in one.addresses])
            for one in m.parts.sightings.machines()
        ]
        claimed += [
            (entry.name, entry.fingerprint, [entry.address])
            for entry in await m.parts.written.entries()
            if not entry.legacy
        ]
        claimed += [
            (peer.name, peer.fingerprint, [peer.address]) for peer in m.peer_store.all() if peer.address
        ]
        found = [
            address for name, key, addresses in claimed if _means(wanted, name, key) for address in addresses
        ]
        try:
            found.append(join(*split(selector)))
        except BadAddressError:
            if not found:
                raise NoSuchPeerError(
                    f'No machine "{selector[:60]}" was found.',
                    do="rappd peers list, or rappd peers add ADDRESS",
                ) from None
        return list(dict.fromkeys(found))

    async def _introduced(self, address: str) -> NodeCard:
        from neighborhoods.errors import NeighborhoodError

        try:
            said, certificate = await self._machines.introduction_at(address)
            introduction = NodeCard.from_json(said.get("introduction")).check()
        except (NeighborhoodError, BadNodeCardError) as error:
            raise NoSuchPeerError(
                f"No machine answers at {address}.", do="Is rappd running there?"
            ) from error
        if introduction.certificate != certificate:
            raise IdentityMismatchError(
                f"Somebody stands between this machine and {address}.", do="Try another network."
            )
        return introduction

    def _row(self, attempt: PairingAttempt) -> Pairing:
        return {"pairing": asking_row(attempt, self._machines.parts.pairings)}


class IdentityMismatchError(NoSuchPeerError):
    """The machine that introduces itself is not the one that the connection leads to."""


def _self(m: FederationService) -> dict[str, Any]:
    fingerprint = m.node.identity.fingerprint if m.node.home.has_identity() else ""
    return {"name": m.node.name, "fingerprint": fingerprint, "short": fingerprint[:4]}


def _added(entry: Entry) -> dict[str, Any]:
    return {
        "address": entry.url,
        "legacy": True,
        "kind": entry.kind,
        "name": entry.name,
        "fingerprint": "",
    }


def _key_changed(name: str) -> KeyChangedError:
    return KeyChangedError(
        f"{name}'s key has changed; nothing was sent.",
        do=f"reinstalled? rappd peers revoke {name}, and pair anew; else keep away",
    )


def _means(wanted: str, name: str, fingerprint: str) -> bool:
    if not fingerprint:
        return wanted == name.lower() and bool(name)
    return wanted in (name.lower(), f"{name.lower()}_{fingerprint[:4]}", fingerprint) or (
        len(wanted) >= 4 and fingerprint.startswith(wanted)
    )


async def _is_open(address: str) -> bool:
    """True when a program takes connections at an address; which one, a HELLO has told."""
    from neighborhoods.discovery.addresses import split

    host, port = split(address)
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
