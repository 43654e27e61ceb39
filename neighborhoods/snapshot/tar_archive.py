"""Writes a twin as a tar.gz file that depends on nothing but its files: the same twin, the same bytes."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Self

from neighborhoods.snapshot.tar_guard import BLOCK, TarEntry
from twins.zip import deflate

_PIECE = 1 << 18
_END = bytes(2 * BLOCK)


class TwinSpool:
    """The files of one stream on their way into an archive, in one temporary file without a name.

    Takes them in any order; ``pack`` sorts them. Blocking; close it.
    """

    def __init__(self, folder: Path) -> None:
        """``folder`` is on the disk whose space may be used. Raises ``OSError``."""
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close
        self._places: list[tuple[TarEntry, int]] = []
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def entries(self) -> list[TarEntry]:
        """The files, sorted by name."""
        return sorted((entry for entry, _ in self._places), key=_order)

    def take(self, events: Iterable[TarEntry | bytes]) -> None:
        """Takes what ``TarGuard.feed`` returned. Raises ``OSError`` for a full disk."""
        for event in events:
            if isinstance(event, TarEntry):
                self._places.append((event, self._end))
            else:
                self._file.write(event)
                self._end += len(event)

    def pack(self, target: IO[bytes], root: str) -> None:
        """Writes the archive; every name gets the folder ``root`` in front. Raises ``OSError``."""
        places = sorted(self._places, key=lambda place: _order(place[0]))
        write_tar_gz(target, ((entry, self._content(entry, at)) for entry, at in places), root=root)

    def _content(self, entry: TarEntry, at: int) -> Iterator[bytes]:
        self._file.seek(at)
        left = entry.size
        while left:
            piece = self._file.read(min(left, _PIECE))
            if not piece:
                raise EOFError(f"{entry.path} is shorter than its entry says")
            left -= len(piece)
            yield piece


def write_tar_gz(
    target: IO[bytes], files: Iterable[tuple[TarEntry, Iterable[bytes]]], *, root: str = ""
) -> None:
    """Writes files, which come sorted by name, as tar.gz: modes 0600 and 0700, no owners, no time of packing.

    GNU form, which every tar reads. Raises ``ValueError`` for files out of order or of another size than said.
    """
    compressor = deflate.gzipping()
    for piece in _even(tar_pieces(files, root=root)):
        target.write(compressor.compress(piece))
    target.write(compressor.flush())


def _even(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same octets in pieces of one size, on which the archive's bytes depend."""
    batch = bytearray()
    for piece in pieces:
        batch += piece
        at = 0
        while len(batch) - at >= _PIECE:
            yield bytes(batch[at : at + _PIECE])
            at += _PIECE
        del batch[:at]
    yield bytes(batch)


def tar_pieces(
    files: Iterable[tuple[TarEntry, Iterable[bytes]]], *, root: str = "", is_sorted: bool = True
) -> Iterator[bytes]:
    """The tar stream of ``write_tar_gz``, uncompressed; with ``is_sorted`` False in any order."""
    last: bytes | None = None
    for entry, content in files:
        if is_sorted and last is not None and _order(entry) <= last:
            raise ValueError(f"{entry.path} is out of order")
        last = _order(entry)
        info = tarfile.TarInfo(f"{root}/{entry.path}" if root else entry.path)
        info.size, info.mtime, info.mode = entry.size, entry.mtime, 0o700 if entry.executable else 0o600
        yield info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        written = 0
        for piece in content:
            written += len(piece)
            yield piece
        if written != entry.size:
            raise ValueError(f"{entry.path} has {written} bytes and not {entry.size}")
        if padding := -written % BLOCK:
            yield bytes(padding)
    yield _END


def files_of(events: Iterator[TarEntry | bytes]) -> Iterator[tuple[TarEntry, Iterator[bytes]]]:
    """Pairs each entry of a ``TarGuard`` with its content, which must be read before the next pair is asked for."""
    event = next(events, None)
    while isinstance(event, TarEntry):
        yield event, _content(events, event.size)
        event = next(events, None)


def _content(events: Iterator[TarEntry | bytes], size: int) -> Iterator[bytes]:
    while size:
        piece = next(events)
        assert isinstance(piece, bytes)
        size -= len(piece)
        yield piece


def _order(entry: TarEntry) -> bytes:
    return entry.path.encode("utf-8", "surrogateescape")
