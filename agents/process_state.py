"""Putting back what a call changed in its process, before the next call comes."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal.getsignal makes an enumeration member of each answer, which takes longer than a call
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
    variables = vars(os.environ)["_data"]  # to decode them all would take longer than a call
    environment = dict(variables)
    umask = os.umask(0o022)
    os.umask(umask)
    handlers = [_signal.getsignal(number) for number in _SIGNALS]
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
            _signal.setitimer(timer, 0)
        for number, handler in zip(_SIGNALS, handlers, strict=True):
            if handler is not None and _signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        os.umask(umask)
        with contextlib.suppress(OSError):  # it may be gone: the next call is told so when it looks
            os.chdir(folder)
        if variables != environment or vars(os.environ)["_data"] is not variables:
            _restore_environment(environment)
        sys.stdin, sys.stdout, sys.stderr = streams
        socket.setdefaulttimeout(timeout)


def _restore_environment(wanted: dict[bytes, bytes]) -> None:
    for name in [name for name in os.environb if name not in wanted]:
        del os.environb[name]
    for name, value in wanted.items():
        if os.environb.get(name) != value:
            os.environb[name] = value
