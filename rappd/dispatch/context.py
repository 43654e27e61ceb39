"""One record on its way through the dispatcher, and who performs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from agents.providers.provider import Completion, Usage
from envelopes.envelope import Envelope
from envelopes.events import Emit
from rappd.dispatch.rights import Caller
from rappd.store.records import Record, ThreadInfo


class RequestContext(msgspec.Struct):
    """One record on its way through: who called, on which thread, and who listens for progress.

    ``usage`` is what its agents' own model calls came to, once there was one. ``records`` is what was written down
    of it so far: it is written down anew where the event log lost it.
    """

    envelope: Envelope
    caller: Caller
    workspace: str
    emit: Emit | None = None
    usage: Usage | None = None
    records: list[Record | ThreadInfo] = []

    def used(self, completion: Completion) -> None:
        """Counts a model call that an agent made."""
        self.usage = self.usage or Usage()
        self.usage.add(completion)


Handler = Callable[[RequestContext], Awaitable[dict[str, Any]]]
"""Performs a HELP and returns the DONE's data; raises ``ReportableError`` to refuse."""

Repeatable = Callable[[Envelope], bool]
"""Returns True when an interrupted HELP may be performed a second time."""
