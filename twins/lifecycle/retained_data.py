"""Data of a twin that is kept outside its workspace, as checkpoints and by hatchings: it is its own content, and ends with it.

Eggs that were packed of it stay: in another home they bring it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from twins.eggs.parsed_egg import Destination
from twins.errors import BadFileError, TwinError
from twins.fs.remove_tree import remove_tree
from twins.installer.receipts import Receipt, Receipts
from twins.lifecycle import tombstones
from twins.workspace.workspace import TwinLayout

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
