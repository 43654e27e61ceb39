"""Describes in words how a worker ended."""

from __future__ import annotations

import signal

_CRASHES = {
    signal.SIGSEGV: "crashed (segmentation fault)",
    signal.SIGABRT: "crashed (abort)",
    signal.SIGBUS: "crashed (bus error)",
    signal.SIGILL: "crashed (illegal instruction)",
    signal.SIGFPE: "crashed (arithmetic error)",
}


def describe_exit(status: int | None, cpu: float = 0.0, cpu_limit: float = float("inf")) -> str:
    """Describes the end of a worker with ``status`` (an exit code, or minus a signal) after
    ``cpu`` seconds of processor time; None when nobody saw it end."""
    if status is None:
        return "is gone"
    if status >= 0:
        return f"ended itself (exit {status})"
    if -status in _CRASHES:
        return _CRASHES[signal.Signals(-status)]
    if -status in (signal.SIGKILL, signal.SIGXCPU) and cpu >= cpu_limit:
        return "used up its processor time"
    if -status == signal.SIGKILL:
        return "was killed by the kernel (out of memory?)"
    return f"was stopped by signal {-status}"
