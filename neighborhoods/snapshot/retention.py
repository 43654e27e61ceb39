"""Removes scheduled snapshots that are too old to be kept."""

from __future__ import annotations

import logging
from pathlib import Path

from neighborhoods.snapshot.snapshot_folder import SnapshotFolder, SnapshotRecord

log = logging.getLogger(__name__)


def remove_old(folder: SnapshotFolder, keep: int) -> list[SnapshotRecord]:
    """Keeps the last ``keep`` whole scheduled snapshots; returns those that were removed. Blocks on the disk.

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
    last = folder.last_restorable()
    own = [one for one in listed if one.scheduled and one.is_there and Path(one.path).parent == folder.root]
    whole = [one for one in own if one.is_whole]
    if len(whole) < 1:
        return []
    kept = {one.path for one in whole[:keep]} | ({last.path} if last else set())
    return [one for one in own[own.index(whole[0]) + 1 :] if one.path not in kept]
