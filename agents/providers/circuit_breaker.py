"""Rest for a model that failed, so that not every turn waits for its silence."""

from __future__ import annotations

import time
from collections.abc import Callable


class CircuitBreaker:
    """Closed at first. A failure opens it for ``pause`` seconds; then one call at a time may try.

    Who was let in says how it went: ``answered``, ``failed``, or ``dropped`` when nothing can be
    said (cancelled, or the fault was the request's own).
    """

    def __init__(self, pause: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause
        self._clock = clock
        self._opens_at: float | None = None
        self._trying = False

    @property
    def closed(self) -> bool:
        return self._opens_at is None

    def lets(self) -> bool:
        """True when a call may go to the model now; counts as the trial when one is due."""
        if self._opens_at is None:
            return True
        if self._trying or self._clock() < self._opens_at:
            return False
        self._trying = True
        return True

    def answered(self) -> None:
        self._opens_at = None
        self._trying = False

    def failed(self) -> None:
        self._opens_at = self._clock() + self._pause
        self._trying = False

    def dropped(self) -> None:
        self._trying = False
