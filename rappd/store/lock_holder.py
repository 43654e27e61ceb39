"""The program that keeps the database locked for writing, as far as the system tells."""

from __future__ import annotations

import time
from collections.abc import Set
from pathlib import Path

_LOCKS = Path("/proc/locks")
_WRITE_BYTE = 120
"""WAL_WRITE_LOCK in the index of the log (SQLite, walformat.html, "WAL Locks")."""
_PAUSE_SECONDS = 0.3
"""A write that takes longer is none of a program that shares the file."""


def lock_holder(path: Path, own: Set[int] = frozenset()) -> str:
    """``NAME (PID)`` of a program that holds the write lock of the database for a while; "" for none.

    ``own`` are the processes that may. Blocks a third of a second where another one holds it.
    """
    if not (found := _writers(path) - own):
        return ""
    time.sleep(_PAUSE_SECONDS)
    stays = found & _writers(path)
    return next((f"{_name(pid)} ({pid})" for pid in sorted(stays)), "")


def _writers(path: Path) -> set[int]:
    try:
        inode = path.with_name(f"{path.name}-shm").stat().st_ino
        lines = _LOCKS.read_text().splitlines()
    except OSError:  # another system, or no log: nobody writes
        return set()
    # "1: POSIX  ADVISORY  WRITE 4121 fd:01:131 120 120"
    rows = [line.split() for line in lines if "->" not in line]
    return {
        int(row[4])
        for row in rows
        if len(row) == 8
        and row[3] == "WRITE"
        and row[5].rpartition(":")[2] == str(inode)
        and int(row[6]) <= _WRITE_BYTE
        and (row[7] == "EOF" or int(row[7]) >= _WRITE_BYTE)
    }


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() or "a program"
    except OSError:
        return "a program"
