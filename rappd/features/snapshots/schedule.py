"""Scheduled snapshots of the neighborhood: set, shown, run by the daemon's timer, and old ones removed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict

from neighborhoods.errors import DrillUntriedError, NeighborhoodError, SnapshotRunningError
from neighborhoods.snapshot.retention import remove_old
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.errors import UsageProblemError
from rappd.features.operation import OWNER, Text, operation
from rappd.features.snapshots.schedule_view import KEEP, KIND, TIMER, ScheduleView, schedule_view
from rappd.sessions.schedule.timers import Timers
from rappd.store.timer_table import TimerRow

if TYPE_CHECKING:
    from neighborhoods.snapshot.capture import SnapshotResult

MOST_KEPT = 1000
_PATIENCE = 3600.0
"""Seconds that a scheduled snapshot waits for another one."""
_LOOK_SECONDS = 2.0
_NAMED = 3


class Schedule(TypedDict):
    """The schedule of snapshots; None when there is none."""

    schedule: ScheduleView | None


class SnapshotSchedule:
    """The schedule of one running daemon. Answers are JSON objects; raises ``ReportableError``."""

    def __init__(
        self,
        timers: Timers,
        folder: SnapshotFolder,
        take: Callable[[], Awaitable[SnapshotResult]],
        stopped: Callable[[], None],
    ) -> None:
        """``take`` takes a snapshot of all machines, which screens show while it is under way.

        ``stopped`` is called when the schedule is switched off.
        """
        self._timers = timers
        self._folder = folder
        self._take, self._stopped = take, stopped
        timers.register(KIND, self._run)

    def show(self) -> Schedule:
        """The schedule, its next moment and its last outcome."""
        return {"schedule": schedule_view(self._timers.rows, now=None if self._timers.runs else time.time())}

    @operation("schedule.show", "GET", "/neighborhood/schedule", right=OWNER, agents="neighborhood.schedule")
    async def present(self) -> Schedule:
        """The schedule of snapshots: its rule, next moment and last outcome; null when there is none."""
        return self.show()

    @operation("schedule.set", "PUT", "/neighborhood/schedule", right=OWNER)
    async def set(self, rule: Text, keep: int = KEEP, zone: str = "") -> Schedule:
        """Takes snapshots by `rule` in `zone` from now on, and keeps the last `keep` whole ones of them."""
        if not 1 <= keep <= MOST_KEPT:
            raise UsageProblemError(f"{keep} snapshots cannot be kept.", do=f"--keep 1 to {MOST_KEPT}")
        await self._timers.schedule(TIMER, KIND, rule, caller="operator", zone=zone, detail={"keep": keep})
        return self.show()

    @operation("schedule.switch_off", "DELETE", "/neighborhood/schedule", right=OWNER)
    async def switch_off(self) -> Schedule:
        """Takes no more snapshots; those that are there stay. Raises ``NotFoundError`` when none is set."""
        await self._timers.remove(TIMER)
        self._stopped()
        return self.show()

    async def _run(self, row: TimerRow) -> None:
        """Takes one and removes old ones. Raises what makes it fail; a partial one has failed."""
        done = await _in_turn(self._take)
        keep = row.detail.get("keep")
        with suppress(SnapshotRunningError):  # the next run removes them
            await asyncio.to_thread(remove_old, self._folder, keep if isinstance(keep, int) else KEEP)
        _require_whole(done)


async def _in_turn(take: Callable[[], Awaitable[SnapshotResult]]) -> SnapshotResult:
    """Takes it when the one that its owner takes, drills or restores at this moment is done."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return await take()
        except SnapshotRunningError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(_LOOK_SECONDS)


def _require_whole(done: SnapshotResult) -> None:
    name, drill = done.record.name, done.record.drill
    if done.is_partial:
        problems = "; ".join(
            one.why if one.why.startswith(one.path) else f"{one.path}: {one.why}"
            for one in done.failed[:_NAMED]
        )
        more = f", and {len(done.failed) - _NAMED} more" if len(done.failed) > _NAMED else ""
        raise NeighborhoodError(
            f"{name} is partial. {problems.rstrip('.')}{more}.",
            do="Put that right; the next one tries again.",
            code="partial_snapshot",
        )
    if drill is None:
        raise DrillUntriedError(
            done.untried or f"{name} was never tried.", do=f"rappd neighborhood drill {name}"
        )
    if not drill.passed:
        why = drill.problem.rstrip(".")
        raise NeighborhoodError(
            f"{name} cannot be restored: {why}.", do=f"rappd neighborhood drill {name}", code="drill_failed"
        )
