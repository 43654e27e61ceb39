"""Checkpoints of twins: made, listed, gone back to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.operations.twin_supervisor import TwinSupervisor
from rappd.transcript.frames import RecordedConversations
from rappd.version import __version__
from twins.eggs.writers.formats import EggMaker
from twins.installer.quarantine import QuarantineList
from twins.lifecycle.lookup import find_active
from twins.workspace.checkpoints import Checkpoints
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

if TYPE_CHECKING:
    from twins.workspace.checkpoint_restore import RestoreResult

Flush = Callable[[], Awaitable[object]]
"""Returns once all that was said is in the record."""


class CheckpointOperations:
    """One home's checkpoints.

    Every verb answers a JSON object with ``key``, ``rappid`` and ``name`` of the twin, and raises
    ``ReportableError``.
    """

    def __init__(
        self,
        home: Home,
        host: Workspace,
        identity: IdentityKey,
        *,
        machine: str,
        living: TwinSupervisor,
        flush: Flush | None = None,
    ) -> None:
        self._places = TwinLayout(home.root)
        self._host = host
        self._living = living
        self._flush = flush
        self._held = QuarantineList(home.held, home.root)
        self._checkpoints = Checkpoints(
            self._places,
            key=identity,
            maker=EggMaker(version=__version__, host=machine),
            conversations=partial(RecordedConversations, home.database),
        )

    async def make(self, selector: str, *, note: str = "") -> dict[str, Any]:
        """Keeps a twin as it is now, with all that was said; it may be running meanwhile."""
        twin = await self._twin(selector)
        made = await asyncio.to_thread(self._checkpoints.make, twin, note=note)
        return {
            **_who(twin),
            "checkpoint": made.as_json(),
            "message": f"{twin.name} can be brought back to this.",
        }

    async def listing(self, selector: str) -> dict[str, Any]:
        """A twin's checkpoints, oldest first."""
        twin = await self._twin(selector)
        found = await asyncio.to_thread(self._checkpoints.listing, twin.key)
        return {**_who(twin), "checkpoints": [one.as_json() for one in found]}

    async def rollback(self, selector: str, *, checkpoint: str = "", confirm: bool = False) -> dict[str, Any]:
        """Brings a twin back; one that is running is stopped meanwhile.

        Without ``confirm`` it only says what would change: ``restored`` and ``removed`` are paths in its
        folder, ``kept`` counts files that are the same.
        """
        twin = await self._twin(selector)
        if not confirm:
            told = await asyncio.to_thread(self._look_back, twin, checkpoint)
            return {**_who(twin), "mode": "dry-run", **told.as_json()}
        # The caller may disconnect in the middle, and the twin must not start before its folder is whole.
        done = await asyncio.shield(asyncio.ensure_future(self._go_back_resting(twin, checkpoint)))
        at = done.checkpoint.at
        text = (
            f"{twin.name} is as it was at {at}."
            if done.differs
            else f"{twin.name} is as it was at {at} already."
        )
        return {**_who(twin), "mode": "execute", **done.as_json(), "message": text}

    async def _go_back_resting(self, twin: Twin, checkpoint: str) -> RestoreResult:
        async with self._living.resting(twin.key):
            return await asyncio.to_thread(self._go_back, twin, checkpoint)

    async def _twin(self, selector: str) -> Twin:
        if self._flush is not None:
            await self._flush()
        return await asyncio.to_thread(find_active, self._places, selector)

    # In threads from here on.

    def _look_back(self, twin: Twin, checkpoint: str) -> RestoreResult:
        from twins.workspace import checkpoint_restore  # brings all of the importer along

        return checkpoint_restore.plan_restore(self._checkpoints, twin, checkpoint)

    def _go_back(self, twin: Twin, checkpoint: str) -> RestoreResult:
        from twins.workspace import checkpoint_restore

        return checkpoint_restore.restore(
            self._checkpoints, self._places, twin, checkpoint, held=self._held, host=self._host
        )


def _who(twin: Twin) -> dict[str, Any]:
    return {"key": twin.key, "rappid": twin.rappid.text, "name": twin.name}
