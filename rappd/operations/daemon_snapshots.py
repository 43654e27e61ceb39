"""The local part of a restore while the daemon runs: its twins rest meanwhile, and wake again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rappd.operations.daemon_eggs import DaemonEggOperations
from rappd.operations.neighborhood_snapshots import NeighborhoodSnapshots
from rappd.tenants.tenants import Tenants


class DaemonSnapshots:
    """``NeighborhoodSnapshots`` for the event loop, around twins that are running."""

    def __init__(self, verbs: NeighborhoodSnapshots, eggs: DaemonEggOperations, tenants: Tenants) -> None:
        self.verbs = verbs
        self._eggs = eggs
        self._tenants = tenants

    async def hatch_local(self, path: Path, options: dict[str, Any], *, approved: str) -> dict[str, Any]:
        """See ``NeighborhoodSnapshots.hatch_local``; goes on to its end when the caller disconnects."""
        import msgspec

        from neighborhoods.snapshot.hatch import RestoreHooks
        from neighborhoods.snapshot.plan import RestoreOptions
        from rappd.errors import UsageProblemError

        try:
            chosen = msgspec.convert(options, RestoreOptions)
        except msgspec.ValidationError as error:
            raise UsageProblemError(f"These options cannot be read: {error}.", do="") from error

        async def boot(key: str, port: int | None) -> None:
            await self._tenants.boot(key)

        hooks = RestoreHooks(self._eggs.resting, boot)
        work = self.verbs.hatch_local(path, chosen, hooks, approved=approved)
        return await self._eggs.to_the_end(self._eggs.alone(work))
