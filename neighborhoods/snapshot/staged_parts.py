"""Finished parts of a snapshot on its way, so that one that was cut off goes on where it stopped.

``eggs/neighborhood/.parts/<peer>/<part>.tar.gz`` and, written last, ``<part>.json``. A part without its
``.json`` is not finished and is read anew.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from agents.storage.atomic_write import replacing, write_atomically
from neighborhoods.snapshot.filtering import Omission
from neighborhoods.snapshot.spooled_files import Spool
from neighborhoods.snapshot.tar_archive import write_tar_gz
from neighborhoods.snapshot.tar_guard import TarEntry


class StagedPart(msgspec.Struct, frozen=True):
    """One twin of another machine, as a file that goes into the egg as it is."""

    path: Path
    left_out: tuple[Omission, ...] = ()


class _Note(msgspec.Struct, frozen=True):
    twin: str
    lifecycle: str
    fingerprint: str
    allowed: tuple[str, ...]
    left_out: tuple[Omission, ...]


class PeerParts:
    """The parts of one machine. Methods block on the disk."""

    def __init__(self, root: Path, peer: str, *, allowed: Iterable[str] = ()) -> None:
        self.folder = root / hashlib.sha256(peer.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._allowed = tuple(sorted(allowed))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def find(self, twin: str, lifecycle: str, fingerprint: str) -> StagedPart | None:
        """The part that an earlier try finished, when the twin has not changed since."""
        path = self._path(twin, lifecycle)
        try:
            note = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=_Note)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        known = note == _Note(twin, lifecycle, fingerprint, self._allowed, note.left_out)
        return StagedPart(path, note.left_out) if fingerprint and known and path.exists() else None

    def keep(
        self,
        spool: Spool,
        twin: str,
        lifecycle: str,
        fingerprint: str,
        left_out: tuple[Omission, ...],
    ) -> StagedPart:
        """Writes the files of a spool as a part, under the folder that is the twin's hash."""
        path = self._path(twin, lifecycle)
        path.with_suffix(".json").unlink(missing_ok=True)
        with replacing(path) as file:
            write_tar_gz(file, _entries(spool), root=twin)
        note = _Note(twin, lifecycle, fingerprint, self._allowed, left_out)
        write_atomically(path.with_suffix(".json"), msgspec.json.encode(note))
        return StagedPart(path, left_out)

    def keep_agent(self, name: str, pieces: Iterable[bytes]) -> Path:
        """Writes one agent file of the brainstem."""
        path = self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.agent"
        with replacing(path) as file:
            for piece in pieces:
                file.write(piece)
        return path

    def _path(self, twin: str, lifecycle: str) -> Path:
        text = f"{lifecycle}/{twin}".encode("utf-8", "surrogateescape")
        return self.folder / f"{hashlib.sha256(text).hexdigest()[:32]}.tgz"


def _entries(spool: Spool) -> Iterator[tuple[TarEntry, Iterator[bytes]]]:
    for file in sorted(spool.files, key=lambda one: one.name.encode()):
        yield TarEntry(file.name, file.size, file.executable, file.mtime), spool.chunks(file)


def discard(root: Path) -> None:
    """Removes the parts of a snapshot that is done."""
    shutil.rmtree(root, ignore_errors=True)
