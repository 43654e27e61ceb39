"""Participants of a session: speakers with their rights, assistants that answer, and names for the ids in records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from envelopes.default_user import DEFAULT_USER_GUID
from rappd.dispatch.rights import DEVICE, Caller
from rappd.errors import NotFoundError
from rappd.sessions.guests import Guest, GuestGateway, GuestList, ParticipantRow
from rappd.store.records import Event
from rappd.tenants.tenant import Tenant
from rappd.tenants.tenant_endpoints import LOOK
from rappd.tenants.tenants import Tenants
from twins.lifecycle.state_index import list_archived, list_purged
from twins.workspace.listing import scan
from twins.workspace.workspace import TwinLayout

SCOPES = {"talk": ("HELP.*", "TIMER"), "listen": ()}
"""Words for people and the capabilities that they stand for."""
WORKFLOWS = DEVICE("WORKFLOW")
"""The right to run workflows."""
OWNER = "Owner"
"""The owner's name in sessions, which no device may have."""


class Speaker(Protocol):
    """The caller in a session: a device, or the owner at this computer."""

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


_KEY_DIGITS = 8
"""Of a twin's key, at the end of its label in an id."""


class Participants:
    """The brainstem and the twins of this machine, and a session's guests. All calls come from the event loop."""

    def __init__(self, tenants: Tenants, gateway: GuestGateway) -> None:
        self.gateway = gateway
        self._tenants = tenants
        self._gone: dict[str, str] = {}

    @property
    def host(self) -> Tenant:
        """The brainstem."""
        return self._tenants.host

    async def listing(self, guests: GuestList) -> list[ParticipantRow]:
        """The assistants that can be asked in a session; first the one that answers unaddressed sentences."""
        found = await asyncio.to_thread(scan, self._tenants.layout)
        names = [self.host.title, *(one.name for one in found.twins)]
        rows: list[ParticipantRow] = [{"name": name, "role": "twin"} for name in names]
        rows += [row for one in guests.invited if (row := self._row(one)) is not None]
        return sorted(rows, key=lambda row: row["name"] != self.backend_name(guests))

    def backend_name(self, guests: GuestList) -> str:
        """The name of who answers what is addressed to nobody."""
        chosen = guests.backend
        row = self._row(chosen) if isinstance(chosen, Guest) else None
        name = chosen if isinstance(chosen, str) else row["name"] if row is not None else ""
        return name or self.host.title

    async def answering(self, name: str, guests: GuestList) -> Tenant | tuple[str, Guest]:
        """The participant of that name: a tenant, or a guest with its name; the backend for "".

        Names only: nothing that is said in a session is ever an address. Raises ``NotFoundError``.
        """
        wanted = (name or self.backend_name(guests)).casefold()
        for one in guests.invited:
            row = self._row(one)
            if row is not None and row["name"].casefold() == wanted:
                return row["name"], one
        if not name and isinstance(guests.backend, Guest):
            raise NotFoundError("Who answers here is not paired any more.", do="rappd sessions backend")
        return await self.named(wanted)

    def _row(self, guest: Guest) -> ParticipantRow | None:
        return self.gateway.row(guest)

    async def named(self, name: str) -> Tenant:
        """The participant of that name; the brainstem for "". Raises ``NoSuchTwinError``, ``TwinConflictError``."""
        wanted = name.casefold()
        if not wanted or wanted == self.host.title.casefold():
            return self.host
        return await self._tenants.twin(name)

    async def names(self, records: Iterable[Event]) -> dict[str, str]:
        """Names by the ids in the records, also of twins that are closed, archived or gone."""
        node = self._tenants.host.node[:16]
        known = {one.id: one.title for one in self._tenants.all()}
        ids = {id for one in records for id in (one.sender, one.recipient) if id.endswith(f"_{node}")}
        unknown = [id for id in ids - known.keys() if _key_of(id)]
        if any(id not in self._gone for id in unknown):
            found = await asyncio.to_thread(_all_twins, self._tenants.layout)
            self._gone |= {id: found.get(_key_of(id), "") for id in unknown}
        return known | {id: self._gone[id] for id in unknown if self._gone[id]}


def names_on_disk(places: TwinLayout, host: str, machine: str, records: Iterable[Event]) -> dict[str, str]:
    """The same without a daemon: ``host`` is the brainstem's id, ``machine`` its name."""
    node = host.rpartition("_")[2]
    found = _all_twins(places)
    ids = {id for one in records for id in (one.sender, one.recipient) if id.endswith(f"_{node}")}
    known = {id: name for id in ids if (name := found.get(_key_of(id), ""))}
    return known | {host: machine}


def _key_of(id: str) -> str:
    """The first digits of a twin's key; "" for the id of an agent."""
    digits = id.rpartition("_")[0].rpartition("-")[2]
    return digits if len(digits) == _KEY_DIGITS and digits.isalnum() else ""


def _all_twins(places: TwinLayout) -> dict[str, str]:
    """Names by the first digits of their keys; what is active counts more than what was."""
    gone = [*list_purged(places), *list_archived(places)]
    names = {str(one["hash"])[:_KEY_DIGITS]: str(one.get("name") or "") for one in gone}
    return names | {one.key[:_KEY_DIGITS]: one.name for one in scan(places).twins}
