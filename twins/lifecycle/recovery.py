"""Recovery of interrupted operations: marks in the archive name them, and the next operation finishes them.

    .archive/.<key>.archiving   the ``archived.json`` to be, while the body moves into the archive.
                                Undone as long as the body is not there, finished once it is.
    .archive/.<key>.purging     the tombstone to be. Undone as long as ``.purged/<key>.json`` is not this
                                very record, finished once it is.
    .archive/.<key>.doomed/     a body whose tombstone stands. Deleted, after what is kept of it elsewhere.

A key may be purged and come back from an egg, so a tombstone alone never decides over a body. All verbs
hold the archive (``held``) while they work: a mark found under the lock is a crash's.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agents.storage.atomic_write import sync_folder
from twins.eggs.parsed_egg import Destination
from twins.errors import BadFileError, BadRappidError, TwinConflictError, TwinError
from twins.fs.remove_tree import remove_tree
from twins.installer.receipts import Receipt, Receipts
from twins.lifecycle import tombstones
from twins.lifecycle.tombstones import ARCHIVED_NAME
from twins.workspace.workspace import TwinLayout, exclusive_lock

log = logging.getLogger(__name__)

_MARK = re.compile(r"\.(?P<key>.+)\.(?P<step>archiving|purging|doomed)")
_HALF_MARK = re.compile(r"\.\..+\.(archiving|purging)\.\d+\.[0-9a-f]{8}\.tmp")
_HALF_TOMBSTONE = re.compile(r"\..+\.json\.\d+\.[0-9a-f]{8}\.tmp")


@contextmanager
def is_locked(places: TwinLayout) -> Iterator[list[str]]:
    """Keeps every other verb out, in this process and others, and settles first what one left behind.

    Yields what was settled, a sentence each. Raises ``TwinConflictError`` when another verb takes too long.
    """
    for folder in (places.archive, places.purged):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with exclusive_lock(places.archive):
        yield recover(places)


def archiving_mark(places: TwinLayout, key: str) -> Path:
    """The path of an archiving's mark."""
    return places.archived(key).with_name(f".{key}.archiving")


def purging_mark(places: TwinLayout, key: str) -> Path:
    """The path of a purge's mark."""
    return places.archived(key).with_name(f".{key}.purging")


def purging_body(places: TwinLayout, key: str) -> Path:
    """The place of a body while it is deleted."""
    return places.archived(key).with_name(f".{key}.doomed")


def purge_is_decided(places: TwinLayout, key: str) -> bool:
    """True when a purge has written its tombstone and not yet removed its mark. Needs no hold."""
    try:
        return purging_mark(places, key).read_bytes() == places.tombstone(key).read_bytes()
    except FileNotFoundError:
        return False


def is_ending(places: TwinLayout, key: str) -> bool:
    """True when the body in the archive is the one that a decided purge has yet to take. Needs no hold.

    Once that one is doomed, what lies in the archive came later: an egg may have brought the twin back.
    """
    return purge_is_decided(places, key) and not purging_body(places, key).exists()


def recover(places: TwinLayout) -> list[str]:
    """Finishes or undoes every verb that was cut off. What cannot be settled stays for the next time."""
    with os.scandir(places.archive) as entries:
        names = sorted(entry.name for entry in entries if entry.name.startswith("."))
    reports = []
    for step, finish in _SETTLING.items():
        for name in names:
            path = places.archive / name
            if not path.exists():  # settled by an earlier step
                continue
            try:
                if _HALF_MARK.fullmatch(name):
                    path.unlink()
                elif (mark := _MARK.fullmatch(name)) and mark["step"] == step:
                    reports.append(finish(places, mark["key"]))
            except (OSError, TwinConflictError, BadRappidError) as error:
                log.warning("%s could not be settled: %s", path, error)
                reports.append(f"{name}: {error}")
    return reports


def finish_archiving(places: TwinLayout, key: str) -> str:
    """Lays ``archived.json`` into a body that has moved; forgets an archiving whose body has not."""
    mark, body = archiving_mark(places, key), places.archived(key)
    if not body.is_dir():
        mark.unlink()
        return f"{key[:16]} was not archived; it stays where it was."
    record = body / ARCHIVED_NAME
    if record.is_dir() and not record.is_symlink():
        # The twin's own code made a folder of that name. It is the twin's, so it is kept.
        record.rename(record.with_name(f"{ARCHIVED_NAME}.{secrets.token_hex(4)}"))
    mark.replace(record)
    return f"{key[:16]} is archived."


