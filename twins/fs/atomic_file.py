"""A file that comes to its place whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedRandom
from pathlib import Path

from agents.storage.atomic_write import replacing
from twins.eggs.integrity import SIGNATURE_SUFFIX
from twins.errors import TwinConflictError
from twins.zip.ordered_pool import beside


@contextmanager
def atomic_file(target: Path, *, overwrite: bool) -> Iterator[BufferedRandom]:
    """A file beside ``target`` that takes its place when all went well, and is gone otherwise."""
    try:
        _check_free(target, overwrite)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            yield file
            _check_free(target, overwrite)
            # A signature that lies there is about another egg.
            target.with_name(target.name + SIGNATURE_SUFFIX).unlink(missing_ok=True)
    except OSError as error:
        raise TwinConflictError(
            f"{target.name} cannot be written: {error.strerror or error}; nothing was packed.",
            do="Make room, or write it elsewhere.",
        ) from error


def _check_free(target: Path, overwrite: bool) -> None:
    if target.is_dir():
        raise TwinConflictError(f"{target.name} is a folder; nothing was packed.", do="Name a file in it.")
    if not overwrite and os.path.lexists(target):
        raise TwinConflictError(
            f"{target.name} exists already; nothing was packed.", do="Name another file, or --force."
        )


def settled(file: BufferedRandom) -> tuple[int, str]:
    """(size, SHA-256) of a file that is on the disk now."""
    file.flush()
    with beside(partial(os.fsync, file.fileno())) as synced:
        file.seek(0)
        size, digest = os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()
        synced()
    return size, digest
