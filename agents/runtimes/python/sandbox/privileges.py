"""Drops privileges: those of workers, and the daemon's readability by other processes."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agents.runtimes.python.sandbox import syscalls
from agents.runtimes.python.sandbox.syscalls import LINUX

# In a user namespace these only count for files of the accounts that exist in there. Where user namespaces
# are off they count for the whole machine, so that every one has a reason:
_KEPT_BY_ROOT = {
    "DAC_OVERRIDE": 1,  # workspaces of another account; files whose mode forbids even their owner
    "FOWNER": 3,  # modes and times of files in such a workspace
}
# Gone are, above all, NET_RAW (the operator's session on the loopback), SYS_ADMIN (unmounting), SYS_PTRACE and
# DAC_READ_SEARCH (other processes, files by handle), MKNOD and SYS_RAWIO (the raw disk), SYS_RESOURCE (lifting
# limits), SYS_MODULE, SYS_BOOT, BPF, PERFMON; SETUID, SETGID and CHOWN, by which root becomes any account; KILL,
# which reaches processes of every account; NET_BIND_SERVICE, by which an agent would stand in for a service.
_CAPABILITY_VERSION_3 = 0x2008_0522
_HIGHEST_CAPABILITY = 63
_SYS_ADMIN = 21
_AMBIENT_CLEAR_ALL = 4


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def protect_process() -> None:
    """Keep other processes of the same account out of this one's memory, environment and files in /proc."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)


def protect_daemon() -> None:
    """Keep other processes of the same account out of this one's memory, environment and files in /proc.

    Call once at start, before keys are loaded. Nothing happens where the system knows no such switch.
    """
    if LINUX:
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)


def let_the_daemon_go_on() -> None:
    """Do not interrupt the daemon each time it hands over a request (Linux only).

    A batch process starts as soon as its core is free. Where daemon and workers share one core, the
    daemon then hands over all it has before the first is begun: a sixth of the switches between them.
    """
    if LINUX:
        with suppress(OSError):  # a container may forbid it; then it is only slower
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


@contextmanager
def first_in_line() -> Iterator[None]:
    """Runs this thread before all others for a moment, where its account may.

    Ending processes that leave no processor free must not wait for those processes to take
    turns.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):  # only root may; for others the crowd is bounded by their account's limit
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def die_with_parent() -> None:
    """Be killed when the thread that started this process ends (Linux only)."""
    if LINUX:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def outlive_parent() -> None:
    """Undo ``die_with_parent``, for a process that has things to do when that happens."""
    if LINUX:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended (Linux only)."""
    if LINUX:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


def leave_session_keyring() -> None:
    """Leave the keys behind that a login, or the service manager, gave to this session (Linux only)."""
    if LINUX:
        with suppress(OSError):  # a kernel without keys, or a container that forbids asking for them
            syscalls.join_session_keyring()


def narrow_bounds() -> None:
    """Make it impossible to regain more than harmless capabilities by exec, for all future children too.

    What this process has now it keeps. A fresh user namespace undoes this.
    """
    if not LINUX or not _bounds_include(_SYS_ADMIN):
        return
    kept = _kept()
    syscalls.drop_from_bounds(number for number in range(_HIGHEST_CAPABILITY + 1) if not kept >> number & 1)


def give_up_privileges() -> None:
    """No new privileges by exec, and only harmless capabilities left, for this process and its children."""
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    narrow_bounds()
    kept = _kept()
    try:
        syscalls.prctl(syscalls.PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    except OSError as problem:
        if problem.errno != 22:  # EINVAL: a kernel before 4.3, which has none
            raise
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; low words, then high words
    syscalls.capget(header, sets)
    for index in range(6):
        half = kept >> (32 * (index // 3)) & 0xFFFF_FFFF
        sets[index] = 0 if index % 3 == 2 else sets[index] & half
    syscalls.capset(header, sets)


def _kept() -> int:
    return sum(1 << number for number in _KEPT_BY_ROOT.values()) if os.geteuid() == 0 else 0


def _bounds_include(number: int) -> bool:
    try:
        return syscalls.prctl(syscalls.PR_CAPBSET_READ, number) == 1
    except OSError:
        return False
