"""Participants of a session on other machines: invited by the owner, by name, from what is paired or written down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NotRequired, Protocol, TypedDict

import msgspec
import orjson

from envelopes.envelope import NOTE
from rappd.store.records import Event

INVITED, LEFT, BACKEND = "invited", "left", "backend"


class Guest(msgspec.Struct, frozen=True):
    """``peer`` is a paired machine's fingerprint, ``agent`` or ``twin`` one of its own, both "" its brainstem.

    ``written`` is the name of a published brainstem that was written down, in place of both.
    """

    peer: str = ""
    agent: str = ""
    written: str = ""
    twin: str = ""


class InvitableRow(TypedDict):
    """A machine, or an agent elsewhere, that could be invited; ``plain``: asked over plain http."""

    name: str
    plain: bool


class ParticipantRow(TypedDict):
    """An assistant that can be asked in a session; guests have a ``presence``."""

    name: str
    role: str
    presence: NotRequired[str]


class GuestGateway(Protocol):
    """Reaches other machines for sessions."""

    recipient: str
    """The id to which the dispatcher sends what guests are asked."""

    async def find(self, name: str) -> Guest:
        """The guest that the owner names: ``Weather@pi``, ``Ink@pi``, ``pi``, or what was written down. Raises ``NotFoundError``."""
        ...

    async def possible(self) -> list[InvitableRow]:
        """The machines and agents that could be invited, as ``{name, plain}``; ``plain``: asked over plain http."""
        ...

    def row(self, guest: Guest) -> ParticipantRow | None:
        """``{name, role, presence}``; None for one that is not paired any more."""
        ...

    def capability(self, guest: Guest) -> str:
        """The capability that asking it takes."""
        ...


class GuestList:
    """The guests of a session, and its backend: the one that answers what is addressed to nobody. The record tells both."""

    def __init__(self) -> None:
        self.invited: list[Guest] = []
        self.backend: Guest | str = ""
        """A guest, or the name of a twin; "" is the brainstem."""

    def take(self, records: Iterable[Event]) -> None:
        """Follows the NOTEs among records."""
        for record in records:
            if record.verb == NOTE:
                data = orjson.loads(record.body)["data"]
                if data.get("kind") in (INVITED, LEFT, BACKEND):
                    self.apply(str(data["kind"]), data)

    def apply(self, kind: str, data: dict[str, Any]) -> None:
        """Follows one NOTE."""
        guest = msgspec.convert(data["guest"], Guest) if data.get("guest") else None
        if kind == BACKEND:
            self.backend = guest or str(data.get("twin") or "")
        elif kind == INVITED and guest is not None and guest not in self.invited:
            self.invited.append(guest)
        elif kind == LEFT and guest in self.invited:
            self.invited.remove(guest)
            self.backend = "" if self.backend == guest else self.backend
