"""The filter of system calls that every worker runs under: a classic BPF program, and how it is loaded.

The kernel runs the program at each system call of the worker and of all that it starts. It is there for
what file rules and missing capabilities do not close: sockets that read other programs' packets, calls
that reach into other processes, kernel interfaces that agents have no use for. Calls that need a
capability of the whole machine (modules, clocks, reboot, swap, quotas) are no part of it: workers have no
such capability, nor does a user namespace that they make give them one.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.runtimes.python.sandbox import syscalls

# linux/audit.h: the ELF machine, with bits for 64 bit words and little endian. A big-endian system of the
# same family has another value and other word order, hence no filter.
_AARCH64, _ARM, _RISCV64, _X86_64 = 0xC000_00B7, 0x4000_0028, 0xC000_00F3, 0xC000_003E
_X32_BIT = 0x4000_0000
# Calls of x32 that x86-64 kernels before 5.4 take without the bit as well (ptrace is 521).
_X32_FIRST, _X32_LAST = 512, 547

# ENOSYS, as on a kernel without them: libraries then take the older way. io_uring would open sockets past
# this filter; the arguments of clone3 lie in memory, where no filter sees them; bpf, userfaultfd and
# perf_event_open are for watching and attacking kernels; keys of the account are none of an agent's.
_UNKNOWN = "clone3 io_uring_setup io_uring_enter io_uring_register bpf userfaultfd perf_event_open keyctl"
_UNKNOWN += " add_key request_key"
# EPERM. The first line reaches into other processes: their memory, descriptors and objects. The others are
# capabilities over a mount namespace, which a user namespace of the agent's own gives back to it: with them
# a file system could be mounted over what programs trust. chroot stays: browsers shut themselves in with it.
_FORBIDDEN = "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp"
_FORBIDDEN += " mount umount2 pivot_root open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick"
_FORBIDDEN += " mount_setattr open_by_handle_at"
# Memory, queues and semaphores that all programs of the account find by a number or a name, where they are not a worker's own.
_SHARED_OBJECTS = (
    " shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open mq_unlink"
)
# Their first argument is a process; 0 is the caller. What only reads is allowed for every process.
_OF_A_PROCESS = "sched_setaffinity sched_setscheduler sched_setparam sched_setattr"

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _AF_PACKET, _AF_XDP = 1, 2, 10, 16, 17, 44
_SOCK_RAW, _SOCK_PACKET, _SOCK_TYPES = 3, 10, 15  # the kernel keeps flags above these four bits
_PRIO_USER, _IOPRIO_WHO_USER = 2, 3

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _ERRNO = 0x7FFF_0000, 0x0005_0000
_LONGEST_JUMP = 255

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand: ``struct sock_filter``."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A kind of processor: the kernel's number for it, and those of the calls that the filter names."""

    audit: int
    calls: dict[str, int]


_CALLS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


def _column(number: int) -> dict[str, int]:
    return {**{name: row[number] for name, row in _CALLS["apart"].items()}, **_CALLS["everywhere"]}


ARCHITECTURES = {
    "x86_64": Architecture(_X86_64, _column(0)),
    "aarch64": Architecture(_AARCH64, _column(1)),
    "riscv64": Architecture(_RISCV64, _column(1)),
    "arm": Architecture(_ARM, _column(2)),
}


def architecture() -> Architecture | None:
    """Returns the architecture of this process, which on a 64-bit kernel may be a 32-bit one; None for one without a table."""
    wide = struct.calcsize("P") == 8
    machine = platform.machine()
    if machine in ("armv6l", "armv7l", "armv8l") or (machine == "aarch64" and not wide):
        machine = "arm"
    found = ARCHITECTURES.get(machine)
    return found if found is not None and wide == (machine != "arm") else None


@lru_cache
def missing() -> str:
    """The reason why no filter can be loaded here; "" when it can."""
    if not syscalls.LINUX:
        return "this system has no such filter"
    if architecture() is None:
        return f"there is no table of system calls for {platform.machine()}"
    try:
        syscalls.prctl(_PR_SET_SECCOMP, _MODE_FILTER, 0)
    except OSError as problem:
        # A kernel that has filters tries to read the program at address 0.
        return "" if problem.errno == errno.EFAULT else "the kernel has no such filter"
    return ""


ANY, INTERNET, PAIRS = "any", "internet", "pairs"
"""Kinds of sockets that a filter leaves: all but those that read other programs' packets; those of the internet, without
files, Bluetooth, virtual machines and the like; none. Pairs within a program are left by each."""
_FAMILIES: dict[str, tuple[int, ...]] = {INTERNET: (_AF_INET, _AF_INET6, _AF_NETLINK), PAIRS: ()}


