"""Writing an archive: streaming, flat in memory, and the same bytes for the same input, on however many cores."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from twins.errors import BadFileError, HostileEggError
from twins.fs.untrusted_names import NameSet, safe_path, shown
from twins.zip.archive_bounds import Limits
from twins.zip.chunks import PIECE, exactly, of_bytes, of_file, of_parts, opened
from twins.zip.deflate import END, crc32, deflated, deflated_piece, plain_piece
from twins.zip.ordered_pool import OrderedThreadPool
from twins.zip.record_formats import DEFLATED, FULL32, STORED
from twins.zip.record_writer import MemberRecord, before, before_length, ending, is_wide, listed, moment

__all__ = ["PIECE", "ArchiveWriter", "WrittenArchive"]

_GATHERED = 1 << 20
_BATCH_BYTES, _BATCH_FILES = 1 << 18, 32  # small files that are deflated together
_NEAR_4GB = 0xF0000000  # room for what deflate may add to what does not shrink
_THINNEST = 2  # how far below the reader's ratio every archive stays, as a divisor


class WrittenArchive(NamedTuple):
    """One file as it went in: ``sha256`` is of its content, in hex."""

    name: str
    size: int
    sha256: str


class _Stream:
    """A file of several pieces on its way. ``shrinks``: whether its first piece was worth deflating."""

    def __init__(self, name: str, *, room: bool) -> None:
        """``room``: its record has room for sizes of 64 bits."""
        self.raw = name.encode()
        self.room = room
        self.crc = 0
        self.size = 0
        self.offset = 0
        self.shrinks = True

    def first(self, piece: bytes) -> bytes:
        """The first piece, deflated."""
        packed = deflated_piece(piece)
        self.shrinks = len(packed) < len(piece)
        return packed

    def other(self, piece: bytes) -> bytes:
        """Any other, which may come before the first; b"" where it is known by now that it stays as it is."""
        return deflated_piece(piece) if self.shrinks else b""


_Packing = Callable[[bytes], bytes]
_Append = Callable[[bytes, bytes], None]
_Waiting = tuple[_Packing, bytes, _Append]
_Ready = tuple[_Append, bytes, bytes]


class ArchiveWriter:
    """Writes a ZIP archive into ``file``, which is seekable, empty, and stays the caller's to close.

    A context manager. Contents are read and hashed by the thread that adds them and deflated on other cores;
    they are in ``file`` in the order they were added, the last of them after ``finish``.

    ``stored`` gives the exact layout of RAPP/1 eggs (nothing deflated, no ZIP64). ``at`` is the time of
    all members (UTC if it names no zone), 1980-01-01 without one. The bytes depend on nothing but these
    and on what is added, in the order it is added; ISA-L and zlib deflate differently, so compare
    contents across machines, not archives. What ``Limits`` would refuse to read is refused here:
    ``BadFileError``. After any error the file holds a piece of an archive and is to be thrown away.
    """

    def __init__(self, file: BinaryIO, *, stored: bool = False, at: datetime | None = None) -> None:
        if file.tell() != 0:
            raise ValueError("an archive begins at the file's first byte")
        self._file = file
        self._only_stored = stored
        self._moment = moment(at)
        self._limits = Limits()
        self._names = NameSet()
        self._files = 0  # taken in
        self._list: list[bytes] = []
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._offset = 0  # of the next byte, the gathered ones included
        self._content_bytes = 0
        self._usable = True
        self._ahead: OrderedThreadPool[list[_Ready]] = OrderedThreadPool()
        self._batch: list[_Waiting] = []
        self._batch_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ahead.close()

    def add(self, name: str, source: bytes | Path | Iterable[bytes]) -> WrittenArchive:
        """Takes in one file: its bytes, a path to a regular file (links are not followed), or its pieces.

        Raises ``BadFileError`` for a name that no egg may carry, a name that is already there, and a file
        that cannot be packed or changes while it is; for what was added before, too.
        """
        self._begin()
        self._accept(name)
        if isinstance(source, Path):
            written = self._add_file(name, source)
        elif isinstance(source, (bytes, bytearray, memoryview)):
            written = self._add_pieces(name, of_bytes(bytes(source)), room=len(source) >= _NEAR_4GB)
        else:
            written = self._add_pieces(name, of_parts(source), room=True)
        self._usable = True
        return written

    @property
    def is_usable(self) -> bool:
        """False once something could not be written, and when the archive is finished: it takes no more."""
        return self._usable

    def finish(self) -> int:
        """Writes the list of files and hands everything to the file, unsynced; returns the bytes in all."""
        self._begin()
        self._hand_in()
        for ready in self._ahead.rest():
            self._append_all(ready)
        self._ahead.close()
        start = self._offset
        self._put(*self._list)
        size = self._offset - start
        if is_wide(len(self._list), size, start):
            self._refuse_wide()
        self._put(ending(len(self._list), size, start))
        self._flush()
        self._file.flush()
        return self._offset

    def _begin(self) -> None:
        if not self._usable:
            raise ValueError("this archive is finished or failed")
        self._usable = False

    def _accept(self, name: str) -> None:
        try:
            self._names.add(safe_path(name))
        except HostileEggError as error:
            raise BadFileError(f"{shown(name)} cannot go into an egg: {error}", do="rename it") from error
        self._files += 1
        if self._files > self._limits.members:
            raise BadFileError(f"An egg holds {self._limits.members} files at most", do="pack less")

    def _add_file(self, name: str, path: Path) -> WrittenArchive:
        handle, size = opened(path, name)
        try:
            if size <= PIECE:
                return self._add_whole(name, exactly(handle, size, name))
            return self._add_pieces(name, of_file(handle, size, name), room=size >= _NEAR_4GB)
        finally:
            os.close(handle)

    def _add_pieces(self, name: str, pieces: Iterator[bytes], *, room: bool) -> WrittenArchive:
        """``room``: the size may need more than 32 bits."""
        first = next(pieces, b"")
        second = next(pieces, None) if len(first) == PIECE else None
        if second is None:
            return self._add_whole(name, first)
        return self._add_stream(name, first, chain((second,), pieces), room=room and not self._only_stored)

    def _add_whole(self, name: str, content: bytes) -> WrittenArchive:
        self._later(deflated, content, partial(self._append_whole, name.encode(), crc32(content)))
        return WrittenArchive(name, len(content), hashlib.sha256(content).hexdigest())

    def _add_stream(self, name: str, first: bytes, rest: Iterable[bytes], *, room: bool) -> WrittenArchive:
        stream = _Stream(name, room=room)
        digest = hashlib.sha256(first)
        crc, size = crc32(first), len(first)
        self._later(stream.first, first, partial(self._append_first, stream))
        append = partial(self._append_piece, stream)
        for piece in rest:
            digest.update(piece)
            crc = crc32(piece, crc)
            size += len(piece)
            if size > self._limits.member_size:
                raise BadFileError(f"{shown(name)} is too large for an egg", do="leave it out")
            self._later(stream.other, piece, append)
        stream.crc = crc
        self._later(_nothing, b"", partial(self._append_end, stream))
        return WrittenArchive(name, size, digest.hexdigest())

    def _later(self, packing: _Packing, content: bytes, append: _Append) -> None:
        """Has ``append(content, packing(content))`` called when all before it is in the archive."""
        if self._only_stored:
            append(content, b"")
            return
        self._batch.append((packing, content, append))
        self._batch_bytes += len(content)
        if self._batch_bytes >= _BATCH_BYTES or len(self._batch) >= _BATCH_FILES:
            self._hand_in()

    def _hand_in(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        for ready in self._ahead.put(partial(_packed, batch)):
            self._append_all(ready)

    def _append_all(self, ready: list[_Ready]) -> None:
        for append, content, packed in ready:
            append(content, packed)

    def _append_whole(self, raw: bytes, crc: int, content: bytes, packed: bytes) -> None:
        size = len(content)
        shrinks = not self._only_stored and len(packed) < size and not self._too_thin(size)
        method, octets = (DEFLATED, packed) if shrinks else (STORED, content)
        record = MemberRecord(raw, False, method, crc, len(octets), size)
        offset = self._offset
        self._put(before(record, self._moment), octets)
        self._enter(record, offset)

    def _append_first(self, stream: _Stream, content: bytes, packed: bytes) -> None:
        """Writes the first file; its record is filled in at the end."""
        if self._only_stored:
            stream.shrinks = False
        stream.offset = self._offset
        self._put(bytes(before_length(stream.raw, room=stream.room)))
        self._append_piece(stream, content, packed)

    def _append_piece(self, stream: _Stream, content: bytes, packed: bytes) -> None:
        stream.size += len(content)
        if stream.shrinks:
            self._put(plain_piece(content) if self._too_thin(stream.size) else packed)
        else:
            self._put(content)

    def _append_end(self, stream: _Stream, _: bytes, __: bytes) -> None:
        if stream.shrinks:
            self._put(END)
        raw, room, size, offset = stream.raw, stream.room, stream.size, stream.offset
        compressed = self._offset - offset - before_length(raw, room=room)
        if not room and max(size, compressed) >= FULL32:
            self._refuse_wide()
        record = MemberRecord(raw, room, DEFLATED if stream.shrinks else STORED, stream.crc, compressed, size)
        self._flush()
        self._file.seek(offset)
        self._file.write(before(record, self._moment))
        self._file.seek(self._offset)
        self._enter(record, offset)

    def _too_thin(self, size: int) -> bool:
        """True when the reader could take the archive for a bomb, were ``size`` more bytes to shrink to nothing."""
        content = self._content_bytes + size
        return content > self._limits.harmless and content * _THINNEST > self._offset * self._limits.ratio

    def _enter(self, record: MemberRecord, offset: int) -> None:
        self._content_bytes += record.size
        if self._content_bytes > self._limits.total:
            raise BadFileError(f"An egg holds {self._limits.total >> 30} GB at most", do="pack less")
        if offset >= FULL32:
            self._refuse_wide()
        self._list.append(listed(record, self._moment, offset))

    def _refuse_wide(self) -> None:
        if self._only_stored:
            raise BadFileError("A RAPP/1 egg ends at 4 GB and 65,534 files", do="pack another kind of egg")

    def _put(self, *parts: bytes) -> None:
        self._gathered += parts
        octets = sum(map(len, parts))
        self._offset += octets
        self._gathered_bytes += octets
        if self._gathered_bytes >= _GATHERED:
            self._flush()

    def _flush(self) -> None:
        self._file.write(b"".join(self._gathered))
        self._gathered.clear()
        self._gathered_bytes = 0


def _packed(batch: list[_Waiting]) -> list[_Ready]:
    return [(append, content, packing(content)) for packing, content, append in batch]


def _nothing(_: bytes) -> bytes:
    return b""
