"""Checkpoints of twins: made, listed, gone back to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.features.operation import OWNER, operation
from rappd.tenants.tenants import Tenants
from rappd.transcript.frames import RecordedConversations
from rappd.version import __version__
from twins.eggs.writers.formats import EggMaker
from twins.lifecycle.lookup import find_active
from twins.trust.trust import Trust
from twins.workspace.checkpoints import Checkpoints
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

if TYPE_CHECKING:
    from twins.workspace.checkpoint_restore import RestoreResult

Flush = Callable[[], Awaitable[object]]
"""Returns once all that was said is in the record."""


class CheckpointOperations:
    """The checkpoints of a home.

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
        living: Tenants,
        flush: Flush | None = None,
    ) -> None:
        self._places = TwinLayout(home.root)
        self._host = host
        self._living = living
        self._flush = flush
        self._held = Trust(home.root).quarantine
        self._checkpoints = Checkpoints(
            self._places,
            key=identity,
            maker=EggMaker(version=__version__, host=machine),
            conversations=partial(RecordedConversations, home.database),
        )

    @operation(
        "checkpoints.make", "POST", "/twins/{twin}/checkpoints", right=OWNER, agents="twins.checkpoint"
    )
    async def make(self, twin: str, note: str = "") -> dict[str, Any]:
        """Keeps a twin as it is now, with all that was said; a `note` may be given. It may be running meanwhile."""
        found = await self._twin(twin)
        made = await asyncio.to_thread(self._checkpoints.make, found, note=note)
        return {
            **_who(found),
            "checkpoint": made.as_json(),
            "message": f"{found.name} can be brought back to this.",
        }

    @operation(
        "checkpoints.list", "GET", "/twins/{twin}/checkpoints", right=OWNER, agents="twins.checkpoints"
    )
    async def listing(self, twin: str) -> dict[str, Any]:
        """Moments that a twin can be brought back to, oldest first."""
        found = await self._twin(twin)
        kept = await asyncio.to_thread(self._checkpoints.listing, found.key)
        return {**_who(found), "checkpoints": [one.as_json() for one in kept]}

    @operation("checkpoints.rollback", "POST", "/twins/{twin}/checkpoints/rollback", right=OWNER)
    async def rollback(self, twin: str, checkpoint: str = "", confirm: bool = False) -> dict[str, Any]:
        """Brings a twin back to a `checkpoint`, or the latest; only says what would change, unless `confirm` is true.

        One that is running is stopped meanwhile. ``restored`` and ``removed`` are paths in its
        folder, ``kept`` counts files that are the same.
        """
        found = await self._twin(twin)
        if not confirm:
            told = await asyncio.to_thread(self._look_back, found, checkpoint)
            return {**_who(found), "mode": "dry-run", **told.as_json()}
        # The caller may disconnect in the middle, and the twin must not start before its folder is whole.
        done = await asyncio.shield(asyncio.ensure_future(self._go_back_resting(found, checkpoint)))
        at = done.checkpoint.at
        text = (
            f"{found.name} is as it was at {at}."
            if done.differs
            else f"{found.name} is as it was at {at} already."
        )
        return {**_who(found), "mode": "execute", **done.as_json(), "message": text}

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
