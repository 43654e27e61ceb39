"""Memory that a process and all below it take, read from /proc, where no control group counts it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from agents.workers.process_tree import descendants

_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512  # bytes, the unit of st_blocks


def memory_of(pid: int, limit: int) -> int:
    """Bytes that ``pid`` and all processes below it take: their own memory, files without a name, and the
    private /dev/shm. Memory that several of them share counts once; that is only measured when the sum
    of all is over ``limit``."""
    pids = [pid, *descendants(pid)]
    unnamed = _unnamed_files(pids) + _private_shared_memory(pid)
    resident = sum(map(_resident, pids))
    if resident + unnamed <= limit:
        return resident + unnamed
    own, shared = 0, 0
    for one in pids:
        parts = _proportional(one)
        own += parts.get("Pss_Anon", 0)
        shared += parts.get("Pss_Shmem", 0)
    return own + max(shared, unnamed)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0  # it ended meanwhile


def _unnamed_files(pids: Iterable[int]) -> int:
    """Bytes in files made by ``memfd_create`` that these processes have open."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(entry.path).startswith("/memfd:"):
                        told = os.stat(entry.path)
                        found[told.st_dev, told.st_ino] = told.st_blocks * _BLOCK
    return sum(found.values())


def _private_shared_memory(pid: int) -> int:
    path = f"/proc/{pid}/root/dev/shm"
    try:
        if os.stat(path).st_dev == os.stat("/dev/shm").st_dev:  # noqa: S108
            return 0  # the machine's: others have files there
        told = os.statvfs(path)
    except OSError:
        return 0
    return (told.f_blocks - told.f_bfree) * told.f_frsize


def _proportional(pid: int) -> dict[str, int]:
    found = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, _, rest = line.partition(":")
            found[name] = int(rest.split()[0]) * 1024
    return found
