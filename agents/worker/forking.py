"""Forking a process into namespaces of its own, so that the caller is its parent."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from typing import NoReturn

from agents.worker import syscalls
from agents.worker.namespaces import map_own_account


def fork(flags: int, entry: Callable[[], None]) -> int:
    """Fork, run ``entry`` in the child inside new namespaces, and return the child's process id.

    ``flags`` are CLONE_NEW* of ``unshare``; 0 is a plain fork. A process enters a new process namespace
    only by being born into it, so one in the middle unshares, forks and ends; the caller, which must have
    called ``adopt_orphans``, inherits the child before ``entry`` starts. Raises OSError.
    """
    if not flags:
        child = os.fork()
        if child == 0:
            _run(entry)
        return child
    report_out, report_in = os.pipe()
    start_out, start_in = os.pipe()
    try:
        middle = os.fork()
        if middle == 0:
            _unshare_and_fork(flags, entry, report_in, start_out)
        answer = os.read(report_out, 500).decode()
        os.waitpid(middle, 0)
        kind, _, rest = answer.partition(" ")
        if kind != "born":
            raise OSError(int(kind or 0), rest or "it ended while being started")
        os.write(start_in, b".")
        return int(rest)
    finally:
        for fd in (report_out, report_in, start_out, start_in):
            os.close(fd)


def _unshare_and_fork(flags: int, entry: Callable[[], None], report: int, start: int) -> NoReturn:
    uid, gid = os.getuid(), os.getgid()
    try:
        syscalls.unshare(flags)
        if flags & syscalls.CLONE_NEWUSER:
            map_own_account(uid, gid)
        child = os.fork()
    except OSError as problem:
        os.write(report, f"{problem.errno} {problem.strerror}".encode()[:500])
        os._exit(1)
    if child == 0:
        if os.read(start, 1):  # the one in the middle is gone, the caller is the parent now
            _run(entry)
        os._exit(1)
    os.write(report, f"born {child}".encode())
    os._exit(0)


def _run(entry: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        entry()
        code = 0
    except BaseException:  # noqa: BLE001 - the child must never return into the caller's own loop
        traceback.print_exc()
    finally:
        os._exit(code)
