"""What hatchings keep of a twin outside its body: it is the twin's own content, and ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from twins.eggs.opened import Destination
from twins.errors import BadFile, TwinError
from twins.importer.receipts import Receipt, Receipts
from twins.lifecycle import tombstones
from twins.lifecycle.deleting import delete
from twins.places import TwinPlaces


def delete_remains(places: TwinPlaces, key: str) -> list[str]:
    """Deletes what hatchings into a purged twin replaced or took away, and conversations that still wait.

    Receipts stay: they say what happened and hold no content. Those of a life that began after the purge
    keep what is theirs. Returns a sentence for everything that resisted.
    """
    resisting: list[str] = []
    purged_at = _purged_at(places, key)
    if purged_at is None:
        return resisting
    receipts = Receipts(places.home)
    for receipt in _of(receipts, key):
        if datetime.fromisoformat(receipt.hatched_at) >= purged_at + timedelta(seconds=1):
            continue
        for folder in (receipts.kept(receipt.id), receipts.undone(receipt.id)):
            if folder.is_dir() and not folder.is_symlink():
                resisting += delete(folder)
        receipts.frames(receipt.id).unlink(missing_ok=True)
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


def _purged_at(places: TwinPlaces, key: str) -> datetime | None:
    """When its tombstone was written, to the second; None where that cannot be told."""
    try:
        stone = tombstones.read(places.tombstone(key))
        return datetime.fromisoformat(str((stone or {}).get("purged_at")))
    except (BadFile, ValueError):
        return None
