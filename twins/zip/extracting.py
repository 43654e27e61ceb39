"""Unpacking an archive into a fresh folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from agents.storage.sparse_file import end_sparse, write_sparse
from twins.fs.untrusted_names import NameSet, safe_path
from twins.zip.ordered_pool import OrderedThreadPool, in_tasks
from twins.zip.reader import Archive
from twins.zip.writer import WrittenArchive

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def extract(
    archive: Archive, into: Path, *, targets: Mapping[str, str] | None = None
) -> list[WrittenArchive]:
    """Writes members below ``into``, an existing folder of the caller's own that nobody else writes to.

    ``targets`` maps members to paths below it, members it leaves out stay packed; without it all go by
    their own names. All paths are checked before the first is written. Nothing is replaced and no link
    followed: what exists already is a ``FileExistsError``. Files are 0600, folders 0700, nothing is
    synced; after an error the folder holds a part, and is to be thrown away. Raises as ``Archive.chunks``.
    """
    if targets is None:
        targets = {member.name: member.name for member in archive.members}  # checked on opening
    else:
        names = NameSet()
        for target in targets.values():
            names.add(safe_path(target))
    made = {""}
    archive.look_through()

    def write(files: list[tuple[str, str]]) -> list[WrittenArchive]:
        return [_write(archive, name, f"{into}/{target}", ahead) for name, target in files]

    with OrderedThreadPool[list[WrittenArchive]]() as ahead:
        written = []
        for task in in_tasks((pair, archive.size_of(pair[0])) for pair in targets.items()):
            for _, target in task:
                _make_above(target, into, made)
            written += ahead.put(partial(write, task))
        return list(chain.from_iterable((*written, *ahead.rest())))


def _make_above(path: str, into: Path, made: set[str]) -> None:
    """Makes the folders above ``path`` that are not in ``made`` yet."""
    above = path.rpartition("/")[0]
    if above not in made:
        _make_above(above, into, made)
        (into / above).mkdir(mode=0o700, exist_ok=True)
        made.add(above)


def _write(
    archive: Archive, name: str, path: str, ahead: OrderedThreadPool[list[WrittenArchive]]
) -> WrittenArchive:
    chunks = ahead.unless_stopped(archive.chunks(name))
    handle = os.open(path, _FLAGS, 0o600)
    try:
        digest = hashlib.sha256()
        size = 0
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            write_sparse(handle, chunk)
        end_sparse(handle)
        return WrittenArchive(name, size, digest.hexdigest())
    finally:
        os.close(handle)
