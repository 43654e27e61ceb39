"""Errors of agent code in workers, and the end of a worker in words."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from agents.errors import AgentError
from agents.runtimes.python.sandbox.needs import Use


class AgentRaisedError(AgentError):
    """Agent code raised an exception.

    ``kind``: its type's name. ``message``: its own text. ``line``: the innermost line in the
    workspace, 0 when unknown. ``trace``: the traceback, for the transcript. ``uses``: what the call asked for,
    where its needs are declared.
    """

    code = "agent_raised"

    def __init__(
        self, kind: str, message: str, line: int = 0, trace: str = "", uses: Sequence[Use] = ()
    ) -> None:
        place = f" (line {line})" if line else ""
        super().__init__(f"{kind}: {message}{place}" if message else f"{kind}{place}")
        self.kind = kind
        self.message = message
        self.line = line
        self.trace = trace
        self.uses = uses


_CRASHES = {
    signal.SIGSEGV: "crashed (segmentation fault)",
    signal.SIGABRT: "crashed (abort)",
    signal.SIGBUS: "crashed (bus error)",
    signal.SIGILL: "crashed (illegal instruction)",
    signal.SIGFPE: "crashed (arithmetic error)",
}


def describe_exit(status: int | None, cpu: float = 0.0, cpu_limit: float = float("inf")) -> str:
    """Describes the end of a worker; None when nobody saw it end.

    ``status`` is an exit code, or minus a signal; ``cpu`` seconds of processor time.
    """
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
