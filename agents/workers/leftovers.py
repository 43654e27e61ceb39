"""Threads and processes that a call left behind in its worker, as the kernel counts them."""

from __future__ import annotations

import os
from pathlib import Path

from agents.workers.process_tree import children
from agents.workers.syscalls import LINUX

_LINKS_WITH_ONE_THREAD = 3  # of /proc/PID/task: two as any folder, and one for each thread
_READ_BYTES = 4096


class LeftoverCheck:
    """Looks at one worker through descriptors of its ``/proc`` entries, so that a later process with the same number is never taken for it.

    Nothing is found on systems without ``/proc``.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._tasks = _open(f"/proc/{pid}/task", os.O_RDONLY | os.O_DIRECTORY) if LINUX else -1
        self._children = _open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY) if LINUX else -1

    def find(self) -> str:
        """``"2 threads"`` or ``"3 processes"``; "" for none. Ended children do not count."""
        if self._tasks < 0:
            return ""
        try:
            threads = os.fstat(self._tasks).st_nlink - _LINKS_WITH_ONE_THREAD
            if threads > 0:
                return _counted(threads, "thread")
            if self._children >= 0 and not os.pread(self._children, 1, 0):
                return ""
        except OSError:
            return ""  # it ended, which is noticed elsewhere
        living = sum(not _has_ended(pid) for pid in children(self._pid))
        return f"{living} process{'es' * (living > 1)}" if living else ""

    def close(self) -> None:
        """Close the descriptors. Idempotent."""
        for fd in (self._tasks, self._children):
            if fd >= 0:
                os.close(fd)
        self._tasks = self._children = -1


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}"


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return True


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError:
        return -1
