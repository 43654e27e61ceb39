"""Errors of snapshots of a neighborhood."""

from __future__ import annotations

from neighborhoods.errors import NeighborhoodError


class SnapshotRunningError(NeighborhoodError):
    """Another snapshot, or restore, of this home is under way; nothing was touched."""

    code = "snapshot_running"
    status = 409
    exit_code = 9


class NoSuchSnapshotError(NeighborhoodError):
    """No snapshot of that name, and no file of that path."""

    code = "no_such_snapshot"
    status = 404
    exit_code = 4


class BadSnapshotNameError(NeighborhoodError):
    """A name that no snapshot can have: its file is called like it. Nothing was read or written."""

    code = "bad_snapshot_name"
    status = 400
    exit_code = 2


class NotASnapshotError(NeighborhoodError):
    """An egg that holds no neighborhood."""

    code = "not_a_snapshot"
    status = 400
    exit_code = 5


class PartialSnapshotError(NeighborhoodError):
    """A scheduled snapshot was taken and lacks a machine or a twin."""

    code = "partial_snapshot"
    status = 502
    exit_code = 7


class DrillUntriedError(NeighborhoodError):
    """A snapshot that was not tried, because this machine's disk has no room for it. Nothing is known of it."""

    code = "drill_untried"
    status = 507
    exit_code = 1


class DrillFailedError(NeighborhoodError):
    """A scheduled snapshot was taken and cannot be restored."""

    code = "drill_failed"
    status = 500
