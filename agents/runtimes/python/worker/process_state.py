"""Putting back what a call changed in its process, before the next call comes."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal.getsignal makes an enumeration member of each answer, which takes longer than a call
import contextlib
import fcntl
import operator
import os
import signal
import socket
import sys
import threading
from typing import Any

_SIGNALS = tuple(
    number
    for name in [
        "ALRM",
        "CHLD",
        "HUP",
        "INT",
        "IO",
        "PIPE",
        "PROF",
        "QUIT",
        "TERM",
        "USR1",
        "USR2",
        "VTALRM",
        "WINCH",
    ]
    if (number := getattr(signal, f"SIG{name}", None)) is not None
)
_STREAMS = ("stdin", "stdout", "stderr")
_COPIES_FROM = 200
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class ProcessState:
    """The state of this process that calls of different callers share."""

    def __init__(self, folder: str) -> None:
        """``folder``: the working folder between calls."""
        self._folder = folder
        self._descriptors = [_copy_of(fd) for fd in range(len(_STREAMS))]
        self.note()

    def note(self) -> None:
        """Keeps the present state: what loading a module does stays, since it is not loaded again."""
        self._environ = os.environ
        self._environment = dict(_octets(os.environ))
        self._umask = os.umask(0o022)
        os.umask(self._umask)
        self._handlers = list(map(_signal.getsignal, _SIGNALS))
        self._trace, self._profile = sys.gettrace(), sys.getprofile()
        self._streams = {name: getattr(sys, name) for name in _STREAMS}
        self._timeout = socket.getdefaulttimeout()

    def put_back(self) -> None:
        """Undoes changes of the process's state that a call made since ``note``.

        Covered: working folder, umask, environment, signal handlers, timers, tracing, standard streams and
        the default socket timeout.
        """
        if sys.gettrace() is not self._trace:
            sys.settrace(self._trace)
        if sys.getprofile() is not self._profile:
            sys.setprofile(self._profile)
        threading.settrace(None)
        threading.setprofile(None)
        for timer in _TIMERS:
            _signal.setitimer(timer, 0)
        if any(map(operator.is_not, self._handlers, map(_signal.getsignal, _SIGNALS))):
            _restore_handlers(self._handlers)
        os.umask(self._umask)
        with contextlib.suppress(OSError):  # it may be gone: the next call is told so when it looks
            os.chdir(self._folder)
        os.environ = self._environ  # noqa: B003 - the same object again, where a call put another in its place
        if _octets(os.environ) != self._environment:
            _restore_environment(self._environment)
        self._put_back_streams()
        socket.setdefaulttimeout(self._timeout)

    def _put_back_streams(self) -> None:
        """The streams as they were, opened anew where a call closed one, or its descriptor."""
        for fd, kept in enumerate(self._descriptors):
            try:  # without asking whether it is another: that would take longer
                os.dup2(kept, fd)
            except OSError:
                continue
        for fd, name in enumerate(_STREAMS):
            stream = self._streams[name]
            if stream is None or getattr(stream, "closed", False):  # a file may have put one of its own here
                stream = self._streams[name] = _opened(fd)
                setattr(sys, f"__{name}__", stream)
        sys.stdin, sys.stdout, sys.stderr = self._streams.values()


def _copy_of(fd: int) -> int:
    """A second descriptor, where agent code that closes the first ones does not reach it by chance; -1 for none."""
    with contextlib.suppress(OSError, ValueError):
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _COPIES_FROM)
    return -1


def _opened(fd: int) -> Any:
    mode = "r" if fd == 0 else "w"
    try:
        return os.fdopen(fd, mode, buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    except OSError:
        return None


def _octets(environ: os._Environ[str]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = vars(environ)["_data"]  # to decode them all would take longer than a call
    return found


def _restore_handlers(wanted: list[Any]) -> None:
    for number, handler in zip(_SIGNALS, wanted, strict=True):
        if handler is not None and _signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def _restore_environment(wanted: dict[bytes, bytes]) -> None:
    for name in [name for name in os.environb if name not in wanted]:
        del os.environb[name]
    for name, value in wanted.items():
        if os.environb.get(name) != value:
            os.environb[name] = value
