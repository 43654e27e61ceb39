"""Bringing a snapshot back: planned, this machine's part hatched around its twins, and the other machines' sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.daemon.home import Home
from rappd.errors import NotFoundError
from rappd.features.eggs.operations import EggOperations
from rappd.features.snapshots.answers import RestorePlanned, RestoreSteps
from rappd.tenants.autostart import AutostartRegistry
from rappd.tenants.tenants import Tenants
from twins.installer.installer import Installer
from twins.installer.planning import check_approved

if TYPE_CHECKING:
    from neighborhoods.snapshot.capture import Tell
    from neighborhoods.snapshot.hatch import LocalResult
    from neighborhoods.snapshot.member_transport import MemberTransport
    from neighborhoods.snapshot.plan import RestoreOptions, RestorePlan, TransportSource
    from neighborhoods.snapshot.snapshot_contents import PeerBlock

_OPEN_SECONDS = 86400.0
"""The time that a plan waits whose reader never closed it, as long as an egg does."""
_MOST_OPEN = 20


class OpenRestore(NamedTuple):
    """A restore whose plan is open on the computer. ``id`` is its reader's own; ``digest`` is that of the plan as shown there."""

    id: str
    path: Path
    options: dict[str, Any]
    digest: str
    at: float


class OpenRestores:
    """Restores that wait for a yes or no, by their ids: on the computer, where their plan is open, or on a phone.

    Kept in memory alone. All calls come from the event loop.
    """

    def __init__(self) -> None:
        self._open: dict[str, OpenRestore] = {}

    def hold(self, id: str, path: Path, options: dict[str, Any], digest: str) -> None:
        """Keeps a restore until it is answered or let go; a plan made anew takes the place of the former."""
        self._open.pop(id, None)
        self._open[id] = OpenRestore(id, path, options, digest, time.time())
        while len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def all(self) -> list[OpenRestore]:
        """The restores that wait, the latest last."""
        oldest = time.time() - _OPEN_SECONDS
        self._open = {id: one for id, one in self._open.items() if one.at > oldest}
        return list(self._open.values())

    def take(self, id: str) -> OpenRestore:
        """Removes the restore that is answered. Raises ``NotFoundError`` for one that waits no more."""
        if (found := self._open.pop(id, None)) is None:
            raise NotFoundError("That plan does not wait here any more.", do="Open it again.")
        return found

    def put_back(self, one: OpenRestore) -> None:
        """Keeps one that was taken, and of which nothing came."""
        self._open.setdefault(one.id, one)

    def let_go(self, id: str) -> None:
        """Removes a restore, if it still waits."""
        self._open.pop(id, None)


class SnapshotRestorer:
    """Restores of one home. Answers are JSON objects; raises ``ReportableError``."""

    def __init__(self, home: Home, eggs: EggOperations, tenants: Tenants, folder: SnapshotFolder) -> None:
        self._home, self._eggs, self._tenants, self._folder = home, eggs, tenants, folder

    async def plan(
        self, path: Path, options: RestoreOptions, transport_of: TransportSource
    ) -> RestorePlanned:
        """The plan for bringing a snapshot back. Writes nothing anywhere."""
        async with self._planned(path, options, transport_of) as made:
            return {"plan": cast(RestoreSteps, made.as_json())}

    async def hatch(
        self,
        path: Path,
        options: RestoreOptions,
        transport_of: TransportSource,
        *,
        approved: str,
        tell: Tell,
    ) -> dict[str, Any]:
        """Brings a snapshot back. ``approved``: digest of the plan that was said yes to.

        Raises ``PlanChangedError`` when the plan is another by now, ``SnapshotRunningError``.
        """
        from neighborhoods.snapshot.hatch import restore_peers

        with self._folder.alone():
            async with self._planned(path, options, transport_of) as plan:
                check_approved(plan.contents.opened.name, approved, plan.digest)
                parts = len(plan.local) + sum(len(peer.writes) for peer in plan.peers)
                tell({"event": "planned", "parts": parts})
                here = await self._local_part(path, plan, tell)
                scratch = self._folder.root / ".sending"
                done = await restore_peers(
                    plan, self._home.root, self._installer_of, transport_of, scratch, here, tell=tell
                )
                return {"hatched": done.as_json()}

    async def _local_part(self, path: Path, approved: RestorePlan, tell: Tell) -> LocalResult:
        """Hatches this machine's part, planned anew with no other hatching under way; its twins rest meanwhile."""
        from neighborhoods.snapshot.hatch import RestoreHooks, restore_local

        async def boot(key: str, port: int | None) -> None:
            await self._tenants.boot(key)

        async def hatch() -> dict[str, Any]:
            async with self._planned(path, approved.options, None) as plan:
                check_approved(plan.contents.opened.name, approved.local_digest, plan.local_digest)
                approved.local = plan.local  # as it is carried out
                hooks = RestoreHooks(self._eggs.resting, boot)
                importer = self._eggs.home_eggs.importer
                return {"local": await restore_local(plan, importer, hooks, source=path.name, tell=tell)}

        done: LocalResult = (await self._eggs.alone(hatch()))["local"]
        return done

    @asynccontextmanager
    async def _planned(
        self, path: Path, options: RestoreOptions, transport_of: TransportSource | None
    ) -> AsyncIterator[RestorePlan]:
        """The plan of an open egg; without ``transport_of``, of this machine's part alone."""
        from neighborhoods.snapshot.plan import make_restore_plan
        from neighborhoods.snapshot.snapshot_contents import SnapshotContents

        contents = await asyncio.to_thread(SnapshotContents.open, path)
        eggs = self._eggs.home_eggs
        with contents.opened as opened:
            if transport_of is None:
                contents.peers = []
            yield await make_restore_plan(
                contents,
                options,
                eggs.importer,
                transport_of or _no_way,
                signer_name=eggs.signers.name_of(opened.seal.signer),
                awake=AutostartRegistry(self._home).all(),
            )

    def _installer_of(self, home: Path) -> Installer:
        """The installer of a folder that stands for another machine; what is held there is held here."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        eggs = self._eggs.home_eggs
        fingerprint = self._home.identity().fingerprint
        return Installer(
            home, quarantine=eggs.trust.quarantine, signers=eggs.signers, fingerprint=fingerprint
        )


def _no_way(block: PeerBlock) -> MemberTransport | None:
    return None
