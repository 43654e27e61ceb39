"""Operations of paired machines: they read this one for a snapshot. Writing goes by ``/eggs``, which its owner approves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import IO

from neighborhoods.peer import Peer
from neighborhoods.snapshot.served_home import CAPABILITY, SharedHome, SharedProbe, SharedTwins
from rappd.dispatch.rights import PEER
from rappd.features.operation import OpenDownload, operation
from rappd.version import __version__

READ = PEER(CAPABILITY)


class PeerProbed(SharedProbe):
    """This machine before it is read."""

    version: str


class SnapshotsForPeers:
    """This machine, as paired ones that may take snapshots read it."""

    def __init__(self, home: SharedHome) -> None:
        self._home = home

    @operation("peer_snapshots.probe", "GET", "/snapshot", right=READ)
    async def probe(self) -> PeerProbed:
        """The state of this machine before it is read: `version`, `host`, `free_bytes`."""
        return {"version": __version__, **await self._home.probe()}

    @operation("peer_snapshots.list", "GET", "/snapshot/twins", right=READ)
    async def listing(self, peer: Peer, archived: bool = False) -> SharedTwins:
        """The twins, with `archived` archived ones too, and the brainstem's agent files."""
        with self._home.reading(peer.fingerprint):
            return await self._home.listing(include_archived=archived, for_owner=peer.whose == "mine")

    @operation("peer_snapshots.twin", "GET", "/snapshot/twins/{twin}", right=READ)
    async def twin(self, peer: Peer, twin: str, archived: bool = False) -> OpenDownload:
        """The files of one twin as tar, in the state between two of its calls.

        Keys, `.env` files and quarantined code are never part of it. For machines of the same owner its conversations
        are, and the names of what stays behind, each with its reason.
        """
        for_owner = peer.whose == "mine"
        return await self._copied(
            peer, lambda: self._home.copy_twin(twin, archived=archived, for_owner=for_owner)
        )

    @operation("peer_snapshots.agents", "GET", "/snapshot/agents", right=READ)
    async def agents(self, peer: Peer) -> OpenDownload:
        """The brainstem's agent files as tar."""
        return await self._copied(peer, lambda: self._home.copy_agents(for_owner=peer.whose == "mine"))

    async def _copied(self, peer: Peer, copy: Callable[[], Awaitable[IO[bytes]]]) -> OpenDownload:
        with ExitStack() as reading:
            reading.enter_context(self._home.reading(peer.fingerprint))
            file = reading.enter_context(await copy())
            return OpenDownload(file, reading.pop_all().close, kind="application/x-tar")
