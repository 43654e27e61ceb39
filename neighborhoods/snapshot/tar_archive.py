"""Twins as tar.gz files: written so that the same twin gives the same bytes, and read with every check."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO

from neighborhoods.errors import BadMemberStreamError
from neighborhoods.snapshot.sparse_members import Run, data_of, sparse_header
from neighborhoods.snapshot.tar_guard import BLOCK, LEFT_OUT, LISTED, TarEntry, TarGuard, files_of, read_tar
from twins.zip import deflate

_PIECE = 1 << 18
_END = bytes(2 * BLOCK)


def write_tar_gz(
    target: IO[bytes],
    files: Iterable[tuple[TarEntry, Iterable[bytes]]],
    *,
    root: str = "",
) -> None:
    """Writes files, which come sorted by name, as tar.gz: modes 0600 and 0700, no owners, no time of packing.

    GNU form, which every tar reads. Raises ``ValueError`` for files out of order or of another size than said.
    """
    compressor = deflate.gzipping()
    for piece in _even(tar_pieces(files, root=root)):
        target.write(compressor.compress(piece))
    target.write(compressor.flush())


def read_archive(archive: Path, root: str) -> Iterator[tuple[TarEntry, Iterator[bytes]]]:
    """(entry, content) of each file of a tar.gz file that ``TarGuard`` lets through. Raises ``MemberError``, ``OSError``."""
    yield from files_of(read_tar(gunzipped(_pieces(archive)), TarGuard(root=root)))


def gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a gzip stream in pieces of bounded size. Raises ``BadMemberStreamError``."""
    stream = Gunzip("The archive", do="Get the egg again.")
    for piece in pieces:
        yield from stream.feed(piece)
    yield from stream.end()


class Gunzip:
    """One gzip stream that comes in pieces. Its content comes in pieces of bounded size, too."""

    def __init__(self, what: str, *, do: str) -> None:
        """``what`` is damaged or cut off, says ``BadMemberStreamError``; ``do``: the advice."""
        self._what, self._do = what, do
        self._stream = deflate.gunzipping()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The content of one more piece. Raises ``BadMemberStreamError``."""
        while piece and not self._stream.eof:  # what follows the first gzip member is no part of it
            try:
                content = self._stream.decompress(piece, _PIECE)
            except deflate.InflateError as error:
                raise BadMemberStreamError(f"{self._what} is damaged.", do=self._do) from error
            piece = self._stream.unconsumed_tail
            if content:
                yield content

    def end(self) -> Iterator[bytes]:
        """The rest. Raises ``BadMemberStreamError`` where the stream has not ended."""
        while not self._stream.eof:
            if content := self._stream.decompress(b"", _PIECE):
                yield content
                continue
            raise BadMemberStreamError(f"{self._what} is cut off.", do=self._do)


def _pieces(archive: Path) -> Iterator[bytes]:
    with archive.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


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


def gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A gzip stream for a way between machines; nothing follows from its bytes."""
    compressor = deflate.gzipping_smaller()
    for piece in pieces:
        if packed := compressor.compress(piece):
            yield packed
    yield compressor.flush()


def tar_pieces(
    files: Iterable[tuple[TarEntry, Iterable[bytes]]],
    *,
    root: str = "",
    is_sorted: bool = True,
    holes: Mapping[str, Sequence[Run]] = MappingProxyType({}),
) -> Iterator[bytes]:
    """The tar stream of ``write_tar_gz``, uncompressed; with ``is_sorted`` False in any order.

    ``holes``: files, by path, that are sent as their runs of data.
    """
    last: bytes | None = None
    for entry, content in files:
        if is_sorted and last is not None and _order(entry) <= last:
            raise ValueError(f"{entry.path} is out of order")
        last = _order(entry)
        info = tarfile.TarInfo(f"{root}/{entry.path}" if root else entry.path)
        info.size, info.mtime, info.mode = entry.size, entry.mtime, 0o700 if entry.executable else 0o600
        if entry.left_out:
            info.type, info.pax_headers = tarfile.SYMTYPE, {LEFT_OUT: entry.left_out}
            yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            continue
        if runs := holes.get(entry.path):
            yield sparse_header(info, runs)
            content = data_of(content)
        else:
            yield info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        written = 0
        for piece in content:
            written += len(piece)
            yield piece
        if written != info.size:
            raise ValueError(f"{entry.path} has {written} bytes and not {info.size}")
        if padding := -written % BLOCK:
            yield bytes(padding)
    yield _END


def listing_headers(names: Iterable[bytes]) -> Iterator[bytes]:
    """Headers before a stream: the names that were there before anything was left out. Other readers skip them."""
    batch: list[str] = []
    size = 0
    for name in names:
        batch.append(name.decode("utf-8", "backslashreplace") + "\0")
        size += len(batch[-1])
        if size > _PIECE >> 3:  # each may take four octets, and a header has at most 1 MiB
            yield tarfile.TarInfo.create_pax_global_header({LISTED: "".join(batch)})
            batch, size = [], 0
    if batch:
        yield tarfile.TarInfo.create_pax_global_header({LISTED: "".join(batch)})


def _order(entry: TarEntry) -> bytes:
    return entry.path.encode("utf-8", "surrogateescape")
