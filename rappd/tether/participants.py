"""Everybody who answers in a session, and names for the ids that records carry."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from rappd.store.records import Event
from rappd.tenants.tenant import Tenant
from rappd.tenants.tenants import Tenants
from twins.lifecycle.state_index import list_archived, list_purged
from twins.workspace.layout import TwinLayout
from twins.workspace.listing import scan

_KEY_DIGITS = 8
"""Of a twin's key, at the end of its label in an id."""


class Participants:
    """The brainstem and the twins of this machine. All calls come from the event loop."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants
        self._gone: dict[str, str] = {}

    @property
    def host(self) -> Tenant:
        """The brainstem."""
        return self._tenants.host

    async def listing(self) -> list[dict[str, str]]:
        """Everybody that can be asked."""
        found = await asyncio.to_thread(scan, self._tenants.layout)
        names = [self.host.title, *(one.name for one in found.twins)]
        return [{"name": name, "role": "twin"} for name in names]

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
        away = [id for id in ids - known.keys() if _key_of(id)]
        if any(id not in self._gone for id in away):
            found = await asyncio.to_thread(_all_twins, self._tenants.layout)
            self._gone |= {id: found.get(_key_of(id), "") for id in away}
        return known | {id: self._gone[id] for id in away if self._gone[id]}


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
