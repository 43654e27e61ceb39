"""Lists archived and purged twins, read from the disk alone. Changes nothing and waits for nobody."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from twins.errors import BadFileError, NoSuchTwinError
from twins.lifecycle import tombstones
from twins.lifecycle.recovery import archiving_mark, is_ending
from twins.lifecycle.tombstones import ARCHIVED_NAME, ARCHIVED_SCHEMA, PURGED_SCHEMA
from twins.workspace.identity_file import DEFAULT_KIND, FILE, Identity
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout


def is_body(folder: Path) -> bool:
    """True when a twin lies there: a folder of its own, not a link, with a ``rappid.json``."""
    return folder.is_dir() and not folder.is_symlink() and os.path.lexists(folder / FILE)


def list_archived(places: TwinLayout) -> list[dict[str, Any]]:
    """Each archived twin's whole ``archived.json`` and its ``path``, the longest archived first.

    Where the file is missing or not as the schema has it, what the folder tells stands in, and ``note``
    says so.
    """
    try:
        names = [path.name for path in places.archive.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
    entries = []
    for key in names:
        try:
            record, note = archived_entry(places, key)
        except NoSuchTwinError:
            continue
        entries.append({**record, "path": str(places.archived(key)), **({"note": note} if note else {})})
    return sorted(entries, key=lambda entry: (_seconds(entry["archived_at"]), entry["hash"]))


def list_purged(places: TwinLayout) -> list[dict[str, Any]]:
    """Every tombstone, the oldest first. A damaged one is listed with a ``note``."""
    try:
        paths = [path for path in places.purged.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
    entries = []
    for path in paths:
        if path.suffix != ".json":
            continue
        try:
            record = tombstones.read(path)
            note = ""
        except BadFileError as problem:
            record, note = {}, str(problem)
        if record is None:  # gone since it was listed
            continue
        wrong = tombstones.wrong_fields(record, PURGED_SCHEMA)
        if wrong:
            missing = {"hash": path.stem} if "hash" in wrong else {}
            record = {**record, **missing, "note": note or f"Not as it should be: {', '.join(wrong)}."}
        entries.append(record)
    return sorted(entries, key=lambda entry: (_seconds(entry.get("purged_at")), str(entry["hash"])))


def archived_entry(places: TwinLayout, key: str) -> tuple[dict[str, Any], str]:
    """An archived twin's ``archived.json``, made whole from its folder where it is not, and what was amiss.

    Raises ``NoSuchTwinError`` when none is archived under ``key``.
    """
    body = places.archived(key)
    if not is_body(body) or is_ending(places, key):
        raise NoSuchTwinError(f"{key[:16]} is not archived.", do="rappd twins list --archived")
    try:
        identity = Twin.read(body).identity
    except BadFileError:
        identity = None  # archived.json may still say who it is
    try:
        # The mark of an archiving that has not ended is newer than what an earlier one left in the body.
        record = tombstones.read(archiving_mark(places, key)) or tombstones.read(body / ARCHIVED_NAME)
        note = f"It has no {ARCHIVED_NAME}."
    except BadFileError as problem:
        record, note = None, str(problem)
    if record is None:
        return _known(body, key, identity), note
    wrong = set(tombstones.wrong_fields(record, ARCHIVED_SCHEMA))
    wrong |= {"hash"} if record.get("hash") != key else set()
    wrong |= {"rappid"} if identity and record.get("rappid") != identity.rappid.text else set()
    if {"hash", "rappid"} <= wrong:
        return _known(body, key, identity), f"{ARCHIVED_NAME} is another twin's."
    if not wrong:
        return record, ""
    right = {field: value for field, value in record.items() if field not in wrong}
    return {**_known(body, key, identity), **right}, f"Not as it should be: {', '.join(sorted(wrong))}."


def _known(body: Path, key: str, identity: Identity | None) -> dict[str, Any]:
    """The record of a body that somebody moved here by hand, so far as the folder tells."""
    try:
        at = datetime.fromtimestamp(body.stat().st_mtime, UTC)
    except FileNotFoundError as error:
        raise NoSuchTwinError(f"{key[:16]} is not archived any more.", do="rappd twins list") from error
    return tombstones.archived_record(
        rappid=identity.rappid.text if identity else key,
        key=key,
        name=identity.name if identity else key[:8],
        kind=identity.kind if identity else DEFAULT_KIND,
        at=at,
        by="operator",
        reason="",
        last_known={"alive_at_archive": False},
    )


def _seconds(moment: object) -> float:
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
