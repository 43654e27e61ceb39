"""News for the owner that parts of the daemon report, each in its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.contract.agent import Change
from rappd.daemon.activity_feed import ActivityFeed
from rappd.notices.notices import Notices
from rappd.organism.organism_file import Fault
from rappd.organism.organism_in_force import FILE
from rappd.store.timer_table import TimerRow
from rappd.tenants.tenant import Tenant


class OwnerNews:
    """Words of what happened, and when it applies no more. Parts that are built later are given as calls to them."""

    def __init__(
        self,
        notices: Notices,
        activity: ActivityFeed,
        host: Callable[[], Tenant],
        record_differs: Callable[[], bool],
        tell_peers: Callable[[], None],
    ) -> None:
        self._notices, self._activity, self._host, self._tell_peers = notices, activity, host, tell_peers
        notices.keep_while("approval", self._waits_for_approval)
        notices.keep_while("record", lambda subject: record_differs())

    def agents_changed(self, changes: list[Change], *, quiet: bool = False) -> None:
        """Reports changes of agent files: in the log, and to watchers."""
        self._activity.agents_changed(self._host(), changes, quiet=quiet)
        for change in changes:
            if change.kind == "waits" and (key := f"approval:{change.file}") not in self._notices:
                waits = f"{change.file} waits for your approval: kept, and not run."
                self._notices.add(
                    waits, "rappd agents approve", kind="approval", key=key, subject=change.file
                )
        if changes and not quiet:
            self._tell_peers()

    def organism_read(self, faults: Sequence[Fault]) -> None:
        """Reports faults of ``organism.yaml``; takes them back once there are none."""
        if faults:
            what = f"{FILE}, {str(faults[0]).rstrip('.')}. The version before stays in force."
            self._notices.add(what, "rappd organism check", kind="organism", key="organism")
        else:
            self._notices.settle("organism")

    def failed_later(self, what: str, do: str) -> None:
        """Reports work that was put off until its caller was answered, and failed."""
        self._notices.add(what, do)

    def records_missing(self, problem: str) -> None:
        """Reports an event log that its anchors do not fit."""
        what = f"The record of what was said does not match its anchor: {problem}."
        self._notices.add(what, "rappd threads verify", kind="record", key="record", subject="anchor")

    def timer_ended(self, row: TimerRow) -> None:
        """Reports a timer that failed; takes back what an earlier time reported."""
        key = f"timer:{row.id}"
        if row.outcome:
            self._notices.add(f"Scheduled {row.id} failed: {row.outcome}", "", kind="schedule", key=key)
        else:
            self._notices.settle(key)

    def _waits_for_approval(self, file: str) -> bool:
        return any(state.waits and state.file.rel == file for state in self._host().registry.states())
