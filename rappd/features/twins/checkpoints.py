"""Checkpoints of twins: made, listed, gone back to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.features.operation import OWNER, operation
from rappd.tenants.tenants import Tenants
from rappd.transcript.frames import RecordedConversations
from rappd.version import __version__
from twins.eggs.writers.formats import EggMaker
from twins.lifecycle.lookup import find_active
from twins.trust.trust import Trust
from twins.workspace.checkpoints import CheckpointRow, Checkpoints, RestoreView
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

if TYPE_CHECKING:
    from twins.workspace.checkpoint_restore import RestoreResult

Flush = Callable[[], Awaitable[object]]
"""Returns once all that was said is in the record."""


Mode = Literal["dry-run", "execute"]


class _Who(TypedDict):
    key: str
    rappid: str
    name: str


class CheckpointMade(_Who):
    """A twin, and its new checkpoint."""

    checkpoint: CheckpointRow
    message: str


class CheckpointList(_Who):
    """A twin, and the moments that it can be brought back to."""

    checkpoints: list[CheckpointRow]


class RolledBack(_Who, RestoreView):
    """A twin at an earlier moment; a dry run says what would change, and has no ``message``."""

    mode: Mode
    message: NotRequired[str]


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
        tenants: Tenants,
        flush: Flush | None = None,
    ) -> None:
        self._places = TwinLayout(home.root)
        self._host = host
        self._tenants = tenants
        self._flush = flush
        self._quarantine = Trust(home.root).quarantine
        self._checkpoints = Checkpoints(
            self._places,
            key=identity,
            maker=EggMaker(version=__version__, host=machine),
            conversations=partial(RecordedConversations, home.database),
        )

    @operation(
        "checkpoints.make", "POST", "/twins/{twin}/checkpoints", right=OWNER, agents="twins.checkpoint"
    )
    async def make(self, twin: str, note: str = "") -> CheckpointMade:
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
    async def listing(self, twin: str) -> CheckpointList:
        """Moments that a twin can be brought back to, oldest first."""
        found = await self._twin(twin)
        kept = await asyncio.to_thread(self._checkpoints.listing, found.key)
        return {**_who(found), "checkpoints": [one.as_json() for one in kept]}

    @operation("checkpoints.rollback", "POST", "/twins/{twin}/checkpoints/rollback", right=OWNER)
    async def rollback(self, twin: str, checkpoint: str = "", confirm: bool = False) -> RolledBack:
        """Brings a twin back to a `checkpoint`, or the latest; only says what would change, unless `confirm` is true.

        One that is running is stopped meanwhile. ``restored`` and ``removed`` are paths in its
        folder, ``kept`` counts files that are the same.
        """
        found = await self._twin(twin)
        if not confirm:
            difference = await asyncio.to_thread(self._look_back, found, checkpoint)
            return _rolled_back(found, "dry-run", difference)
        # The caller may disconnect in the middle, and the twin must not start before its folder is whole.
        done = await asyncio.shield(asyncio.ensure_future(self._go_back_resting(found, checkpoint)))
        at = done.checkpoint.at
        text = (
            f"{found.name} is as it was at {at}."
            if done.differs
            else f"{found.name} is as it was at {at} already."
        )
        answer = _rolled_back(found, "execute", done)
        answer["message"] = text
        return answer

    async def _go_back_resting(self, twin: Twin, checkpoint: str) -> RestoreResult:
        async with self._tenants.resting(twin.key):
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
            self._checkpoints, self._places, twin, checkpoint, quarantine=self._quarantine, host=self._host
        )


def _rolled_back(twin: Twin, mode: Mode, result: RestoreResult) -> RolledBack:
    answer = result.as_json()
    return {
        "key": twin.key,
        "rappid": twin.rappid.text,
        "name": twin.name,
        "mode": mode,
        "checkpoint": answer["checkpoint"],
        "before": answer["before"],
        "restored": answer["restored"],
        "removed": answer["removed"],
        "kept": answer["kept"],
        "notes": answer["notes"],
    }


def _who(twin: Twin) -> _Who:
    return {"key": twin.key, "rappid": twin.rappid.text, "name": twin.name}
