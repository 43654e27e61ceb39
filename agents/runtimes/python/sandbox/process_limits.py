"""Sets the limits of a worker process: memory, processor time, files, processes."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

_CPU_GRACE = 2  # seconds between the signal an agent could catch and the one it cannot
_COUNT_SECONDS = 10.0
_counted: tuple[float, int] = (0.0, 0)


def apply(limits: dict[str, Any], *, shared_account: int | None) -> None:
    """Set this process's limits from ``{memory, cpu_seconds, open_files, processes}``, and no core files.

    ``shared_account`` is how many processes the account already has, where the kernel counts them
    together with the worker's (no user namespace of its own); None where it does not.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_AS, limits["memory"])
    _lower(resource.RLIMIT_NOFILE, limits["open_files"])
    _lower(resource.RLIMIT_CPU, limits["cpu_seconds"], grace=_CPU_GRACE)
    if sys.platform == "linux":
        _lower(resource.RLIMIT_NPROC, limits["processes"] + (shared_account or 0))
        with contextlib.suppress(OSError):  # when memory runs out, the kernel should end a worker first
            Path("/proc/self/oom_score_adj").write_text("500")


def processes_of_account() -> int:
    """The number of processes and threads of this account; counted anew every 10 seconds at most."""
    global _counted
    now = time.monotonic()
    if now - _counted[0] > _COUNT_SECONDS:
        _counted = (now, sum(_threads(entry) for entry in os.scandir("/proc") if entry.name.isdigit()))
    return _counted[1]


def _threads(entry: os.DirEntry[str]) -> int:
    try:
        if entry.stat().st_uid != os.getuid():
            return 0
        return sum(1 for _ in os.scandir(f"{entry.path}/task"))
    except OSError:
        return 0  # it ended meanwhile


def _lower(kind: int, value: int, grace: int = 0) -> None:
    _, hard = resource.getrlimit(kind)
    ceiling = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses some; a limit is a backstop
        resource.setrlimit(kind, (min(value, ceiling), ceiling))
