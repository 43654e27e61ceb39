"""A bound on the processes of all workers together, by a control group, for root on older kernels.

Root has no limit of its own, and kernels before 6.14 bound no single namespace. The template and all it
starts are put into one group; a single worker's many processes are found and ended by the daemon.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from agents.worker.syscalls import LINUX

_PREFIX = "rappd-workers-"


def impose(processes: int) -> str:
    """Put this process, and all it will start, into a new group of at most ``processes``.

    Returns why that is not possible here, "" when done.
    """
    parent = _writable_parent()
    if parent is None:
        return "no writable control group for processes"
    _clear(parent)
    group = parent / f"{_PREFIX}{os.getpid()}"
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(processes))
        (group / "cgroup.procs").write_text("0")
    except OSError as problem:
        with contextlib.suppress(OSError):
            group.rmdir()
        return problem.strerror or str(problem)
    return ""


def clear() -> None:
    """Remove the groups of templates that have ended."""
    parent = _writable_parent() if LINUX else None
    if parent is not None:
        _clear(parent)


def _writable_parent() -> Path | None:
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        mounted = Path(fields[4])
        for _, controllers, path in own:
            below = mounted / path.lstrip("/")
            if kind == "cgroup" and "pids" in options and "pids" in controllers.split(","):
                return _if_writable(below)
            if kind == "cgroup2" and not controllers:
                # a version 2 group with processes cannot have groups below: stand beside it
                for candidate in (below, *below.parents):
                    if candidate.is_relative_to(mounted) and _passes_on_pids(candidate):
                        return _if_writable(candidate)
    return None


def _passes_on_pids(group: Path) -> bool:
    try:
        return "pids" in (group / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _if_writable(group: Path) -> Path | None:
    return group if os.access(group, os.W_OK) else None


def _clear(parent: Path) -> None:
    for group in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(_PREFIX)).exists():
            with contextlib.suppress(OSError):
                group.rmdir()