def install(*, shared_processes: bool, sockets: str = ANY) -> None:
    """Filter the calls of this process and of all that it will start, for good. Needs ``no_new_privs``.

    ``shared_processes``: it sees the numbers of processes that are not its own. ``sockets``: the kinds left. Nothing happens where
    ``missing`` has a reason. Raises OSError.
    """
    if lines := encoded(shared_processes=shared_processes, sockets=sockets):
        text = ctypes.create_string_buffer(lines, len(lines))
        header = ctypes.create_string_buffer(struct.pack("HP", len(lines) // 8, ctypes.addressof(text)))
        syscalls.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header))


@lru_cache
def encoded(*, shared_processes: bool, sockets: str = ANY) -> bytes:
    """The filter of this machine as the kernel takes it, b"" for none. Remembered: ask before forking."""
    kind = architecture()
    if kind is None or missing():
        return b""
    lines = program(kind, shared_processes=shared_processes, sockets=sockets)
    return b"".join(struct.pack("=HBBI", *one) for one in lines)


def program(kind: Architecture, *, shared_processes: bool, sockets: str = ANY) -> list[Instruction]:
    """The filter for ``kind``; with ``shared_processes`` calls may name no other process, either. ``sockets``: those that are left."""
    calls = kind.calls
    unknown = _refuse(errno.ENOSYS)
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), *_unless(kind.audit, [unknown]), (_LOAD, 0, 0, _NUMBER)]
    if kind.audit == _X86_64:
        lines += [(_AT_LEAST, 0, 1, _X32_BIT), unknown]
        lines += [(_AT_LEAST, 0, 2, _X32_FIRST), (_AT_LEAST, 1, 0, _X32_LAST + 1), unknown]
    for name in ("socket", "socketpair"):
        families = _FAMILIES.get(sockets)
        if name == "socketpair" and families is not None:
            families = (_AF_UNIX,)
        lines += _when(calls[name], [*_check_family(families), *_check_socket()])
    if shared_processes:
        lines += _when(calls["prlimit64"], _check_limits())
        lines += _when(calls["setpriority"], _check_priority(_PRIO_USER))
        lines += _when(calls["ioprio_set"], _check_priority(_IOPRIO_WHO_USER))
        for name in _OF_A_PROCESS.split():
            lines += _when(calls[name], [_argument(0), *_unless(0, [_refuse(errno.EPERM)]), _allow()])
    shared = _SHARED_OBJECTS if shared_processes and sockets != ANY else ""
    for names, number in ((_FORBIDDEN + shared, errno.EPERM), (_UNKNOWN, errno.ENOSYS)):
        for name in names.split():
            lines += _when(calls[name], [_refuse(number)])
    return [*lines, _allow()]


def _check_family(families: tuple[int, ...] | None) -> list[Instruction]:
    """Sockets of other families than these are refused; None leaves all."""
    if families is None:
        return []
    skip = [(_EQUAL, len(families) - index, 0, family) for index, family in enumerate(families)]
    return [_argument(0), *skip, _refuse(errno.EACCES)]


def _check_socket() -> list[Instruction]:
    """Sockets that read other programs' packets.

    The kernel makes a packet socket of SOCK_PACKET in AF_INET. AF_NETLINK knows SOCK_RAW as well, and every
    look-up of a name opens one.
    """
    refused = _refuse(errno.EPERM)
    return [
        _argument(0),
        *(instruction for family in (_AF_PACKET, _AF_XDP) for instruction in _when(family, [refused])),
        _argument(1),
        (_AND, 0, 0, _SOCK_TYPES),
        *_when(_SOCK_PACKET, [refused]),
        *_unless(_SOCK_RAW, [_allow()]),
        _argument(0),
        *(instruction for family in (_AF_INET, _AF_INET6) for instruction in _when(family, [refused])),
        _allow(),
    ]


def _check_limits() -> list[Instruction]:
    """Limits of other processes may be read: without new ones, which is an address of two words."""
    reads = _when(0, [_argument(2, high=True), *_when(0, [_allow()])])
    return [_argument(0), *_when(0, [_allow()]), _argument(2), *reads, _refuse(errno.EPERM)]


def _check_priority(whole_account: int) -> list[Instruction]:
    """The call's own process or group; ``whole_account`` with 0 means the daemon as well."""
    refused = _refuse(errno.EPERM)
    return [_argument(0), *_when(whole_account, [refused]), _argument(1), *_unless(0, [refused]), _allow()]


def _argument(index: int, *, high: bool = False) -> Instruction:
    """Load a word of an argument. Of an ``int`` the kernel reads the low one alone, and so must the filter."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index + (4 if high else 0))


def _when(value: int, body: list[Instruction]) -> list[Instruction]:
    return [(_EQUAL, 0, _length(body), value), *body]


def _unless(value: int, body: list[Instruction]) -> list[Instruction]:
    return [(_EQUAL, _length(body), 0, value), *body]


def _length(body: list[Instruction]) -> int:
    assert len(body) <= _LONGEST_JUMP, "a jump is one byte"
    return len(body)


def _refuse(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)
