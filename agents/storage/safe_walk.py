"""Going down from a folder that is open, without following a symbolic link."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

from agents.storage.safe_open import open_folder

MAX_DEPTH = 60
"""Folders inside each other; what lies deeper is not found."""


def files_in(
    folder: int, above: str, wants: Callable[[str], bool], enters: Callable[[str], bool], depth: int
) -> Iterator[tuple[str, os.stat_result]]:
    """(path, status) of each regular file beneath an open folder whose name is wanted, in no order."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # it went away, or became something else
                if entry.is_dir(follow_symlinks=False):
                    if depth < MAX_DEPTH and enters(entry.name):
                        inner = open_folder(folder, (entry.name,))
                        try:
                            yield from files_in(inner, f"{above}{entry.name}/", wants, enters, depth + 1)
                        finally:
                            os.close(inner)
                elif wants(entry.name):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode):
                        yield above + entry.name, found


def folders_in(folder: int, above: str, enters: Callable[[str], bool], depth: int) -> Iterator[str]:
    """The paths of the folders beneath an open folder that are entered."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False) and enters(entry.name):
                    yield above + entry.name
                    inner = open_folder(folder, (entry.name,))
                    try:
                        yield from folders_in(inner, f"{above}{entry.name}/", enters, depth + 1)
                    finally:
                        os.close(inner)


def links_in(folder: int, above: str, enters: Callable[[str], bool], depth: int) -> Iterator[str]:
    """The paths of the symbolic links beneath an open folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_symlink():
                    yield above + entry.name
                elif depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False) and enters(entry.name):
                    inner = open_folder(folder, (entry.name,))
                    try:
                        yield from links_in(inner, f"{above}{entry.name}/", enters, depth + 1)
                    finally:
                        os.close(inner)
