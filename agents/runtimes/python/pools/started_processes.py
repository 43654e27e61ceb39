"""Processes that workers started, read from /proc: who descends from whom."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from agents.runtimes.python.sandbox.syscalls import LINUX

_ATTEMPTS = 5
_LONGEST_LINE = 1000
_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def is_worker_process(pid: int, zygote_pid: int) -> bool:
    """True when ``pid`` is the zygote, a worker, or anything one of them started, orphans included.

    A process that cannot be looked up counts as one: the others are granted something.
    (Orphans of workers are adopted by the worker or the zygote, so they keep descending from it. On
    macOS nobody adopts them and they are not recognised.)
    """
    for _ in range(_ATTEMPTS):
        seen = pid
        for _ in range(_LONGEST_LINE):
            if seen == zygote_pid:
                return True
            if seen <= 1:
                return False
            above = _parent(seen)
            if above is None:
                break  # ended while we looked: its children have a new parent now, so look again
            seen = above
        if seen == pid:
            return True
    return True


def descendants(pid: int, at_most: int = 1 << 30) -> list[int]:
    """The processes below ``pid``, nearest first; stops once it has found ``at_most``."""
    below = _listed_children if _LISTS_CHILDREN else _ScannedChildren()
    found: list[int] = []
    ahead = [pid]
    while ahead and len(found) < at_most:
        nearest = below(ahead.pop())
        found += nearest
        ahead += nearest
    return found


def children(pid: int) -> list[int]:
    """The processes whose parent is ``pid``, ended but not yet collected ones included."""
    return _listed_children(pid) if _LISTS_CHILDREN else _ScannedChildren()(pid)


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_bytes().split())
    except OSError:
        return found  # it ended meanwhile
    return found


def _parent(pid: int) -> int | None:
    if not LINUX:
        from agents.programs import programs  # rarely needed, and every worker would pay for it

        answer = programs.run(["ps", "-o", "ppid=", "-p", str(pid)]).text.strip()
        return int(answer) if answer else None
    try:
        # the name in parentheses may hold anything, also parentheses
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return None


class _ScannedChildren:
    def __init__(self) -> None:
        self._below: dict[int, list[int]] = defaultdict(list)
        for entry in Path("/proc").iterdir() if LINUX else ():
            if entry.name.isdigit() and (above := _parent(int(entry.name))) is not None:
                self._below[above].append(int(entry.name))

    def __call__(self, pid: int) -> list[int]:
        return self._below.get(pid, [])
