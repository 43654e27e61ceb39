"""Peers, the outbox and what was issued, read from the record while the daemon is down."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rappd.daemon.home import Home, machine_name
from rappd.store.reader import Reader

if TYPE_CHECKING:
    from rappd.store.store import Store

T = TypeVar("T")
Answer = dict[str, Any]

ADDRESS_SOURCES = ("nearby", "last address", "list", "typed")


def peers_on_disk(home: Home) -> Answer:
    """The answer of ``GET /peers``, as far as it is known without a daemon."""
    from neighborhoods.discovery.address_resolver import AddressResolver
    from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
    from neighborhoods.discovery.peers_file import PeersFile
    from rappd.federation.peer_view import legacy_row, stored_peer_row
    from rappd.settings.load import Settings
    from rappd.store.outbox_table import OutboxTable
    from rappd.store.peer_table import PeerTable

    settings = Settings.load(home)

    async def look(store: Store) -> Answer:
        waiting = await OutboxTable(store).peers_waiting()
        written = PeersFile(
            home.root / "peers.json",
            environment=os.environ.get("BRAINSTEM_PEERS", ""),
            allow_loopback=settings.on("peers.loopback"),
            own_port=settings.number("port"),
        )
        entries = await written.entries()
        resolver = AddressResolver(DiscoveredNodes(), written)
        peers = [
            stored_peer_row(
                peer,
                waiting.get(peer.fingerprint, 0),
                resolver.reached_by(peer.fingerprint, peer.address) or "",
            )
            for peer in await PeerTable(store).peers()
        ]
        silent = "not tried, rappd isn't running"
        return {
            "peers": [*peers, *(legacy_row(entry) for entry in entries if entry.legacy)],
            "asking": [],
            "rungs": [{"rung": source, "found": 0, "trouble": silent} for source in ADDRESS_SOURCES],
            "door": {"port": 0, "open": False},
            "self": {**_self(home, settings.text("name")), "running": False},
        }

    return read(home, look)


def peer_on_disk(home: Home, selector: str) -> Answer:
    """The answer of ``GET /peers/{peer}``. Raises ``NoSuchPeerError``."""
    from neighborhoods.peer_store import PeerStore
    from rappd.federation.peer_view import stored_peer_row
    from rappd.store.outbox_table import OutboxTable
    from rappd.store.peer_table import PeerTable

    async def look(store: Store) -> Answer:
        book = PeerStore(PeerTable(store))
        await book.load()
        peer = book.find(selector)
        waiting = (await OutboxTable(store).peers_waiting()).get(peer.fingerprint, 0)
        reached = "last address" if peer.address else ""
        return {"peer": {**stored_peer_row(peer, waiting, reached), "agents_here": [], "twins_here": []}}

    return read(home, look)


def outbox_on_disk(home: Home) -> Answer:
    """The answer of ``GET /outbox?restored=1``."""
    from envelopes.envelope import HELP
    from envelopes.identity.keys import brainstem_id
    from neighborhoods.peer_store import PeerStore
    from neighborhoods.storage import EGG
    from rappd.federation.peer_view import outbox_row
    from rappd.operations.open_calls import open_row, restored_calls
    from rappd.store.outbox_table import OutboxTable
    from rappd.store.peer_table import PeerTable

    fingerprint = _fingerprint(home)

    async def look(store: Store) -> Answer:
        book = PeerStore(PeerTable(store))
        await book.load()
        rows = await OutboxTable(store).outgoing()
        found = await restored_calls(store, brainstem_id(fingerprint)) if fingerprint else []
        waiting = [outbox_row(book, row) for row in rows if row.verb in (HELP, EGG)]
        return {"outbox": [*waiting, *(open_row(asked, at) for asked, at in found)]}

    return read(home, look)


def tokens_on_disk(home: Home) -> Answer:
    """The answer of ``GET /tokens``."""
    from rappd.store.peer_table import PeerTable
    from rappd.store.token_table import TokenTable

    async def look(store: Store) -> Answer:
        rows = await TokenTable(store).tokens()
        machines = {peer.fingerprint: peer.name for peer in await PeerTable(store).peers()}
        return {
            "tokens": [
                {
                    "jti": row.jti,
                    "name": machines.get(row.name, row.name[:16]) if _is_machine(row.name) else row.name,
                    "to": row.name if _is_machine(row.name) else "",
                    "kind": "machine" if _is_machine(row.name) else "program",
                    "caps": list(row.caps),
                    "issued_at": row.issued_at / 1e6,
                    "expires_at": row.expires_at / 1e6,
                    "revoked_at": row.revoked_at / 1e6 if row.revoked_at else None,
                    "used_at": row.used_at / 1e6 if row.used_at else None,
                }
                for row in rows
            ]
        }

    return read(home, look)


def read(home: Home, look: Callable[[Store], Awaitable[T]]) -> T:
    """Returns the result of ``look`` on the event log, which it can only read."""

    async def run() -> T:
        with Reader(home.database) as reader:
            return await look(cast("Store", _Reading(reader)))

    return asyncio.run(run())


class _Reading:
    """The half of a store that the tables' rooms read with."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._reader.rows(statement, values)


def _is_machine(name: str) -> bool:
    """True when a permission names a machine by its fingerprint, not a program."""
    return re.fullmatch("[0-9a-f]{64}", name) is not None


def _self(home: Home, name: str) -> Answer:
    fingerprint = _fingerprint(home)
    return {"name": machine_name(home, name), "fingerprint": fingerprint, "short": fingerprint[:4]}


def _fingerprint(home: Home) -> str:
    """The fingerprint of this machine; "" where no key was made yet."""
    return home.identity().fingerprint if home.has_identity() else ""
