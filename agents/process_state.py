"""Putting back what a call changed in its process, before the next call comes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

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
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


@contextlib.contextmanager
def restored(folder: str) -> Iterator[None]:
    """Undo, after the block, what it did to the working folder (which becomes ``folder``), umask, environment,
    signal handlers, timers, tracing, standard streams and the default socket timeout.

    What loading a module does stays, since it is not loaded again: load before the block.
    """
    environment = dict(os.environ)
    umask = os.umask(0o022)
    os.umask(umask)
    handlers = [signal.getsignal(number) for number in _SIGNALS]
    trace, profile = sys.gettrace(), sys.getprofile()
    streams = sys.stdin, sys.stdout, sys.stderr
    timeout = socket.getdefaulttimeout()
    try:
        yield
    finally:
        if sys.gettrace() is not trace:
            sys.settrace(trace)
        if sys.getprofile() is not profile:
            sys.setprofile(profile)
        threading.settrace(None)
        threading.setprofile(None)
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        for number, handler in zip(_SIGNALS, handlers, strict=True):
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        os.umask(umask)
        with contextlib.suppress(OSError):  # it may be gone: the next call is told so when it looks
            os.chdir(folder)
        if os.environ != environment:
            _restore_environment(environment)
        sys.stdin, sys.stdout, sys.stderr = streams
        socket.setdefaulttimeout(timeout)


def _restore_environment(wanted: dict[str, str]) -> None:
    for name in [name for name in os.environ if name not in wanted]:
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
