"""Security events: lines of the log that begin with ``security:``, counted for metrics and shown in Activity."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import msgspec

_MARK = "security: "
_KEPT = 100
_LONGEST = 300


class SecurityEvent(msgspec.Struct, frozen=True):
    """``at`` is in milliseconds since 1970."""

    at: int
    text: str


_of_home: ContextVar[object] = ContextVar("security_events", default=None)
"""The home that a task works for: one process may have several open."""


class SecurityEvents(logging.Handler):
    """The security events of one home since its start. Made on the event loop, before its tasks."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """``tell`` gets each as news, on the event loop."""
        super().__init__(logging.WARNING)
        self._tell, self._loop = tell, asyncio.get_running_loop()
        self.count = 0
        self.recent: deque[SecurityEvent] = deque(maxlen=_KEPT)
        _of_home.set(self)
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a line of this home's, on whatever thread it was logged."""
        if _of_home.get() is self and (text := record.getMessage()).startswith(_MARK):
            event = SecurityEvent(int(time.time() * 1000), text.removeprefix(_MARK)[:_LONGEST])
            try:
                self._loop.call_soon_threadsafe(self._add, event)
            except RuntimeError:  # the loop is closed
                return

    def end(self) -> None:
        """Takes no more lines."""
        logging.getLogger().removeHandler(self)

    def _add(self, event: SecurityEvent) -> None:
        self.count += 1
        self.recent.appendleft(event)
        self._tell({"type": "security", "at": event.at, "message": event.text})
