"""Limits that control groups set: processes of all workers together, memory of each worker.

The memory of a group is all that its processes take: of their own, in files without a name, in shared
memory, of their children. Both versions of control groups are used, where this account may make groups.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from agents.runtimes.python.sandbox import privileges
from agents.runtimes.python.sandbox.syscalls import LINUX

_PREFIX = "rappd-workers-"


def impose(processes: int) -> str:
    """Put this process, and all it will start, into a new group of at most ``processes``.

    Returns why that is not possible here, "" when done.
    """
    parent = _writable_parent("pids")
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
    """Remove the groups of zygotes that have ended."""
    for controller in ("pids", "memory") if LINUX else ():
        parent = _writable_parent(controller)
        if parent is not None:
            _clear(parent)


class MemoryGroups:
    """A control group for the memory of each worker.

    Moving a process into a group takes about ten milliseconds, so that a helper process does it while the
    worker starts. ``open`` makes the groups, where this account may.
    """

    def __init__(self, parent: Path, orders: int, helper: int) -> None:
        self._parent = parent
        self._orders = orders
        self.helper = helper

    @classmethod
    def open(cls) -> MemoryGroups | None:
        """The groups of this process's workers; None where no group can limit memory.

        The caller must have one thread, and keep no descriptor that the helper must not hold.
        """
        parent = _writable_parent("memory")
        if parent is None or not _can_limit(parent):
            return None
        _clear(parent)
        out, orders = os.pipe()
        helper = os.fork()
        if helper == 0:
            os.close(orders)
            try:
                _help(out, parent)
            finally:
                os._exit(0)
        os.close(out)
        return cls(parent, orders, helper)

    def place(self, pid: int, limit: int, processes: int) -> None:
        """Have process ``pid``, and what it will start, take at most ``limit`` bytes.

        Version 2 has one group for both, so that it bounds ``processes`` as well.
        """
        with contextlib.suppress(OSError):  # without its helper a worker is not limited; it still works
            os.write(self._orders, f"{pid} {limit} {processes} {self._group(pid)}\n".encode())

    def exceeded(self, pid: int) -> bool:
        """True when the kernel ended a process of the group of ``pid`` because of its limit."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                for line in (self._group(pid) / name).read_text().splitlines():
                    if line.startswith("oom_kill ") and line.split()[1] != "0":
                        return True
        return False

    def remove(self, pid: int) -> None:
        """Remove the group of a worker that has ended."""
        with contextlib.suppress(OSError):
            self._group(pid).rmdir()

    def _group(self, pid: int) -> Path:
        return self._parent / f"{_PREFIX}{os.getpid()}-{pid}"


def _help(orders: int, parent: Path) -> None:
    """Make a group for each line "pid limit processes group" of ``orders``, until its end."""
    privileges.die_with_parent()
    for entry in list(os.scandir("/proc/self/fd")):
        if int(entry.name) not in (0, 1, 2, orders):
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(int(entry.name))
    with open(orders, encoding="utf-8") as lines:
        for line in lines:
            pid, limit, processes, group = line.rstrip("\n").split(" ", 3)
            with contextlib.suppress(OSError):  # the worker has ended
                _limit(Path(group), limit, processes)
                (Path(group) / "cgroup.procs").write_text(pid)


def _limit(group: Path, limit: str, processes: str) -> None:
    """Make ``group`` with a limit of memory, swap included. Raises OSError."""
    group.mkdir(exist_ok=True)
    if (group / "memory.max").exists():
        (group / "memory.max").write_text(limit)
        more = {"memory.swap.max": "0", "memory.oom.group": "1", "pids.max": processes}
    else:
        (group / "memory.limit_in_bytes").write_text(limit)
        more = {"memory.memsw.limit_in_bytes": limit}
    for name, text in more.items():
        with contextlib.suppress(OSError):  # a kernel that does not count swap, or no bound on processes here
            (group / name).write_text(text)


def _can_limit(parent: Path) -> bool:
    trial = parent / f"{_PREFIX}{os.getpid()}-trial"
    try:
        _limit(trial, str(1 << 30), "max")
        child = os.fork()
        if child == 0:
            try:
                (trial / "cgroup.procs").write_text("0")
            except OSError:
                os._exit(1)
            os._exit(0)
        return os.waitpid(child, 0)[1] == 0
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            trial.rmdir()


def _writable_parent(controller: str) -> Path | None:
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        mounted = Path(fields[4])
        for _, controllers, path in own:
            below = mounted / path.lstrip("/")
            if kind == "cgroup" and controller in options and controller in controllers.split(","):
                return _if_writable(below)
            if kind == "cgroup2" and not controllers:
                # a version 2 group with processes cannot have groups below: stand beside it
                for candidate in (below, *below.parents):
                    if candidate.is_relative_to(mounted) and _passes_on(controller, candidate):
                        return _if_writable(candidate)
    return None


def _passes_on(controller: str, group: Path) -> bool:
    try:
        return controller in (group / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _if_writable(group: Path) -> Path | None:
    return group if os.access(group, os.W_OK) else None


def _clear(parent: Path) -> None:
    for group in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(_PREFIX).partition("-")[0]).exists():
            with contextlib.suppress(OSError):
                group.rmdir()
