"""Bringing a snapshot back: planned, this machine's part hatched around its twins, and the other machines' sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.daemon.home import Home
from rappd.features.eggs.operations import EggOperations
from rappd.tenants.autostart import AutostartRegistry
from rappd.tenants.tenants import Tenants
from twins.installer.installer import Installer

if TYPE_CHECKING:
    from neighborhoods.snapshot.capture import Tell
    from neighborhoods.snapshot.contents import PeerBlock
    from neighborhoods.snapshot.hatch import LocalResult
    from neighborhoods.snapshot.member_transport import MemberTransport
    from neighborhoods.snapshot.plan import RestoreOptions, RestorePlan, TransportSource


class SnapshotRestorer:
    """Restores of one home. Answers are JSON objects; raises ``ReportableError``."""

    def __init__(self, home: Home, eggs: EggOperations, tenants: Tenants, folder: SnapshotFolder) -> None:
        self._home, self._eggs, self._tenants, self._folder = home, eggs, tenants, folder

    async def plan(
        self, path: Path, options: RestoreOptions, transport_of: TransportSource
    ) -> dict[str, Any]:
        """The plan for bringing a snapshot back. Writes nothing anywhere."""
        async with self._planned(path, options, transport_of) as made:
            return {"plan": made.as_json()}

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
        from neighborhoods.snapshot.hatch import check_approved, restore_peers

        with self._folder.alone():
            async with self._planned(path, options, transport_of) as plan:
                check_approved(plan, approved, plan.digest)
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
        from neighborhoods.snapshot.hatch import RestoreHooks, check_approved, restore_local

        async def boot(key: str, port: int | None) -> None:
            await self._tenants.boot(key)

        async def hatch() -> dict[str, Any]:
            async with self._planned(path, approved.options, None) as plan:
                check_approved(plan, approved.local_digest, plan.local_digest)
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
        from neighborhoods.snapshot.contents import SnapshotContents
        from neighborhoods.snapshot.plan import make_restore_plan

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
        return Installer(home, held=eggs.trust.quarantine, signers=eggs.signers, fingerprint=fingerprint)


def _no_way(block: PeerBlock) -> MemberTransport | None:
    return None
