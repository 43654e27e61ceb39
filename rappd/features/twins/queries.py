"""Queries about twins: list rows, details, souls and lineage. Blocks on the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from agents.contract.file_discovery import find_sense_files, find_service_files
from rappd.tenants.tenants import Tenants
from twins.cartridges.buddy_status_cache import StatusCache
from twins.cartridges.buddy_store import KIND as BUDDY
from twins.errors import NoSuchTwinError
from twins.lifecycle.lookup import find_active
from twins.workspace import souls
from twins.workspace.lineage import Families
from twins.workspace.listing import MemoryCounter, Presence, find, list_twins
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

LastTalks = Callable[[], Mapping[str, float]]
"""The time each workspace last talked, in seconds since 1970; blocks on the record."""


class TwinQueries:
    """Reads one home's twins. Answers are JSON objects; raises ``ReportableError``."""

    def __init__(self, places: TwinLayout, living: Tenants, last_talks: LastTalks) -> None:
        self._places = places
        self._living = living
        self._last_talks = last_talks
        self._memories = MemoryCounter()
        self._glances = StatusCache()

    def listing(self) -> dict[str, Any]:
        """Active twins, and the folders that cannot be read."""
        talks, running = self._last_talks(), self._living.running()
        presences = {
            key: Presence(key in running, running.get(key), talks.get(key))
            for key in running.keys() | talks.keys()
        }
        found = list_twins(self._places, presences=presences, counter=self._memories)
        unreadable = [{"folder": str(one.folder), "problem": one.problem} for one in found.unreadable]
        rows = [
            {**row.as_json(), **self._life(row.kind, row.key), **self._activity(row.key)}
            for row in found.rows
        ]
        return {"twins": rows, "unreadable": unreadable}

    def show(self, selector: str) -> dict[str, Any]:
        """One twin, active or archived."""
        twin = self._active_or_archived(selector)
        presence = self._living.presence(twin.key)
        workspace = twin.workspace
        files = workspace.files
        talked = self._last_talks().get(twin.key)
        return {
            **who_is(twin),
            "state": "archived" if twin.archived else "awake" if presence.running else "asleep",
            "port": presence.port if presence.running else None,
            "memories": self._memories.count(workspace),
            "last_talk": talked,
            "born_at": twin.born_at,
            **({} if twin.archived else self._life(twin.kind, twin.key)),
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

    def soul(self, selector: str) -> dict[str, Any]:
        """The soul in force, and its history."""
        twin = find_active(self._places, selector)
        history = [
            {"number": kept.number, "at": kept.at.strftime("%Y-%m-%dT%H:%M:%SZ"), "reason": kept.reason}
            for kept in souls.soul_history(twin.workspace)
        ]
        return {**who_is(twin), "soul": souls.read_soul(twin.workspace), "history": history}

    def lineage(self, selector: str) -> list[dict[str, Any]]:
        """Family trees as rows in preorder; of one twin, or of all for ""."""
        families = Families(self._places)
        rappid = find(self._places, selector, archived=None).rappid if selector else None
        return [member.as_json() for member in families.tree(rappid)]

    def _activity(self, key: str) -> dict[str, Any]:
        """``answering`` a request now; ``activity`` is a mark that each request changes."""
        return {"answering": self._living.is_answering(key), "activity": self._living.activity(key)}

    def _life(self, kind: str, key: str) -> dict[str, Any]:
        """``buddy`` of a buddy's row: how it is, None where its file cannot be read."""
        if kind != BUDDY:
            return {}
        workspace = Workspace.at(self._places.active(key))
        return {"buddy": self._glances.of(workspace, datetime.now(UTC))}

    def _active_or_archived(self, selector: str) -> Twin:
        for archived in (False, True):
            try:
                return find(self._places, selector, archived=archived)
            except NoSuchTwinError:
                continue
        return find_active(self._places, selector)  # which says why not


def who_is(twin: Twin) -> dict[str, Any]:
    """Returns the fields that each answer about one twin begins with."""
    return {"key": twin.key, "rappid": twin.rappid.text, "name": twin.name, "kind": twin.kind}
