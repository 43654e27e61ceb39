"""Callers and rights: who asks, as the listener authenticated it, and the one check of what that caller may do.

A right is data: an operation and an endpoint each carry one, lists and pages show it, and ``Right.admits`` alone
compares it with a caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Literal

import msgspec

from envelopes.envelope import Envelope
from envelopes.identity.capabilities import covers

PROGRAM = "program"
"""The listener of callers that are foreign programs with a token, or machines that speak a foreign protocol."""
Spend = Callable[[Envelope], Awaitable[None]]


class Caller(msgspec.Struct, frozen=True):
    """The caller of a request, as its listener authenticated it. Nothing in the request can change it.

    ``operator`` is true for the operator's session and the control socket alone. ``peer`` is the whole
    fingerprint of another machine, ``caps`` what it may do here; None for callers on this machine.
    ``mine``: that machine is of the same owner. ``device`` is the id of a phone, ``key`` the public key of the
    operator's session in a browser.
    ``spend`` counts a HELP against a permission with a limited number of uses; it raises ``ReportableError``.
    """

    listener: str
    operator: bool = False
    peer: str = ""
    caps: tuple[str, ...] | None = None
    spend: Spend | None = None
    device: str = ""
    key: str = ""
    mine: bool = False

    @property
    def principal(self) -> Hashable:
        """Equal for requests of one caller, as far as its listener can tell callers apart."""
        return self.listener, self.operator, self.peer, self.device, self.caps

    @property
    def is_owners(self) -> bool:
        """True for callers on this machine, and machines of the same owner."""
        return self.caps is None or self.mine

    def may(self, capability: str) -> bool:
        """True when the caller has this capability. Callers on this machine have all."""
        return self.caps is None or covers(self.caps, capability)


class Right(msgspec.Struct, frozen=True):
    """The callers who may ask for an operation or call an endpoint. Without one there is neither."""

    kind: Literal["anybody", "owner", "peer", "device", "agent"]
    scope: str = ""
    """The capability that it takes."""
    mine: bool = False
    """Of other machines, only those of the same owner."""

    def admits(self, caller: Caller) -> bool:
        """True for a caller that has the right."""
        if self.kind == "peer":  # first: a turn asks it of every agent
            return caller.caps is None or (caller.may(self.scope) and (caller.mine or not self.mine))
        if self.kind == "device":
            return caller.listener == "tether" and caller.may(self.scope)
        if self.kind == "owner":
            return caller.operator
        # No caller is an agent: the callback of its worker asks.
        return self.kind == "anybody" and caller.caps is None


ANYBODY = Right("anybody")
"""Every caller on this machine."""
OWNER = Right("owner")
AGENT = Right("agent", "structural")
"""Agents that may change structure, in a turn of the operator's."""


def PEER(capability: str, *, mine: bool = False) -> Right:  # noqa: N802 - reads like OWNER in the tables
    """Machines, tokens and phones that have the capability; callers on this machine have all."""
    return Right("peer", capability, mine)


def DEVICE(scope: str) -> Right:  # noqa: N802
    """Phones that have the capability; other machines that have it do not count."""
    return Right("device", scope)