def finish_purging(places: TwinLayout, key: str) -> str:
    """Ends a purge whose tombstone stands; forgets one without.

    Raises ``TwinConflictError`` when part of the body cannot be deleted; it stays doomed.
    """
    mark, doomed = purging_mark(places, key), purging_body(places, key)
    for left in places.purged.iterdir():
        if _HALF_TOMBSTONE.fullmatch(left.name):
            left.unlink()
    if not purge_is_decided(places, key):
        mark.unlink()
        return f"{key[:16]} was not purged; it stays archived."
    sync_folder(places.purged)
    if not doomed.exists():  # else what lies in the archive now is another body of the same key
        places.archived(key).rename(doomed)
    mark.unlink()
    return delete_purging(places, key)


def delete_purging(places: TwinLayout, key: str) -> str:
    """Deletes a doomed body and what is kept of it elsewhere. Raises ``TwinConflictError`` when part of it resists."""
    resisting = delete_retained_data(places, key) + remove_tree(purging_body(places, key))
    if resisting:
        raise TwinConflictError(
            f"{key[:16]} is purged, but part of it cannot be deleted: {resisting[0]}.",
            do="Free it; the next start of rappd tries again.",
        )
    return f"{key[:16]} is purged."


# In this order: a purge that is cut off between its last two steps has a mark and a doomed body.
_SETTLING: dict[str, Callable[[TwinLayout, str], str]] = {
    "archiving": finish_archiving,
    "purging": finish_purging,
    "doomed": delete_purging,
}


_BEFORE = r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z)-[a-z0-9-]+-before\.egg"
"""Safety eggs: what a twin was before a hatching touched it."""


def delete_retained_data(places: TwinLayout, key: str) -> list[str]:
    """Deletes data that belonged to a purged twin; returns a sentence for everything that resisted.

    Deleted are its checkpoints, the eggs that were laid before hatchings into it, what these replaced or took
    away, and conversations that still wait. Receipts stay: they say what happened and hold no content. A life
    that began after the purge keeps what is its own.
    """
    resisting: list[str] = []
    purged_at = _purged_at(places, key)
    if purged_at is None:
        return resisting
    resisting += _delete_checkpoints(places, key, purged_at + timedelta(seconds=1))
    resisting += _delete_safety_eggs(places, key, purged_at + timedelta(seconds=1))
    receipts = Receipts(places.home)
    for receipt in _of(receipts, key):
        if datetime.fromisoformat(receipt.hatched_at) >= purged_at + timedelta(seconds=1):
            continue
        for folder in (receipts.kept(receipt.id), receipts.undone(receipt.id)):
            if folder.is_dir() and not folder.is_symlink():
                resisting += remove_tree(folder)
        receipts.frames(receipt.id).unlink(missing_ok=True)
    return resisting


def _delete_checkpoints(places: TwinLayout, key: str, until: datetime) -> list[str]:
    from twins.workspace.checkpoints import made_at  # brings what signs them along

    folder = places.checkpoints(key)
    # The twin of that key may go back to them; there may be two when one came from elsewhere.
    if folder.is_symlink() or not folder.is_dir() or places.active(key).is_dir():
        return []
    moments = {path: made_at(path.name) for path in folder.iterdir()}
    later = any(at is not None and at >= until for at in moments.values())
    if not later:
        return remove_tree(folder)
    return _unlink(path for path, at in moments.items() if at is not None and at < until)


def _delete_safety_eggs(places: TwinLayout, key: str, until: datetime) -> list[str]:
    folder = places.eggs / key
    if folder.is_symlink() or not folder.is_dir() or places.active(key).is_dir():
        return []
    made = {path: found[1] for path in folder.iterdir() if (found := re.fullmatch(_BEFORE, path.name))}
    resisting = _unlink(
        path
        for path, at in made.items()
        if datetime.strptime(at, "%Y-%m-%dT%H-%M-%S.%fZ").replace(tzinfo=UTC) < until
    )
    if not any(folder.iterdir()):
        folder.rmdir()
    return resisting


def _unlink(paths: Iterable[Path]) -> list[str]:
    """Deletes files; a sentence for each that resisted."""
    resisting = []
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            resisting.append(f"{path}: {error.strerror}")
    return resisting


def _of(receipts: Receipts, key: str) -> Iterator[Receipt]:
    """Hatchings into that twin. A damaged receipt cannot say whose it is, and is passed over."""
    for path in sorted(receipts.folder.glob("*.json")):
        try:
            receipt = receipts.read(path.stem)
        except TwinError:
            continue
        if receipt.destination == Destination.TWIN.value and Path(receipt.workspace).name == key:
            yield receipt


def _purged_at(places: TwinLayout, key: str) -> datetime | None:
    """The time of its tombstone, to the second; None where that cannot be told."""
    try:
        stone = tombstones.read(places.tombstone(key))
        return datetime.fromisoformat(str((stone or {}).get("purged_at")))
    except (BadFileError, ValueError):
        return None
