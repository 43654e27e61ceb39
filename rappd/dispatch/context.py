"""One record on its way through the dispatcher: who called, what he may do, and who performs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec

from agents.providers.provider import Completion, Usage
from envelopes.envelope import Envelope
from envelopes.events import Emit
from envelopes.identity.capabilities import covers
from rappd.store.records import Record, ThreadInfo

Spend = Callable[[Envelope], Awaitable[None]]


class Caller(msgspec.Struct, frozen=True):
    """The caller of a request, as its listener authenticated it. Nothing in the request can change it.

    ``operator`` is true for the operator's session and the control socket alone. ``peer`` is the whole
    fingerprint of another machine, ``caps`` what it may do here; None for callers on this machine.
    ``device`` is the id of a phone, ``key`` the public key of the operator's session in a browser.
    ``spend`` counts a HELP against a permission with a limited number of uses; it raises ``ReportableError``.
    """

    listener: str
    operator: bool = False
    peer: str = ""
    caps: tuple[str, ...] | None = None
    spend: Spend | None = None
    device: str = ""
    key: str = ""

    @property
    def principal(self) -> Hashable:
        """Equal for requests of one caller, as far as its listener can tell callers apart."""
        return self.listener, self.operator, self.peer, self.device, self.caps

    def may(self, capability: str) -> bool:
        """True when the caller has this capability. Callers on this machine have all."""
        return self.caps is None or covers(self.caps, capability)


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
