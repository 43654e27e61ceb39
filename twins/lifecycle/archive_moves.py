"""The three verbs on disk, each crash-proof at every step. They block; ``Lifecycle`` calls them in threads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.storage.atomic_write import write_atomically
from twins.errors import NoSuchTwinError, TwinConflictError
from twins.lifecycle.recovery import (
    archiving_mark,
    finish_archiving,
    finish_purging,
    is_locked,
    purging_body,
    purging_mark,
)
from twins.lifecycle.state_index import archived_entry, is_body
from twins.lifecycle.tombstones import encode, purged_record
from twins.workspace.workspace import TwinLayout


def archive_body(places: TwinLayout, source: Path, record: Mapping[str, Any]) -> Path:
    """Moves the twin at ``source`` into the archive and lays ``record`` into it; returns its new place.

    Nothing of it may be running. Raises ``TwinConflictError`` when the place is taken or the move fails (then
    it stays where it was), ``NoSuchTwinError`` when it is not at ``source`` any more.
    """
    key = record["hash"]
    name = record["name"]
    target = places.archived(key)
    with is_locked(places):
        if not is_body(source):
            raise NoSuchTwinError(f"{name} is not there any more.", do="rappd twins list")
        refuse_taken(places, key, name)
        with (
            _as_conflict(f"{name} could not be archived; it stays where it was"),
            _marked(archiving_mark(places, key), encode(record)),
        ):
            source.rename(target)
        with _as_conflict(f"{name} is archived, without its record for now"):
            finish_archiving(places, key)
    return target


def refuse_taken(places: TwinLayout, key: str, name: str) -> None:
    """Raises ``TwinConflictError`` when the archive holds something under ``key``."""
    if os.path.lexists(places.archived(key)):
        raise TwinConflictError(
            f"Another {name} is archived already; this one stays where it is.",
            do=f"rappd twins purge {key[:12]} ends the archived one.",
        )


def unarchive_body(places: TwinLayout, key: str) -> Path:
    """Moves an archived twin back among the active; returns its place. ``archived.json`` goes with it.

    Raises ``TwinConflictError`` when the place is taken, ``NoSuchTwinError`` when it is not archived.
    """
    source, target = places.archived(key), places.active(key)
    with is_locked(places):
        known, _ = archived_entry(places, key)
        name = known["name"]
        with _as_conflict(f"{name} could not be brought back; it stays archived"):
            if os.path.lexists(target):
                raise TwinConflictError(
                    f"Another {name} is active; the archived one stays archived.",
                    do=f"rappd twins purge {key[:12]} ends the archived one.",
                )
            source.rename(target)
            os.utime(target)  # it was wanted today, so it does not count as stopped for days
    return target


def purge_body(places: TwinLayout, key: str, *, at: datetime, by: str, reason: str) -> Path:
    """Writes an archived twin's tombstone, then deletes its body; returns the tombstone's path.

    A tombstone of an earlier life of the same rappid is replaced. Raises ``NoSuchTwinError`` when it is not
    archived, ``TwinConflictError`` when part of the body cannot be deleted (it is purged all the same).
    """
    with is_locked(places):
        known, _ = archived_entry(places, key)
        record = purged_record(known, at=at, by=by, reason=reason)
        name, octets = record["name"], encode(record)
        if purging_body(places, key).exists():
            raise TwinConflictError(
                f"What is left of an earlier {name} cannot be deleted; this one stays archived.",
                do=f"Delete {purging_body(places, key)}.",
            )
        with (
            _as_conflict(f"{name} could not be purged; it stays archived"),
            _marked(purging_mark(places, key), octets),
        ):
            write_atomically(places.tombstone(key), octets)
        with _as_conflict(f"{name} is purged, but its body is not deleted yet"):
            finish_purging(places, key)
    return places.tombstone(key)


@contextmanager
def _marked(mark: Path, content: bytes) -> Iterator[None]:
    """Writes a mark before a deciding step, and takes it back when that step is refused."""
    write_atomically(mark, content)
    try:
        yield
    except OSError:
        mark.unlink()
        raise


@contextmanager
def _as_conflict(what: str) -> Iterator[None]:
    """A refusal of the disk as a sentence that says what stayed safe."""
    try:
        yield
    except OSError as error:
        raise TwinConflictError(
            f"{what}: {error.strerror or error}.", do="Look at the disk, then try again."
        ) from error
