"""Forking a process straight into namespaces of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from agents.workers import syscalls

_SYS_CLONE3 = 435
_CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x0020_0000, 0x0100_0000


class _CloneArguments(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls")
    )


def fork(flags: int, entry: Callable[[], None]) -> int:
    """Fork, run ``entry`` in the child inside new namespaces, and return the child's process id.

    ``flags`` are CLONE_NEW* values; 0 is a plain fork. The child ends when ``entry`` returns or raises. The
    caller must have one thread. Raises OSError.
    """
    child = _clone(flags) if flags else os.fork()
    if child == 0:
        _live(entry)
    return child


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
