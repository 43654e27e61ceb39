"""``twins/.trash/``, where older tools put twins aside: each moves to the archive (RAPP v1 §18.13.8)."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from twins.errors import BadFileError, NoSuchTwinError, TwinConflictError
from twins.lifecycle.archive_moves import archive_body
from twins.lifecycle.state_index import is_body
from twins.lifecycle.tombstones import archived_record
from twins.lifecycle.usage import measure
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout

REASON = "migrated from .trash convention"

# The published hatcher's rollback names what it puts aside <folder>-<YYYYMMDD-HHMMSS>.
_NAME = r"(?s)(?P<folder>.+?)(?:-(?P<at>\d{8}-\d{6}))?"


def told(result: dict[str, Any]) -> list[str]:
    """The result of ``migrate_trash`` in sentences."""
    done = [f"{one['name']} lay in .trash and is archived now." for one in result["archived"]]
    return done + [f"{one['folder']} stays: {one['why']}" for one in result["left"]]


def migrate_trash(places: TwinLayout, *, now: datetime) -> dict[str, Any]:
    """Archives every twin in ``.trash``; of several of one rappid, the one put aside last.

    Returns ``{ok, action: "migrate", archived: [{hash, name, kind, moved_to}], left: [{folder, why}]}``.
    What cannot be archived stays in ``.trash``, whole; an empty ``.trash`` goes.
    """
    trash = places.twins / ".trash"
    archived, left = [], []
    if trash.is_symlink() or not trash.is_dir():
        return {"ok": True, "action": "migrate", "archived": [], "left": []}
    for folder in sorted(trash.iterdir(), key=_put_aside, reverse=True):
        try:
            archived.append(_migrate(places, folder, now))
        except (NoSuchTwinError, BadFileError, TwinConflictError) as problem:
            left.append({"folder": str(folder), "why": str(problem)})
    if not left:
        trash.rmdir()
    return {"ok": not left, "action": "migrate", "archived": archived, "left": left}


def _migrate(places: TwinLayout, folder: Path, now: datetime) -> dict[str, Any]:
    if not is_body(folder):
        raise NoSuchTwinError(f"{folder.name} is no twin: it holds no rappid.json.", do="Look at the folder.")
    twin = Twin.read(folder)
    key = twin.rappid.key
    if is_body(places.active(key)):
        raise TwinConflictError(f"{twin.name} is active; what was put aside stays.", do="Look at the folder.")
    measured = measure(folder)
    record = archived_record(
        rappid=twin.rappid.text,
        key=key,
        name=twin.name,
        kind=twin.kind,
        at=now,
        by="migration",
        reason=REASON,
        last_known={"alive_at_archive": False, **measured.as_known()},
    )
    moved_to = archive_body(places, folder, record)
    return {"hash": key, "name": twin.name, "kind": twin.kind, "moved_to": str(moved_to)}


def _put_aside(folder: Path) -> tuple[str, str]:
    found = re.fullmatch(_NAME, folder.name)
    return (found and found["at"]) or "", folder.name
