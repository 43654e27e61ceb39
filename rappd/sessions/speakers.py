"""Everybody who speaks in a session, and what one may do in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from envelopes.default_user import DEFAULT_USER_GUID
from rappd.dispatch.rights import DEVICE, Caller
from rappd.tenants.tenant_endpoints import LOOK

SCOPES = {"talk": ("HELP.*", "TIMER"), "listen": ()}
"""Words for people and the capabilities that they stand for."""
WORKFLOWS = DEVICE("WORKFLOW")
"""The right to run workflows."""
OWNER = "Owner"
"""The owner's name in sessions, which no device may have."""


class Speaker(Protocol):
    """Somebody who asks: a device, or the owner at this computer."""

    @property
    def id(self) -> str:
        """The device's id; "" for the owner."""
        ...

    @property
    def name(self) -> str:
        """The name that everybody sees."""
        ...

    @property
    def caps(self) -> tuple[str, ...]:
        """Capability texts of what it may do."""
        ...

    @property
    def user_guid(self) -> str:
        """The user whose memory counts."""
        ...


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner at this computer. In a session with phones, what they said is read by the model, too: no other rights."""

    id: str = ""
    name: str = OWNER
    caps: tuple[str, ...] = (*SCOPES["talk"], WORKFLOWS.scope)
    user_guid: str = DEFAULT_USER_GUID


def caller_of(speaker: Speaker) -> Caller:
    """A speaker as its listener knows it. What is said in a session is never an operator's."""
    return Caller("tether", caps=speaker.caps, device=speaker.id)


def looking_caller_of(speaker: Speaker) -> Caller:
    """The same as it asks: who may start workflows is the owner, or carries a phone of theirs, and may look, too."""
    caller = caller_of(speaker)
    return replace(caller, caps=(*speaker.caps, LOOK)) if WORKFLOWS.admits(caller) else caller
