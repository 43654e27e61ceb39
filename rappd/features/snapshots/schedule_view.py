"""The timer of scheduled snapshots, as screens show it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypedDict

from rappd.store.timer_table import TimerRow

KIND = "snapshot"
TIMER = "snapshot"
KEEP = 7


class ScheduleView(TypedDict):
    """The schedule of snapshots; moments are in UTC, in ISO 8601, "" for none. ``missed``: no daemon was there to run it."""

    rule: str
    zone: str
    keep: int
    next: str
    last: str
    outcome: str
    failed_since: str
    missed: bool


def schedule_view(timers: list[TimerRow], *, now: float | None = None) -> ScheduleView | None:
    """The schedule of snapshots among ``timers`` as screens show it; None when there is none.

    ``missed`` needs ``now``: a moment that passed with no daemon to run it.
    """
    for row in timers:
        if row.kind == KIND:
            return {
                "rule": row.rule,
                "zone": row.zone,
                "keep": row.detail.get("keep", KEEP),
                "next": _at(row.next),
                "last": _at(row.last),
                "outcome": row.outcome,
                "failed_since": _at(row.failed_since),
                "missed": now is not None and row.next < now,
            }
    return None


def _at(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds") if moment else ""
