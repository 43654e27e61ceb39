"""Collecting ended processes that agent code left behind, which would else count against its limit."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import time
from pathlib import Path

from agents.workers.syscalls import LINUX

SECONDS = 1.0
_MANY = 16


class ZombieReaper:
    """The ended children of this process that nobody here will ask about.

    A child that a ``Popen`` still stands for is left to it. Another is collected when it is found ended
    twice, a while apart: agent code may have forked it and be about to wait for it. A crowd is
    collected at once.
    """

    def __init__(self) -> None:
        self._next = 0.0
        self._seen: set[int] = set()

    def collect(self, *, now: bool = False) -> None:
        """Look, at most once a second unless ``now``."""
        if not LINUX:
            return  # elsewhere, orphans go to the system's first process
        moment = time.monotonic()
        if moment < self._next and not now:
            return
        self._next = moment + SECONDS
        try:
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return
        except ChildProcessError:
            return
        ended = {pid for pid in _children() if _has_ended(pid)} - _awaited()
        for pid in ended if len(ended) > _MANY else ended & self._seen:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._seen = ended


def _children() -> set[int]:
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            found.update(map(int, (thread / "children").read_bytes().split()))
    return found


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False  # the numbers in this /proc are not ours


def _awaited() -> set[int]:
    processes = (one for one in gc.get_objects() if isinstance(one, subprocess.Popen))
    return {process.pid for process in processes if process.returncode is None}
