"""The book of peers: who is trusted, by which key, under which name. Every request asks it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from envelopes.identity.node_card import NodeCard
from neighborhoods.durable_tables import PeerStorage
from neighborhoods.errors import KeyChangedError, NoSuchPeerError, PeerConflictError
from neighborhoods.peer import FRIEND, MINE, Peer, Whose

Heard = Callable[[str, Peer], None]
"""(what happened: "paired", "changed", "renamed itself" or "revoked"; the peer as it now is, or last was)."""

NAME_SECONDS = 60.0
"""Seconds after a peer's renaming of itself before another one is accepted."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


class PeerStore:
    """All peers in memory; each change is on the disk before it counts. Calls come from the event loop."""

    def __init__(self, records: PeerStorage) -> None:
        self._records = records
        self.by_key: dict[str, Peer] = {}
        self._by_pin: dict[bytes, Peer] = {}
        self._by_name: dict[str, Peer] = {}
        self._revoked: dict[str, int] = {}
        self._listeners: list[Heard] = []
        self._named_until: dict[str, float] = {}
        self._changing = asyncio.Lock()  # each change begins with what the one before it left
        self.version = 0
        """Counts up whenever a peer comes, goes, or changes."""

    async def load(self) -> None:
        """Reads the peers that are on the disk."""
        self._revoked = await self._records.revoked_peers()
        for peer in await self._records.peers():
            self._enter(peer)

    def listen(self, heard: Heard) -> None:
        """``heard`` is told of every change, after it is durable."""
        self._listeners.append(heard)

    def all(self) -> list[Peer]:
        """Every peer, by name."""
        return sorted(self.by_key.values(), key=lambda peer: peer.name)

    def get(self, fingerprint: str) -> Peer | None:
        """The peer with that key."""
        return self.by_key.get(fingerprint)

    def by_pin(self, pin: bytes) -> Peer | None:
        """The peer whose pinned certificate has that SHA-256."""
        return self._by_pin.get(pin)

    def by_prefix(self, prefix: str) -> Peer | None:
        """The peer that the end of an agent id stands for (16 hex)."""
        return next((peer for peer in self.by_key.values() if peer.prefix == prefix), None)

    def named(self, name: str) -> str | None:
        """The key that a name stands for here."""
        peer = self._by_name.get(name)
        return peer.fingerprint if peer else None

    def find(self, selector: str) -> Peer:
        """A peer by its name, ``name_4f2a`` or the beginning of its key (4 hex or more). ``NoSuchPeerError``."""
        wanted = selector.strip().lower()
        peer = self._by_name.get(wanted) or self.by_key.get(wanted)
        if peer is not None:
            return peer
        name, _, start = wanted.rpartition("_")
        fits = [
            one
            for one in self.by_key.values()
            if len(start) >= 4 and one.fingerprint.startswith(start) and name in ("", one.name, one.called)
        ]
        if len(fits) == 1:
            return fits[0]
        import difflib

        near = difflib.get_close_matches(wanted, self._by_name, 1)
        raise NoSuchPeerError(
            f'No peer "{selector[:60]}".', do=f"did you mean `{near[0]}`?" if near else "rappd peers list"
        )

    async def pair(self, introduction: NodeCard, whose: Whose, address: str, *, name: str = "") -> Peer:
        """Trusts a machine as it introduced itself. Its name here is free, or gets four hex of its key.

        Raises ``KeyChangedError`` when the operator named it himself and another key has that name, and
        ``PeerConflictError`` for a key whose agent ids could not be told from those of another peer.
        """
        async with self._changing:
            return await self._pair(introduction, whose, address, name)

    async def _pair(self, introduction: NodeCard, whose: Whose, address: str, name: str) -> Peer:
        alike = self.by_prefix(introduction.fingerprint[:16])
        if alike is not None and alike.fingerprint != introduction.fingerprint:
            raise PeerConflictError(
                f"Its key begins like {alike.name}'s.", do=f"rappd peers revoke {alike.name}, or keep away"
            )
        known = self.by_key.get(introduction.fingerprint)
        if name and self.named(_proper(name)) not in (None, introduction.fingerprint):
            raise KeyChangedError(
                f"{name}'s key has changed; nothing was sent.",
                do=f"reinstalled? rappd peers revoke {name}, and pair anew; else keep away",
            )
        scopes = known.scopes if known and known.whose == whose else (MINE if whose == "mine" else FRIEND)
        peer = Peer(
            fingerprint=introduction.fingerprint,
            name=_proper(name) if name else known.name if known else self._free(introduction),
            whose=whose,
            public_key=introduction.public_key,
            certificate=introduction.certificate,
            sealing_key=introduction.sealing_key,
            scopes=scopes,
            paired_at=_now(),
            called=introduction.name,
            address=address,
            seen_at=_now(),
            offered=known.offered if known else False,
        )
        await self._keep(peer, "paired")
        self._revoked.pop(peer.fingerprint, None)
        return peer

    async def rename(self, selector: str, name: str) -> Peer:
        """Calls a peer something else here. Raises ``PeerConflictError`` for a name that is taken or is none."""
        async with self._changing:
            peer = self.find(selector)
            wanted = _proper(name)
            if self.named(wanted) not in (None, peer.fingerprint):
                raise PeerConflictError(f"Another peer is called {wanted}.", do="Choose another name.")
            return await self._keep(replace(peer, name=wanted))

    async def set_note(self, selector: str, note: str) -> Peer:
        """Keeps a line about a peer; it is told to nobody."""
        async with self._changing:
            return await self._keep(replace(self.find(selector), note=note))

    async def set_scopes(self, selector: str, scopes: tuple[str, ...]) -> Peer:
        """Sets what a peer may do here, from its very next request on."""
        async with self._changing:
            return await self._keep(replace(self.find(selector), scopes=scopes))

    async def offer(self, selector: str, on: bool) -> Peer:
        """Sets if the brainstem here may use a peer's agents as its own tools."""
        async with self._changing:
            return await self._keep(replace(self.find(selector), offered=on))

    async def calls_itself(self, fingerprint: str, called: str) -> None:
        """Notes the name that a peer gives itself, at most once a minute.

        Its name here does not change.
        """
        async with self._changing:
            peer, now = self.by_key.get(fingerprint), time.monotonic()
            if peer is None or peer.called == called or now < self._named_until.get(fingerprint, 0.0):
                return
            self._named_until[fingerprint] = now + NAME_SECONDS
            await self._keep(replace(peer, called=called), "renamed itself")

    async def revoke(self, selector: str) -> Peer:
        """Ends the trust at once, on connections that are open, too."""
        async with self._changing:
            peer = self.find(selector)
            at = _now()
            await self._records.remove_peer(peer.fingerprint, at)
            self._leave(self.by_key.get(peer.fingerprint, peer))
            self._named_until.pop(peer.fingerprint, None)
            self._revoked[peer.fingerprint] = at
        self._tell("revoked", peer)
        return peer

    def was_revoked(self, fingerprint: str) -> bool:
        """True for a key that was trusted here once, and is no more."""
        return fingerprint in self._revoked

    def was_seen(self, fingerprint: str, address: str) -> bool:
        """True when ``seen`` would have nothing to note."""
        peer = self.by_key.get(fingerprint)
        return peer is None or (peer.address == address and _now() - peer.seen_at < 60_000_000)

    async def seen(self, fingerprint: str, address: str) -> None:
        """Notes that a peer was reached at ``address``; written down at most once a minute."""
        peer = self.by_key.get(fingerprint)
        if peer is None or self.was_seen(fingerprint, address):
            return
        self._enter(replace(peer, address=address, seen_at=_now()))
        await self._records.seen_peer(fingerprint, address, _now())

    async def _keep(self, peer: Peer, what: str = "changed") -> Peer:
        await self._records.save_peer(peer)
        self._enter(peer)
        self._tell(what, peer)
        return peer

    def _enter(self, peer: Peer) -> None:
        if (before := self.by_key.get(peer.fingerprint)) is not None:
            self._leave(before)
        self.by_key[peer.fingerprint] = self._by_pin[peer.pin] = self._by_name[peer.name] = peer

    def _leave(self, peer: Peer) -> None:
        for index, key in (
            (self.by_key, peer.fingerprint),
            (self._by_pin, peer.pin),
            (self._by_name, peer.name),
        ):
            known: dict[Any, Peer] = index
            known.pop(key, None)

    def _tell(self, what: str, peer: Peer) -> None:
        self.version += 1
        for heard in self._listeners:
            heard(what, peer)

    def _free(self, introduction: NodeCard) -> str:
        wanted = simple_name(introduction.name)
        for digits in range(0, 40, 4):
            free = f"{wanted[: 39 - digits]}_{introduction.fingerprint[:digits]}" if digits else wanted
            if self.named(free) is None:
                return free
        return introduction.fingerprint[:40]


def simple_name(text: str) -> str:
    """A name as people type it: lower case, letters, digits, ``-`` and ``_``."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:40]
    return plain or "machine"


def _proper(name: str) -> str:
    wanted = name.strip().lower()
    if not _NAME.fullmatch(wanted):
        raise PeerConflictError(
            f'"{name[:40]}" cannot be a name.', do="Use letters, digits, - and _, at most 40 of them."
        )
    return wanted


def _now() -> int:
    return time.time_ns() // 1000
