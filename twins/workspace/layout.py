"""The places of twins under a home, and how a new one comes to its place whole (RAPP v1 §18.13.1)."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from agents.storage.atomic_write import sync_folder, sync_tree
from agents.storage.locking import lock
from twins.errors import BadRappidError, NoSuchTwinError, TwinConflictError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


class TwinLayout(msgspec.Struct, frozen=True):
    """Paths under one home. Creating the object touches nothing. Dot-names are never twins."""

    home: Path

    @property
    def twins(self) -> Path:
        """Active twins, one folder each."""
        return self.home / "twins"

    @property
    def archive(self) -> Path:
        """Twins set aside, whole."""
        return self.twins / ".archive"

    @property
    def purged(self) -> Path:
        """Tombstones of twins that are gone."""
        return self.twins / ".purged"

    @property
    def staging(self) -> Path:
        """The folder where twins are built before they move to their place."""
        return self.twins / ".staging"

    @property
    def eggs(self) -> Path:
        """Eggs laid here."""
        return self.home / "eggs"

    def checkpoints(self, key: str) -> Path:
        """The folder of a twin's checkpoints."""
        return self.eggs / "checkpoints" / _component(key)

    def active(self, key: str) -> Path:
        """The folder of an active twin. Raises ``BadRappidError`` for what names no folder."""
        return self.twins / _component(key)

    def archived(self, key: str) -> Path:
        """The folder of an archived twin."""
        return self.archive / _component(key)

    def tombstone(self, key: str) -> Path:
        """The tombstone of a purged twin."""
        return self.purged / f"{_component(key)}.json"

    @contextmanager
    def stage(self, key: str) -> Iterator[Path]:
        """An empty folder on the same disk to build a twin in; ``settle`` moves it to its place.

        Leftovers of a crash are removed by the next staging.
        """
        name = f"{_component(key)}.{secrets.token_hex(6)}"
        self.staging.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as held:
            with exclusive_lock(self.staging):
                self._sweep()
                staged = self.staging / name
                staged.mkdir(mode=0o700)
                # Locked for as long as it is built, so that no sweep takes it.
                held.enter_context(exclusive_lock(staged))
            try:
                yield staged
            finally:
                if staged.exists():
                    shutil.rmtree(staged)

    def settle(self, staged: Path, target: Path) -> None:
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

    def _sweep(self) -> None:
        """Removes what processes that died left in staging; a living one holds its folder locked."""
        for left in list(self.staging.iterdir()):
            try:
                handle = os.open(left, _FOLDER)
            except (FileNotFoundError, NotADirectoryError):  # settled meanwhile, or nothing of ours
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # somebody is at it, or this file system cannot tell
                continue
            else:
                shutil.rmtree(left)
            finally:
                os.close(handle)


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Holds a folder against other writers of its files, across threads and processes.

    Raises ``NoSuchTwinError`` when it is not there, or moved away while waiting; ``TwinConflictError`` when
    another keeps it for too long.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise _gone(folder) from error
    try:
        with ExitStack() as held:
            try:
                held.enter_context(lock(handle))
            except TimeoutError as error:
                raise TwinConflictError(
                    "Something else is writing there; nothing was changed.", do="Try again."
                ) from error
            # A twin archived meanwhile must not leave a new folder with one file in its old place.
            if not folder.exists() or not os.path.samestat(folder.stat(), os.fstat(handle)):
                raise _gone(folder)
            yield
    finally:
        os.close(handle)


def _gone(folder: Path) -> NoSuchTwinError:
    return NoSuchTwinError(f"Nothing is at {folder.name[:60]} any more.", do="rappd twins list")


def _component(key: str) -> str:
    if not key or len(key) > 200 or key.startswith(".") or not key.isprintable() or set(key) & {"/", "\\"}:
        raise BadRappidError(f"{key[:60]!r} is not the name of a twin's folder.", do="rappd twins list")
    return key
