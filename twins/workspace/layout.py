"""The places of twins under a home, and the lock of one of them (RAPP v1 §18.13.1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from agents.storage.atomic_write import lock
from twins.errors import BadRappidError, NoSuchTwinError, TwinConflictError


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
