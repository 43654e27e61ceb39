"""The checks of the neighborhood's snapshots: the newest, the newest that can be restored, and the schedule."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.diagnostics.home import open_database
from rappd.features.snapshots.schedule_view import schedule_view
from rappd.store.timer_table import timers_in


def check_schedule(visit: CheckContext) -> Iterator[Finding]:
    """Nothing, where no snapshots are scheduled."""
    now = None if visit.running else time.time()
    try:
        with closing(open_database(visit.home.database)) as database:  # leaves no trace
            found = schedule_view(timers_in(database), now=now)
    except sqlite3.Error:
        return  # the record's own check says so
    if found is None:
        return
    if found["outcome"]:
        what = f"scheduled snapshots fail since {found['failed_since'][:10]}: {found['outcome'].rstrip('.')}"
        yield Finding("Schedule", "bad", what, "rappd neighborhood probe, and put right what it names")
    elif found["missed"]:
        yield Finding("Schedule", "note", f"the snapshot of {found['next'][:10]} was missed", "rappd start")
    else:
        yield Finding("Schedule", "good", f"snapshots {found['rule']}, the next {found['next'][:16]}Z")


def check_snapshots(visit: CheckContext) -> Iterator[Finding]:
    """Nothing, where none was ever taken."""
    listed = SnapshotFolder(visit.home.root).listing()
    if not listed:
        return
    newest = listed[0]
    good = next((one for one in listed if one.is_there and one.drill and one.drill.passed), None)
    last = f"; the last restorable one is of {good.taken_at[:10]}" if good else "; none can be restored"
    if not newest.is_there:
        yield Finding("Snapshot", "note", f"{newest.name} is gone{last}", "rappd neighborhood snapshot")
    elif newest.drill is None:
        do = f"rappd neighborhood drill {newest.name}"
        yield Finding("Snapshot", "note", f"{newest.name} was never tried{last}", do)
    elif not newest.drill.passed:
        what = f"{newest.name} cannot be restored: {newest.drill.problem.rstrip('.')}{last}"
        yield Finding("Snapshot", "bad", what, "rappd neighborhood snapshot")
    elif newest.missing:
        what = f"{newest.name} lacks {', '.join(newest.missing[:3])}"
        yield Finding("Snapshot", "note", what, "start what is missing, then rappd neighborhood snapshot")
    elif newest.left_behind:
        what = f"{newest.name} left {', '.join(newest.left_behind[:3])} behind"
        yield Finding(
            "Snapshot", "note", what, "rappd neighborhood snapshot --max-twin-bytes BYTES takes larger twins"
        )
    else:
        yield Finding("Snapshot", "good", f"{newest.name}, restorable, tried {newest.drill.at[:10]}")
