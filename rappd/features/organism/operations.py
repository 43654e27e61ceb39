"""The owner's operations on ``organism.yaml``: show, make, edit and read it anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from agents.storage.atomic_write import write_atomically
from rappd.dispatch.endpoints import Endpoints
from rappd.errors import ConflictError, UsageProblemError
from rappd.features.operation import OWNER, Text, operation
from rappd.features.timers.organism_timers import timer_id
from rappd.features.timers.turn_timers import TurnTimers
from rappd.federation.gateways import Gateways
from rappd.organism.organism import ListedListener, Organism, plain
from rappd.organism.organism_edit import with_entry, without_entry
from rappd.organism.organism_file import Fault, Reading, read
from rappd.organism.organism_in_force import FILE, OrganismInForce, read_file
from rappd.tenants.agent_summary import AgentRow, listing
from rappd.tenants.tenant import HOST, Tenant

Kind = Literal["listener", "agent", "gateway", "timer"]
_HEAD = """\
# What exists on this machine. rappd reads it within a second; `rappd organism check` says what is wrong with it.
# Where `listeners` or `agents` stands here, only what they name is offered.
"""


class PlaceInFile(TypedDict):
    """A fault or a note, and where it is in the file."""

    line: int
    column: int
    text: str


class EntryNotReady(TypedDict):
    """An entry of a file that gives nothing as things are here, and why."""

    kind: str
    name: str
    state: str
    prompt: NotRequired[str]


class FileChecked(TypedDict):
    """The faults of a file, what is worth knowing of it, and the entries that give nothing yet."""

    faults: list[PlaceInFile]
    notes: list[PlaceInFile]
    not_ready: list[EntryNotReady]


class GatewayRow(TypedDict):
    """A gateway, its state, and what to do about it."""

    name: str
    state: str
    do: str
    peer: str


class OrganismShown(TypedDict):
    """The organism in force: each entry of the file with its ``state``, and what is here and not offered."""

    path: str
    is_there: bool
    is_list: bool
    faults: list[PlaceInFile]
    notes: list[PlaceInFile]
    organism: NotRequired[dict[str, Any]]
    oob: NotRequired[dict[str, Any]]
    meta: NotRequired[dict[str, Any]]
    limits: NotRequired[dict[str, Any]]
    timers: NotRequired[list[dict[str, Any]]]
    listeners: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    gateways: list[GatewayRow]
    not_named: list[str]


class StructureOperations:
    """Structure is changed by the owner alone: here, or in the file itself."""

    def __init__(
        self,
        organism: OrganismInForce,
        host: Tenant,
        endpoints: Endpoints,
        gateways: Gateways,
        timers: TurnTimers,
    ) -> None:
        self._organism, self._host, self._endpoints = organism, host, endpoints
        self._gateways, self._timers = gateways, timers
        self._editing = asyncio.Lock()

    @operation("organism.show", "GET", "/organism", right=OWNER)
    async def show(self) -> OrganismShown:
        """The organism in force: each entry with its `state`, `not_named` of what is here and not offered, and the file's `faults` and `notes`."""
        await self._host.described()
        current = self._organism.current
        sections = plain(current)
        installed = self._rows()
        sections["listeners"] = [
            {**one, "state": _state_of(entry, installed)}
            for one, entry in zip(sections.get("listeners", ()), current.listeners or (), strict=True)
        ]
        sections["agents"] = [
            {**one, "state": await asyncio.to_thread(self._state_of_driven, one["name"], one["prompt"])}
            for one in sections.get("agents", ())
        ]
        rows = {row.id: row for row in self._timers.all()}
        for one in sections.get("timers", ()):
            row = rows.get(timer_id(one["name"]))
            one["state"] = "not set" if row is None else "paused" if row.paused else "ready"
        sections["gateways"] = [
            {
                "name": one.gateway.name,
                "state": one.state,
                "do": one.do,
                "peer": one.peer.name if one.peer else "",
            }
            for one in self._gateways.all()
        ]
        shown = {
            "path": str(self._organism.path),
            "is_there": self._organism.is_there,
            "is_list": current.is_list,
            "faults": [_place(one) for one in self._organism.faults],
            "notes": [_place(one) for one in self._organism.notes],
            **sections,
            "not_named": [row["name"] for row in installed if row["name"] and not row["offered"]],
        }
        return cast(OrganismShown, shown)  # sections are as the file has them

    @operation("organism.check", "POST", "/organism/check", right=OWNER)
    async def check(self, text: str) -> FileChecked:
        """Says what is wrong with the `text` of such a file; changes nothing: `faults`, `notes`, and `not_ready`, entries that give nothing yet."""
        found = await asyncio.to_thread(read, text)
        return {
            "faults": [_place(one) for one in found.faults],
            "notes": [_place(one) for one in found.notes],
            "not_ready": await asyncio.to_thread(self._not_ready, found.organism or Organism()),
        }

    @operation("organism.init", "POST", "/organism/init", right=OWNER)
    async def init(self) -> OrganismShown:
        """Writes an `organism.yaml` that names all that is offered now. Refused where there is one."""
        await self._host.described()
        names = [row["name"] for row in self._rows() if row["name"] and not row["shadowed_by"]]

        def make(text: str) -> str:
            if self._organism.path.exists():
                raise ConflictError(f"There is an {FILE} already.", do="rappd organism show")
            text = f"{_HEAD}organism:\n  name: {self._host.title}\n"
            for name in dict.fromkeys(names):
                text = with_entry(text, "listeners", {"name": name})
            return text if names else f"{text}listeners: []\n"

        await self._edit(make)
        return await self.show()

    @operation("organism.add", "POST", "/organism/entries/{kind}", right=OWNER)
    async def add(
        self,
        kind: Kind,
        name: Text,
        file: str = "",
        prompt: str = "",
        tools: list[str] | None = None,
        fingerprint: str = "",
        remote_url: str = "",
        when: str = "",
        ask: str = "",
        remind: str = "",
        zone: str = "",
    ) -> OrganismShown:
        """Names a `listener`, an `agent` with its `prompt` and `tools`, a `gateway` or a `timer` in the file; comments stay."""
        given: dict[str, Mapping[str, Any]] = {
            "listener": {"file": file},
            "agent": {"prompt": prompt, "tools": tools},
            "gateway": {"remote_url": remote_url, "fingerprint": fingerprint},
            "timer": {"when": when, "ask": ask, "remind": remind, "zone": zone},
        }
        entry = {"name": name, **given[kind]}
        await self._edit(lambda text: with_entry(text, f"{kind}s", entry))
        return await self.show()

    @operation("organism.remove", "DELETE", "/organism/entries/{kind}/{name}", right=OWNER)
    async def remove(self, kind: Kind, name: str) -> OrganismShown:
        """Takes an entry out of the file; the rest of it stays as it is."""
        await self._edit(lambda text: without_entry(text, f"{kind}s", name))
        return await self.show()

    @operation("organism.reload", "POST", "/organism/reload", right=OWNER)
    async def reload(self) -> OrganismShown:
        """Reads the file now. Refused for one with faults: the version before stays in force."""
        await self._organism.reload()
        return await self.show()

    async def _edit(self, change: Callable[[str], str]) -> None:
        async with self._editing:
            await asyncio.to_thread(_rewrite, self._organism.path, change)
            await self._organism.reload()

    def _rows(self) -> list[AgentRow]:
        return listing(self._host.registry)

    def _not_ready(self, organism: Organism) -> list[EntryNotReady]:
        """Blocks on the disk."""
        found: list[EntryNotReady] = []
        installed = self._rows()
        for listener in organism.listeners or ():
            state = _state_of(listener, installed)
            if state != "ready":
                found.append({"kind": "listener", "name": listener.name, "state": state})
        for agent in organism.agents or ():
            state = self._state_of_driven(agent.name, agent.prompt)
            if state == "without its prompt":  # one that is not in force yet is not ready, either
                row: EntryNotReady = {"kind": "agent", "name": agent.name, "state": state}
                found.append({**row, "prompt": agent.prompt})
        return found

    def _state_of_driven(self, name: str, prompt: str) -> str:
        """ "ready", or why a listener that a model drives cannot answer. Blocks on the disk."""
        if not (self._organism.path.parent / prompt).is_file():
            return "without its prompt"
        return "ready" if self._endpoints.named(HOST, name) else "not ready"


def _state_of(entry: ListedListener, installed: list[AgentRow]) -> str:
    """ "ready", or why an entry gives nothing."""
    for row in installed:
        if row["file"] == entry.file if entry.file else row["name"].casefold() == entry.name.casefold():
            return "ready" if row["name"] else "quarantined"
    return "not installed"


def _place(fault: Fault) -> PlaceInFile:
    return {"line": fault.line, "column": fault.column, "text": fault.text}


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    """Writes what ``change`` makes of the file, if that has no faults. Raises ``bad_organism``."""
    path = path.resolve()  # a link stays one
    text, found = read_file(path) if path.exists() else ("", Reading(Organism()))
    if faults := found.faults:
        raise UsageProblemError(
            f"{FILE}, {faults[0]}", do="Mend it first: rappd organism check", code="bad_organism"
        )
    ends = "\r\n" if "\r\n" in text else "\n"
    start = "\ufeff" if text.startswith("\ufeff") else ""
    lines = change(text.removeprefix(start).replace("\r\n", "\n"))
    changed = start + lines.replace("\n", ends)
    if faults := read(changed).faults:
        raise UsageProblemError(faults[0].text, do="Nothing was changed.")
    write_atomically(path, changed.encode())
