"""Machines for tests of snapshots: homes with twins, and a member that is a folder on this disk."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from envelopes.identity.keys import IdentityKey
from neighborhoods.errors import MemberError
from neighborhoods.snapshot.capture import SnapshotResult, take_snapshot
from neighborhoods.snapshot.hatch import (
    RestoreHooks,
    RestoreResult,
    nobody_runs,
    restore_local,
    restore_peers,
)
from neighborhoods.snapshot.local_capture import LocalMachine
from neighborhoods.snapshot.manifest import SnapshotOptions
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.member_transport import MemberProbe, WriteOutcome
from neighborhoods.snapshot.plan import RestoreOptions, RestorePlan, TransportSource, make_restore_plan
from neighborhoods.snapshot.snapshot_contents import PeerBlock, SnapshotContents
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from neighborhoods.snapshot.transports.folder import FolderTransport
from twins.installer.installer import Installer
from twins.installer.planning import check_approved
from twins.trust.quarantine import QuarantineList
from twins.trust.signers import Signers
from twins.workspace.twin import Twin, adopt, mint
from twins.workspace.workspace import TwinLayout, Workspace

NOW = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)


class Machine:
    """A home, without a daemon."""

    def __init__(self, root: Path, name: str) -> None:
        root.mkdir(parents=True)
        self.root = root
        self.name = name
        self.key = IdentityKey.generate()
        self.host = Workspace.at(root / "brainstem")
        self.folder = SnapshotFolder(root)
        self.signers = Signers(root / "signers.json")
        self.held = QuarantineList(root / "held.json", root)

    def brainstem(self, **files: bytes) -> None:
        """Gives the brainstem a rappid and an agent."""
        self.host.create()
        adopt(self.host, self.name, owner="me", host=self.name, platform="linux", now=NOW)
        (self.host.agents / "clock_agent.py").write_bytes(b"clock = 1\n")
        (self.host.data / "notes.json").write_bytes(b'{"a": 1}')

    def twin(self, name: str, files: dict[str, bytes] | None = None) -> Twin:
        """Mints a twin with a few files."""
        entropy = hashlib.sha256(f"{self.name}/{name}".encode()).digest()
        twin = mint(TwinLayout(self.root), name, owner="me", now=NOW, entropy=entropy)
        for path, content in {"agents/water_agent.py": b"water = 1\n", **(files or {})}.items():
            file = twin.workspace.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            os.utime(file, (1_700_000_000, 1_700_000_000))
        return twin

    def local(self, **more: Any) -> LocalMachine:
        return LocalMachine(self.name, self.root, self.host, version="1", **more)

    def take(
        self,
        peers: Sequence[SnapshotPeer] = (),
        *,
        options: SnapshotOptions | None = None,
        now: datetime = NOW,
        **more: Any,
    ) -> SnapshotResult:
        """Takes a snapshot."""
        with self.folder.alone():
            return asyncio.run(
                take_snapshot(self.local(), peers, self.folder, self.key, options=options, now=now, **more)
            )

    def installer(self, home: Path | None = None) -> Installer:
        home = home or self.root
        home.mkdir(parents=True, exist_ok=True)
        host = self.host if home == self.root else None
        return Installer(
            home, quarantine=self.held, signers=self.signers, fingerprint=self.key.fingerprint, host=host
        )

    def hatch(
        self,
        egg: Path,
        transport_of: TransportSource = lambda block: None,
        *,
        approved: str = "",
        **options: Any,
    ) -> RestoreResult:
        """Brings a snapshot back."""
        return asyncio.run(self._hatch(egg, transport_of, approved, RestoreOptions(**options)))

    async def _hatch(
        self, egg: Path, transport_of: TransportSource, approved: str, options: RestoreOptions
    ) -> RestoreResult:
        self.installer().recover()
        contents = SnapshotContents.open(egg)
        with contents.opened:
            plan = await make_restore_plan(contents, options, self.installer(), transport_of)
            check_approved(plan.contents.opened.name, approved, plan.digest)
            local = await restore_local(plan, self.installer(), RestoreHooks(nobody_runs))
            scratch = self.folder.root / ".sending"
            return await restore_peers(plan, self.root, self.installer, transport_of, scratch, local)

    def plan(
        self, egg: Path, transport_of: TransportSource = lambda block: None, **options: Any
    ) -> RestorePlan:
        """Plans, and closes the egg."""

        async def made() -> RestorePlan:
            contents = SnapshotContents.open(egg)
            with contents.opened:
                return await make_restore_plan(
                    contents, RestoreOptions(**options), self.installer(), transport_of
                )

        return asyncio.run(made())


class FolderMember(FolderTransport):
    """A member in a folder, which counts. ``cut_after``: the first stream of more octets breaks off there."""

    def __init__(self, home: Path, *, asleep: str = "", cut_after: int = 0) -> None:
        super().__init__(home.name, home)
        self.home = home
        self.asleep = asleep
        self.cut_after = cut_after
        self.reads: list[str] = []
        self.writes: list[str] = []

    async def probe(self) -> MemberProbe:
        return MemberProbe(False, self.asleep) if self.asleep else await super().probe()

    async def read_twin(self, twin: str, *, archived: bool = False) -> AsyncIterator[bytes]:
        self.reads.append(twin)
        sent = 0
        async for piece in super().read_twin(twin, archived=archived):
            sent += len(piece)
            if self.cut_after and sent > self.cut_after:
                self.cut_after = 0
                yield piece[:100_000]
                raise MemberError("The connection broke.")
            yield piece

    async def write_twin(
        self,
        twin: str,
        archive: Path,
        *,
        overwrite: bool = False,
        archived: bool = False,
        is_trusted: bool = True,
    ) -> WriteOutcome:
        self.writes.append(twin)
        return await super().write_twin(twin, archive, overwrite=overwrite, archived=archived)


def to_folders(**members: FolderMember) -> TransportSource:
    """The ways to members by the names of their blocks."""

    def way(block: PeerBlock) -> FolderMember | None:
        return members.get(block.name)

    return way


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, without what a hatching adds."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("HATCH_RECEIPT.json", "bonds.json")
    }
