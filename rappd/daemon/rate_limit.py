"""Rate limits for sign-in, import and failed authentication."""

from __future__ import annotations

import time

from envelopes.errors import ReportableError


class RateLimitedError(ReportableError):
    """Asked too often."""

    code = "too_many"
    status = 429


class RateLimit:
    """``count`` tries per ``seconds``, for each key apart; ``/chat`` on loopback never has one."""

    def __init__(self, count: int, seconds: float) -> None:
        self._count = count
        self._seconds = seconds
        self._tries: dict[str, list[float]] = {}

    def take(self, key: str = "") -> None:
        """Counts one try. Raises ``RateLimitedError`` when the key has used its share."""
        now = time.monotonic()
        tries = [at for at in self._tries.get(key, ()) if now - at < self._seconds]
        if len(tries) >= self._count:
            wait = int(self._seconds - (now - tries[0])) + 1
            self._tries[key] = tries
            raise RateLimitedError("That was tried too often.", do=f"Wait {wait} s.")
        tries.append(now)
        self._tries[key] = tries
        if len(self._tries) > 1000:
            self._tries = {
                known: times
                for known, times in self._tries.items()
                if times and now - times[-1] < self._seconds
            }

    def give_back(self, key: str = "") -> None:
        """Counts the latest try no more: it was no failure."""
        if tries := self._tries.get(key):
            tries.pop()
