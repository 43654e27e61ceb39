"""Snapshots of the neighborhood: taken, drilled, listed, compared, planned and brought back (RAPP v1 §18.10.5).

Works with no daemon running; while one runs, it calls these itself around its twins.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neighborhoods.snapshot.errors import DrillUntriedError, NoSuchSnapshotError
from neighborhoods.snapshot.snapshot_folder import DrillResult, SnapshotFolder, SnapshotRecord
from rappd.daemon.home import Home
from rappd.features.eggs.home_eggs import HomeEggs
from rappd.tenants.autostart import AutostartRegistry
from rappd.transcript.frames import RecordedConversations
from rappd.version import __version__
from twins.installer.installer import Installer
from twins.workspace.listing import Presence
from twins.workspace.workspace import Workspace

if TYPE_CHECKING:
    from neighborhoods.snapshot.capture import SnapshotResult
    from neighborhoods.snapshot.contents import PeerBlock
    from neighborhoods.snapshot.hatch import LocalResult, RestoreHooks
    from neighborhoods.snapshot.local_capture import LocalMachine
    from neighborhoods.snapshot.manifest import SnapshotOptions
    from neighborhoods.snapshot.member_transport import MemberTransport
    from neighborhoods.snapshot.peer_capture import SnapshotPeer
    from neighborhoods.snapshot.plan import RestoreOptions, RestorePlan, TransportSource
    from twins.eggs.readers.diff import Difference

Tell = Callable[[dict[str, Any]], None]
LocalPart = Callable[[str], Awaitable["LocalResult"]]
"""Hatches this machine's part of the plan, whose digest it is given, in the daemon."""


