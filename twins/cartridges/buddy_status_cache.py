"""Buddies at a glance: how each of them is now. A file that did not change is not read again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TypedDict

from twins.cartridges import buddy_state
from twins.cartridges.buddy_schema import complete
from twins.cartridges.buddy_store import BuddyStore
from twins.cartridges.json_documents import Document
from twins.errors import TwinError
from twins.workspace.workspace import Workspace

_SHOWN = ("name", "stage", "mood", "energy", "xp")

Stamp = tuple[tuple[int, int, int], ...]


class BuddyStatus(TypedDict):
    """The status of a buddy in the published shape; ``mood`` and ``energy`` go from 0 to 100, ``feels`` is the mood in a word."""

    name: str
    stage: str
    mood: float
    energy: float
    xp: float
    feels: str


def buddy_status(buddy: Document) -> BuddyStatus:
    """The status of a buddy."""
    organism = buddy["organism"]
    return {
        "name": organism["name"],
        "stage": organism["stage"],
        "mood": organism["mood"],
        "energy": organism["energy"],
        "xp": organism["xp"],
        "feels": buddy_state.mood_name(organism["mood"]),
    }


class StatusCache:
    """The statuses of the buddies of a home, one workspace at a time."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Stamp, Document | None]] = {}

    def of(self, workspace: Workspace, now: datetime) -> BuddyStatus | None:
        """The buddy of a workspace as it is at ``now``; None for one that cannot be read.

        Where none lies there, it is an egg that nobody has looked at yet.
        """
        nest = BuddyStore(workspace)
        stamp = (_stamp(nest, nest.path), _stamp(nest, nest.shell))
        known = self._known.get(nest.path)
        if known is None or known[0] != stamp:
            known = self._known[nest.path] = (stamp, _read(nest, now))
        return None if known[1] is None else buddy_status(buddy_state.at(known[1], now))


def _read(nest: BuddyStore, now: datetime) -> Document | None:
    try:
        found = buddy_state.egg(now) if nest.is_empty() else nest.read()
        complete(found)
        shown = {key: found["organism"][key] for key in _SHOWN}
        return {"_meta": {"as_of": found["_meta"].get("as_of")}, "organism": shown}
    except TwinError:  # the list goes on; the buddy's own status reports the error
        return None


def _stamp(nest: BuddyStore, path: Path) -> tuple[int, int, int]:
    try:
        found = nest.files.lstat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
