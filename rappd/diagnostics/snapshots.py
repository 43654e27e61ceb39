"""The check of the neighborhood's snapshots: the newest, and the newest that can be restored."""

from __future__ import annotations

from collections.abc import Iterator

from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.diagnostics.finding import CheckContext, Finding


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
        yield Finding("Snapshot", "note", what, "wake what is missing, then rappd neighborhood snapshot")
    else:
        yield Finding("Snapshot", "good", f"{newest.name}, restorable, tried {newest.drill.at[:10]}")