class NeighborhoodSnapshots:
    """One home's snapshots. Answers are JSON objects; raises ``ReportableError``."""

    def __init__(
        self,
        home: Home,
        host: Workspace,
        eggs: HomeEggs,
        *,
        machine: str,
        url: str = "",
        model: str = "",
        is_running: bool = False,
    ) -> None:
        """``is_running``: a daemon runs on this home, so that the twins it remembers are awake."""
        self._home = home
        self._host = host
        self._eggs = eggs
        self._machine = machine
        self._url = url
        self._model = model
        self._is_running = is_running
        self.folder = SnapshotFolder(home.root)

    async def snapshot(
        self,
        peers: Sequence[SnapshotPeer],
        *,
        target: Path | None = None,
        name: str = "",
        options: SnapshotOptions | None = None,
        allow: Collection[str] = (),
        overwrite: bool = False,
        drill: bool = True,
        scheduled: bool = False,
        tell: Tell = lambda event: None,
    ) -> SnapshotResult:
        """Takes a snapshot of this machine and ``peers``, and drills it.

        Raises ``SnapshotRunningError`` while another is under way.
        """
        from neighborhoods.snapshot.capture import take_snapshot

        with self.folder.locked():
            await asyncio.to_thread(self.folder.sweep)
            done = await take_snapshot(
                self.local_machine(),
                peers,
                self.folder,
                self._home.identity(),
                target=target,
                name=name,
                options=options,
                allow=allow,
                overwrite=overwrite,
                scheduled=scheduled,
                tell=tell,
            )
            if drill:
                tell({"event": "drill", "state": "hatching", "path": done.record.path})
                try:
                    done.record = await self._drill(done.record)
                except DrillUntriedError as error:
                    done.untried = error.with_advice()
        return done

    async def drill(self, text: str) -> SnapshotRecord:
        """Drills a snapshot that is there, anew. Raises ``NoSuchSnapshotError``, ``DrillUntriedError``."""
        with self.folder.alone():
            path = str(self.folder.find(text))
            for record in self.folder.listing():
                if record.path == path:
                    return await self._drill(record)
        raise NoSuchSnapshotError(
            f"{path} was not taken here, so no drill of it can be noted.",
            do=f"rappd neighborhood plan {path}",
        )

    async def _drill(self, record: SnapshotRecord) -> SnapshotRecord:
        import msgspec

        from neighborhoods.snapshot.drill import drill

        fingerprint = self._home.identity().fingerprint
        result: DrillResult = await drill(Path(record.path), self.folder.root, fingerprint)
        drilled = msgspec.structs.replace(record, drill=result)
        await asyncio.to_thread(self.folder.put, drilled)
        return drilled

    def snapshots(self) -> dict[str, Any]:
        """Every snapshot that was taken here, the newest first."""
        return {"snapshots": [record.as_json() for record in self.folder.listing()]}

    async def inspect(self, path: Path) -> dict[str, Any]:
        """The machines and twins that a snapshot holds or lacks, who signed it, and its last drill."""
        from rappd.features.snapshots.snapshot_view import snapshot_view

        known = {record.path: record for record in self.folder.listing()}
        return await asyncio.to_thread(snapshot_view, path, known.get(str(path)), self._eggs.signers.name_of)

    def diff(self, before: str, after: str) -> Difference:
        """Compares two snapshots, by name or path, file by file."""
        from neighborhoods.snapshot.diff import compare_snapshots

        return compare_snapshots(self.folder.find(before), self.folder.find(after))

    async def plan(
        self, path: Path, options: RestoreOptions, transport_of: TransportSource
    ) -> dict[str, Any]:
        """The plan for bringing a snapshot back. Writes nothing anywhere."""
        async with self._planned(path, options, transport_of) as made:
            return {"plan": made.as_json()}

    def recover(self) -> None:
        """Brings hatchings that were killed to their end, so that a plan sees what is there. Blocks on the disk."""
        self._eggs.importer.recover()

    async def hatch(
        self,
        path: Path,
        options: RestoreOptions,
        transport_of: TransportSource,
        *,
        approved: str = "",
        local: LocalPart,
        tell: Tell = lambda event: None,
    ) -> dict[str, Any]:
        """Brings a snapshot back. ``approved``: digest of the plan that was said yes to.

        ``local`` hatches this machine's part. Raises ``PlanChangedError`` when the plan is
        another by now, ``SnapshotRunningError``.
        """
        from neighborhoods.snapshot.hatch import check_approved, restore_peers

        with self.folder.alone():
            await asyncio.to_thread(self.recover)
            async with self._planned(path, options, transport_of) as plan:
                check_approved(plan, approved, plan.digest)
                tell(
                    {
                        "event": "planned",
                        "parts": len(plan.local) + sum(len(peer.writes) for peer in plan.peers),
                    }
                )
                here = await local(plan.local_digest)
                here.note(plan)
                scratch = self.folder.root / ".sending"
                done = await restore_peers(
                    plan, self._home.root, self._installer_of, transport_of, scratch, here, tell=tell
                )
                return {"hatched": done.as_json()}

    async def hatch_local(
        self,
        path: Path,
        options: RestoreOptions,
        hooks: RestoreHooks,
        *,
        approved: str = "",
        tell: Tell = lambda event: None,
    ) -> dict[str, Any]:
        """Hatches this machine's part alone. ``approved``: digest of that part of the plan."""
        import msgspec

        from neighborhoods.snapshot.hatch import check_approved, restore_local

        await asyncio.to_thread(self.recover)
        async with self._planned(path, options, None) as plan:
            check_approved(plan, approved, plan.local_digest)
            done = await restore_local(plan, self._eggs.importer, hooks, source=path.name, tell=tell)
            return {"hatched": msgspec.to_builtins(done)}

    @asynccontextmanager
    async def _planned(
        self, path: Path, options: RestoreOptions, transport_of: TransportSource | None
    ) -> AsyncIterator[RestorePlan]:
        """The plan of an open egg; without ``transport_of``, of this machine's part alone."""
        from neighborhoods.snapshot.contents import SnapshotContents
        from neighborhoods.snapshot.plan import make_restore_plan

        contents = await asyncio.to_thread(SnapshotContents.open, path)
        with contents.opened as opened:
            if transport_of is None:
                contents.peers = []
            yield await make_restore_plan(
                contents,
                options,
                self._eggs.importer,
                transport_of or _no_way,
                signer_name=self._eggs.signers.name_of(opened.seal.signer),
                awake=AutostartRegistry(self._home).all(),
            )

    def local_machine(self) -> LocalMachine:
        """This machine as a snapshot sees it."""
        from neighborhoods.snapshot.local_capture import LocalMachine

        ports = AutostartRegistry(self._home).all() if self._is_running else {}
        return LocalMachine(
            self._machine,
            self._home.root,
            self._host,
            version=__version__,
            url=self._url,
            model=self._model,
            presences={key: Presence(True, port or None) for key, port in ports.items()},
            conversations=self._conversations if self._home.database.exists() else None,
            is_held=self._eggs.trust.is_held,
        )

    def _conversations(self, workspace: Workspace) -> RecordedConversations:
        return RecordedConversations(self._home.database, workspace.root.name)

    def _installer_of(self, home: Path) -> Installer:
        """The installer of a folder that stands for another machine; what is held there is held here."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Installer(
            home,
            held=self._eggs.trust.quarantine,
            signers=self._eggs.signers,
            fingerprint=self._home.identity().fingerprint,
        )


def _no_way(block: PeerBlock) -> MemberTransport | None:
    return None
