"""Taking snapshots of all machines, and drills: trying whether one can be restored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neighborhoods.errors import DrillUntriedError, NeighborhoodError
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder, SnapshotRecord
from rappd.daemon.home import Home
from rappd.features.eggs.home_eggs import HomeEggs
from rappd.tenants.autostart import AutostartRegistry
from rappd.transcript.frames import RecordedConversations
from rappd.version import __version__
from twins.workspace.listing import Presence
from twins.workspace.workspace import Workspace

if TYPE_CHECKING:
    from neighborhoods.snapshot.capture import SnapshotResult, Tell
    from neighborhoods.snapshot.local_capture import LocalMachine
    from neighborhoods.snapshot.manifest import SnapshotOptions
    from neighborhoods.snapshot.member_capture import SnapshotPeer


class SnapshotTaker:
    """Takes snapshots into the ``folder`` of one home. Raises ``SnapshotRunningError`` while one is under way."""

    def __init__(
        self,
        home: Home,
        host: Workspace,
        eggs: HomeEggs,
        folder: SnapshotFolder,
        *,
        machine: str,
        url: Callable[[], str],
        model: Callable[[], str],
        serves: bool,
    ) -> None:
        """``serves``: twins that are remembered as running do run."""
        self._home, self._host, self._eggs, self._folder = home, host, eggs, folder
        self._machine, self._url, self._model, self._serves = machine, url, model, serves

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
        tell: Tell,
    ) -> SnapshotResult:
        """Takes a snapshot of this machine and ``peers``, and drills it."""
        from neighborhoods.snapshot.capture import take_snapshot

        with self._folder.locked():
            await asyncio.to_thread(self._folder.sweep)
            done = await take_snapshot(
                self._local_machine(),
                peers,
                self._folder,
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

    async def drill(self, path: Path) -> SnapshotRecord:
        """Drills a snapshot that is there, anew. Raises ``no_such_snapshot``, ``DrillUntriedError``."""
        with self._folder.alone():
            for record in self._folder.listing():
                if record.path == str(path):
                    return await self._drill(record)
        raise NeighborhoodError(
            f"{path} was not taken here, so no drill of it can be noted.",
            do=f"rappd neighborhood plan {path}",
            code="no_such_snapshot",
        )

    async def _drill(self, record: SnapshotRecord) -> SnapshotRecord:
        import msgspec

        from neighborhoods.snapshot.drill import drill

        result = await drill(Path(record.path), self._folder.root, self._home.identity().fingerprint)
        drilled = msgspec.structs.replace(record, drill=result)
        await asyncio.to_thread(self._folder.put, drilled)
        return drilled

    def _local_machine(self) -> LocalMachine:
        """This machine as a snapshot sees it."""
        from neighborhoods.snapshot.local_capture import LocalMachine

        ports = AutostartRegistry(self._home).all() if self._serves else {}
        return LocalMachine(
            self._machine,
            self._home.root,
            self._host,
            version=__version__,
            url=self._url(),
            model=self._model(),
            presences={key: Presence(True, port or None) for key, port in ports.items()},
            conversations=lambda twin: RecordedConversations(self._home.database, twin.root.name),
            is_held=self._eggs.trust.is_held,
        )
