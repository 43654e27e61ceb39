"""Writes files that a reader, or a crash, sees whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path


@contextmanager
def replacing(target: Path, *, mode: int = 0o600) -> Iterator[BufferedRandom]:
    """A new file beside ``target`` that takes its name, synced, when the block ends, and is gone if it fails.

    For places where no worker can write; in a workspace, ``SafeTree`` writes. Raises ``OSError``.
    """
    staged = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(staged, flags, mode)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        staged.replace(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Writes ``content`` by ``replacing``; makes missing folders, 0700."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path, mode=mode) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Returns once the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
