"""Failures of work that was promised earlier, kept until its caller has seen them."""

from __future__ import annotations

from collections import deque

from envelopes.errors import ReportableError

_MOST = 20


class PendingNotices:
    """Sentences for the operator's next turn, with any twin; each is shown once."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque(maxlen=_MOST)

    def add(self, what: str, do: str) -> None:
        """One more to tell: what happened, and what to do next."""
        self._waiting.append(f"{what} — {do}" if do else what)

    def take(self) -> str:
        """All that wait, a line each; "" for none."""
        told = "\n".join(self._waiting)
        self._waiting.clear()
        return told


def failed_later(what: str, name: str, error: Exception) -> tuple[str, str]:
    """(what happened, what to do) when a twin's ``what``, put off until it had answered, failed."""
    told = f"{what[:1].upper()}{what[1:]} was not done after {name} had answered"
    if isinstance(error, ReportableError):
        return f"{told}: {error}", error.do
    return f"{told}; the log says why.", "rappd logs"
