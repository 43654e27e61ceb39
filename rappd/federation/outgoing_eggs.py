"""Eggs on their way to peers: ``eggs/.outgoing/<id>``, the bytes of a row of the outbox, while it waits."""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

from agents.storage.atomic_write import replacing
from envelopes.envelope import is_uuid
from rappd.errors import NotFoundError, UsageProblemError
from twins.installer.errors import from_disk

MOST_BYTES = 8 << 30
"""The largest egg that a peer accepts."""


class OutgoingEggs:
    """The folder of them (files 0600). An egg's file is there whole or not at all. Everything blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, id: str) -> Path:
        """Returns the path for the bytes of an outbox row."""
        return self._folder / id

    def stage(self, id: str, source: Path, recipient: str = "") -> Path:
        """A copy of ``source``, sealed for ``recipient`` if one is given; on the disk when it returns.

        Raises ``NotFoundError``, ``UsageProblemError`` for one that no peer takes, ``DiskFullError``, ``not_writable``,
        ``bad_sealing_key``.
        """
        try:
            found = source.stat()
        except OSError:
            raise NotFoundError(f"There is no file {source}.", do="Look at the path.") from None
        if not stat.S_ISREG(found.st_mode) or not 0 < found.st_size <= MOST_BYTES:
            raise UsageProblemError(
                f"{source.name} is no file of up to {MOST_BYTES >> 30} GB.", do="Carry it by hand."
            )
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self.path(id)
        if recipient:
            from twins.eggs.encryption import seal_file

            seal_file(source, target, recipient)
        else:
            _copy(source, target, found.st_size)
        return target

    def remove(self, id: str) -> None:
        """Removes the bytes of an egg that nobody waits for."""
        with contextlib.suppress(OSError):  # what resists goes at the next start
            self.path(id).unlink(missing_ok=True)

    def ids(self) -> list[str]:
        """Returns the ids of rows whose bytes are here, and deletes half-written files.

        Only while nothing is staged.
        """
        found = []
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if is_uuid(path.name):
                found.append(path.name)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
        return found

    def keep_only(self, ids: Collection[str]) -> None:
        """Removes what no row waits for: the daemon ended between the row's end and the file's."""
        for id in self.ids():
            if id not in ids:
                self.remove(id)


def _copy(source: Path, target: Path, size: int) -> None:
    try:
        with source.open("rb") as given, replacing(target) as file:
            shutil.copyfileobj(given, file, 1 << 20)
    except OSError as error:
        raise from_disk(error, source.name, needs=size) from error
