"""A folder that a twin's own code filled, deleted whatever that code did to keep it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path


def remove_tree(top: Path) -> list[str]:
    """Deletes ``top`` and all below it; returns a sentence for everything that resisted.

    Links are deleted and never followed; folders without permissions are given them. Depth is no
    obstacle: folders move up to ``top`` before they are emptied, so no path grows too long to name.
    """
    resisting: list[str] = []
    names = (f"{secrets.token_hex(8)}.{number}" for number in count())
    waiting = _strip(top, resisting)
    while waiting:
        folder = waiting.pop()
        for inner in _strip(folder, resisting):
            with _noting(inner, resisting):
                _unlock(inner)
                waiting.append(inner.rename(top / next(names)))
        with _noting(folder, resisting):
            folder.rmdir()
    with _noting(top, resisting):
        top.rmdir()
    return resisting


def _strip(folder: Path, resisting: list[str]) -> list[Path]:
    """Deletes all that is not a folder in ``folder``, and returns its folders."""
    inner = []
    with _noting(folder, resisting):
        _unlock(folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                path = folder / entry.name
                with _noting(path, resisting):
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(path)
                    else:
                        path.unlink()
    return inner


def _unlock(folder: Path) -> None:
    mode = folder.lstat().st_mode
    if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
        folder.chmod(0o700)


@contextmanager
def _noting(path: Path, resisting: list[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        resisting.append(f"{path}: {error.strerror}")
