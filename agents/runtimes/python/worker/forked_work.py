"""Work on foreign files in forks of a process that runs none itself, so that no file meets what is done for another."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
from collections.abc import Callable

from agents.runtimes.python.sandbox.privileges import protect_process
from agents.runtimes.python.sandbox.syscalls import LINUX

_LENGTH = struct.Struct(">I")
_OWN_PROCESSES = 1  # the process id of a worker that has a process namespace of its own


def in_a_fork(work: Callable[[], bytes], most: int) -> bytes:
    """The result of ``work``, run in a fork of this process; empty where that fails, or gives more than ``most``.

    The fork, and in a process namespace all that it started, is ended before this returns. This process
    keeps others of the same account out of its memory: what ``work`` runs could write there.
    """
    if LINUX:
        protect_process()
    result, into = os.pipe()
    try:
        child = os.fork()
        if not child:
            _live(work, into)
        try:
            return _read(result, child, most)
        finally:
            _end(child)
    finally:
        for fd in (result, into):
            os.close(fd)


def _live(work: Callable[[], bytes], into: int) -> None:
    """The fork's life; foreign code may raise or return anything, and never goes on as this process."""
    try:
        content = work()
        content = _LENGTH.pack(len(content)) + content
        while content:
            content = content[os.write(into, content) :]
    finally:
        os._exit(0)


def _read(result: int, child: int, most: int) -> bytes:
    """One frame. It has a length, since what the child left behind may keep the pipe open."""
    received = bytearray()
    waiting = select.poll()
    waiting.register(result, select.POLLIN)
    while True:
        while not waiting.poll(_LOOK_MS):
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) and not waiting.poll(0):
                return b""
        received += os.read(result, 1 << 16)
        if len(received) < _LENGTH.size:
            continue
        (size,) = _LENGTH.unpack_from(received)
        if size > most:
            return b""
        if len(received) >= _LENGTH.size + size:
            return bytes(received[_LENGTH.size : _LENGTH.size + size])


_LOOK_MS = 5  # between two looks whether the child has ended without a word


def _end(child: int) -> None:
    """End the child, and in a namespace of its own everything else that runs there."""
    alone = LINUX and os.getpid() == _OWN_PROCESSES
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1 if alone else child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1 if alone else child, 0)[0] != child or alone:
            pass
