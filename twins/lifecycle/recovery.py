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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.storage.atomic_write import sync_folder
from twins.errors import BadRappidError, TwinConflictError
from twins.fs.remove_tree import remove_tree
from twins.lifecycle.retained_data import delete_retained_data
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
    said = []
    for step, finish in _SETTLING.items():
        for name in names:
            path = places.archive / name
            if not path.exists():  # settled by an earlier step
                continue
            try:
                if _HALF_MARK.fullmatch(name):
                    path.unlink()
                elif (mark := _MARK.fullmatch(name)) and mark["step"] == step:
                    said.append(finish(places, mark["key"]))
            except (OSError, TwinConflictError, BadRappidError) as error:
                log.warning("%s could not be settled: %s", path, error)
                said.append(f"{name}: {error}")
    return said


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
