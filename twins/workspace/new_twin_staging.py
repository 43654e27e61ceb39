"""Building a new twin aside and moving it to its place whole; leftovers of a crash are removed."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from agents.storage.atomic_write import sync_folder, sync_tree
from twins.errors import TwinConflictError
from twins.workspace.workspace import TwinLayout, exclusive_lock

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


@contextmanager
def staged_twin(places: TwinLayout, key: str) -> Iterator[Path]:
    """An empty folder on the same disk to build a twin in; ``move_into_place`` ends the building.

    Leftovers of a crash are removed by the next staging.
    """
    name = f"{places.active(key).name}.{secrets.token_hex(6)}"
    places.staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        with exclusive_lock(places.staging):
            remove_leftovers(places.staging.iterdir())
            staged = places.staging / name
            staged.mkdir(mode=0o700)
            # Locked for as long as it is built, so that nobody takes it for a leftover.
            stack.enter_context(exclusive_lock(staged))
        try:
            yield staged
        finally:
            if staged.exists():
                shutil.rmtree(staged)


def move_into_place(staged: Path, target: Path) -> None:
    """Moves a staged folder to ``target``: afterwards it is there whole, whatever fails in between.

    Raises ``TwinConflictError`` when the place is taken.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync_tree(staged)
    try:
        staged.rename(target)
    except OSError as error:
        if error.errno in _TAKEN:
            raise TwinConflictError(
                f"A twin lives at {target.name[:16]} already.", do="rappd twins list"
            ) from error
        raise
    sync_folder(target.parent)


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Removes staging folders of processes that died; a living one holds its folder locked. Raises ``OSError``."""
    for left in list(folders):
        try:
            handle = os.open(left, _FOLDER)
        except (FileNotFoundError, NotADirectoryError):  # moved into place meanwhile, or nothing of ours
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process builds there, or this file system has no locks
            continue
        else:
            # The builder may have moved it into place, and let go, since it was opened: then nothing is left.
            with suppress(FileNotFoundError):
                shutil.rmtree(left)
        finally:
            os.close(handle)
