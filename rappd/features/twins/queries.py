"""Queries about twins: list rows, details, souls and lineage. Blocks on the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal, NotRequired, TypedDict

from agents.contract.file_discovery import find_sense_files, find_service_files
from rappd.tenants.tenants import Tenants
from twins.cartridges.buddy_status_cache import BuddyStatus, StatusCache
from twins.cartridges.buddy_store import KIND as BUDDY
from twins.errors import NoSuchTwinError
from twins.lifecycle.lookup import find_active
from twins.workspace import souls
from twins.workspace.lineage import Families, RelativeRow
from twins.workspace.listing import MemoryCounter, Presence, Row, find, list_twins
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

LastTalks = Callable[[], Mapping[str, float]]
"""The time each workspace last talked, in seconds since 1970; blocks on the record."""


class WhoIs(TypedDict):
    """A twin, as each answer about one begins."""

    key: str
    rappid: str
    name: str
    kind: str


class TwinRow(WhoIs):
    """A twin of the list; ``memories`` is None where they cannot be counted, ``buddy`` where a buddy's file cannot be read."""

    state: str
    port: int | None
    memories: int | None
    last_talk: float | None
    born_at: str
    parent_rappid: str
    answering: bool
    activity: str
    """A mark that each request changes."""
    buddy: NotRequired[BuddyStatus | None]
    model: NotRequired[str]


class UnreadableTwin(TypedDict):
    """A folder that cannot be read as a twin, and why."""

    folder: str
    problem: str


class TwinList(TypedDict):
    """Active twins, and the folders that cannot be read."""

    twins: list[TwinRow]
    unreadable: list[UnreadableTwin]


class ShownTwin(WhoIs):
    """A twin with its soul and files."""

    state: Literal["archived", "awake", "asleep"]
    port: int | None
    memories: int | None
    last_talk: float | None
    born_at: str
    buddy: NotRequired[BuddyStatus | None]
    parent_rappid: str
    incarnations: int
    path: str
    soul: str
    agents: list[str]
    services: list[str]
    organs: list[str]
    senses: list[str]
    model: NotRequired[str]


class SoulBefore(TypedDict):
    """A soul that was in force once."""

    number: int
    at: str
    reason: str


class SoulShown(WhoIs):
    """The soul in force, and its history."""

    soul: str
    history: list[SoulBefore]


class TwinQueries:
    """Reads one home's twins. Answers are JSON objects; raises ``ReportableError``."""

    def __init__(self, places: TwinLayout, tenants: Tenants, last_talks: LastTalks) -> None:
        self._places = places
        self._tenants = tenants
        self._last_talks = last_talks
        self._memories = MemoryCounter()
        self._glances = StatusCache()

    def listing(self) -> TwinList:
        """Active twins, and the folders that cannot be read."""
        talks, running = self._last_talks(), self._tenants.running()
        presences = {
            key: Presence(key in running, running.get(key), talks.get(key))
            for key in running.keys() | talks.keys()
        }
        found = list_twins(self._places, presences=presences, counter=self._memories)
        unreadable: list[UnreadableTwin] = [
            {"folder": str(one.folder), "problem": one.problem} for one in found.unreadable
        ]
        return {"twins": [self._row(row) for row in found.rows], "unreadable": unreadable}

    def _row(self, found: Row) -> TwinRow:
        row: TwinRow = {
            "key": found.key,
            "rappid": found.rappid,
            "name": found.name,
            "kind": found.kind,
            "state": found.state,
            "port": found.port,
            "memories": found.memories,
            "last_talk": found.last_talk,
            "born_at": found.born_at,
            "parent_rappid": found.parent_rappid,
            "answering": self._tenants.is_answering(found.key),
            "activity": self._tenants.activity(found.key),
        }
        if found.kind == BUDDY:
            row["buddy"] = self._life(found.key)
        return row

    def show(self, selector: str) -> ShownTwin:
        """One twin, active or archived."""
        twin = self._active_or_archived(selector)
        presence = self._tenants.presence(twin.key)
        workspace = twin.workspace
        files = workspace.files
        talked = self._last_talks().get(twin.key)
        shown: ShownTwin = {
            "key": twin.key,
            "rappid": twin.rappid.text,
            "name": twin.name,
            "kind": twin.kind,
            "state": "archived" if twin.archived else "awake" if presence.running else "asleep",
            "port": presence.port if presence.running else None,
            "memories": self._memories.count(workspace),
            "last_talk": talked,
            "born_at": twin.born_at,
            "parent_rappid": twin.identity.parent_text,
            "incarnations": twin.identity.incarnations,
            "path": str(workspace.root),
            "soul": souls.read_soul(workspace),
            "agents": [name for name in files.names(workspace.agents) if "_agent." in name],
            "services": [name for name in files.names(workspace.services) if name.endswith("_service.py")],
            "organs": sorted(
                file.rel
                for folder in (workspace.organs, workspace.services)
                for file in find_service_files(folder, files)
                if folder == workspace.organs or file.rel.endswith("_organ.py")
            ),
            "senses": [file.rel for file in find_sense_files(workspace.senses, files)],
        }
        if twin.kind == BUDDY and not twin.archived:
            shown["buddy"] = self._life(twin.key)
        return shown

    def soul(self, selector: str) -> SoulShown:
        """The soul in force, and its history."""
        twin = find_active(self._places, selector)
        history: list[SoulBefore] = [
            {"number": kept.number, "at": kept.at.strftime("%Y-%m-%dT%H:%M:%SZ"), "reason": kept.reason}
            for kept in souls.soul_history(twin.workspace)
        ]
        return {**who_is(twin), "soul": souls.read_soul(twin.workspace), "history": history}

    def lineage(self, selector: str) -> list[RelativeRow]:
        """Family trees as rows in preorder; of one twin, or of all for ""."""
        families = Families(self._places)
        rappid = find(self._places, selector, archived=None).rappid if selector else None
        return [member.as_json() for member in families.tree(rappid)]

    def _life(self, key: str) -> BuddyStatus | None:
        """The status of a buddy; None where its file cannot be read."""
        return self._glances.of(Workspace.at(self._places.active(key)), datetime.now(UTC))

    def _active_or_archived(self, selector: str) -> Twin:
        for archived in (False, True):
            try:
                return find(self._places, selector, archived=archived)
            except NoSuchTwinError:
                continue
        return find_active(self._places, selector)  # which says why not


def who_is(twin: Twin) -> WhoIs:
    """Returns the fields that each answer about one twin begins with."""
    return {"key": twin.key, "rappid": twin.rappid.text, "name": twin.name, "kind": twin.kind}
