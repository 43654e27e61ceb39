"""Retention: which scheduled snapshots are too old to be kept, and their removal."""

from __future__ import annotations

import logging
from pathlib import Path

from neighborhoods.snapshot.snapshot_folder import SnapshotFolder, SnapshotRecord

log = logging.getLogger(__name__)


def remove_old(folder: SnapshotFolder, keep: int) -> list[SnapshotRecord]:
    """Keeps the last ``keep`` whole scheduled snapshots; returns those that were removed. Blocks on the disk.

    Of partial ones since the last whole one it keeps the last ``keep`` and each that has something which those lack.
    The last restorable one stays, too, and so does every file that no schedule made, that lies elsewhere, or that
    was changed. Raises ``SnapshotRunningError``.
    """
    removed = []
    with folder.alone():
        for record in _too_old(folder, keep):
            try:
                if folder.remove(record):
                    removed.append(record)
            except OSError as error:
                log.warning("%s could not be removed: %s", record.path, error.strerror or error)
    return removed


def _too_old(folder: SnapshotFolder, keep: int) -> list[SnapshotRecord]:
    listed = folder.listing()
    own = [one for one in listed if one.scheduled and one.is_there and Path(one.path).parent == folder.root]
    whole = [one for one in own if one.is_whole]
    behind = own.index(whole[0]) if whole else len(own)
    recent, older = own[:behind], own[behind + 1 :]
    kept = {one.path for one in whole[:keep]}
    replaced = [one for one in recent[keep:] if any(_replaces(newer, one) for newer in recent[:keep])]
    return replaced + [one for one in older if one.path not in kept]


def _replaces(newer: SnapshotRecord, older: SnapshotRecord) -> bool:
    """True when ``newer`` can be restored and lacks nothing that ``older`` has."""
    lacks, lacked = ({*one.missing, *one.left_behind} for one in (newer, older))
    return newer.is_restorable and lacks <= lacked and set(older.holds) <= set(newer.holds)
