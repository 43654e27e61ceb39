"""Forking a process straight into namespaces of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from agents.runtimes.python.sandbox import syscalls

_SYS_CLONE3 = 435
_CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x0020_0000, 0x0100_0000
_MOST_ACCOUNTS = 340  # user_namespaces(7)


class _CloneArguments(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls")
    )


@dataclass(frozen=True, slots=True)
class Accounts:
    """Numbers of users and groups that a user namespace has, beside root's; each is the same outside."""

    users: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()


def fork(flags: int, entry: Callable[[], None], accounts: Accounts | None = None) -> int:
    """Fork, run ``entry`` in the child inside new namespaces, and return the child's process id.

    ``flags`` are CLONE_NEW* values; 0 is a plain fork. The child ends when ``entry`` returns or raises. The
    caller must have one thread. ``accounts``: root and these exist in the new user namespace; for None the
    child names its own account itself. Raises OSError.
    """
    if accounts is None:
        child = _clone(flags) if flags else os.fork()
        if child == 0:
            _live(entry)
        return child
    named, naming = os.pipe()
    try:
        child = _clone(flags)
        if child == 0:
            os.close(naming)
            go_on = os.read(named, 1)  # nothing when the parent has ended
            os.close(named)
            _live(entry if go_on else _give_up)
        try:
            _name_accounts(child, accounts)
            os.write(naming, b".")
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        return child
    finally:
        os.close(named)
        os.close(naming)


def _name_accounts(child: int, accounts: Accounts) -> None:
    """More than one account can only be named from outside of the namespace."""
    _write(f"/proc/{child}/setgroups", "deny")
    for name, numbers in (("uid_map", accounts.users), ("gid_map", accounts.groups)):
        wanted = sorted({0, *numbers})[:_MOST_ACCOUNTS]
        try:
            _write(f"/proc/{child}/{name}", "".join(f"{number} {number} 1\n" for number in wanted))
        except OSError:  # one that this namespace does not have itself
            _write(f"/proc/{child}/{name}", "0 0 1\n")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _give_up() -> None:
    os._exit(1)


def _live(entry: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        entry()
        code = 0
    except BaseException:  # noqa: BLE001 - the child must never return into the caller's own loop
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _clone(flags: int) -> int:
    """``os.fork`` with namespaces.

    A process namespace can only be entered by birth, and a second fork, which unsharing would need, costs as
    much as all the rest of a worker's start.

    As ``fork`` of the C library does, the kernel is told where the library keeps the thread's number.
    """
    arguments = _CloneArguments(
        flags=flags | _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID,
        child_tid=syscalls.thread_number_address(),
        exit_signal=signal.SIGCHLD,
    )
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    child = int(_system_call(_SYS_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments)))
    if child == 0:
        python.PyOS_AfterFork_Child()
        return 0
    number = ctypes.get_errno()
    python.PyOS_AfterFork_Parent()
    if child < 0:
        raise OSError(number, f"clone: {os.strerror(number)}")
    return child


# Through PyDLL, so that the interpreter's lock is held across the fork, as os.fork holds it.
_system_call = ctypes.PyDLL(None, use_errno=True).syscall
_system_call.argtypes = (ctypes.c_long, ctypes.c_void_p, ctypes.c_size_t)
_system_call.restype = ctypes.c_long
