"""Writing an archive: streaming, flat in memory, and the same bytes for the same input."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from twins.eggs.archive.deflate import Deflating, crc32, deflated
from twins.eggs.archive.layout import DEFLATED, FULL32, STORED
from twins.eggs.archive.limits import Limits
from twins.eggs.archive.names import NameSet, safe_path, shown
from twins.eggs.archive.pieces import PIECE, exactly, of_bytes, of_file, of_parts, opened
from twins.eggs.archive.records import Told, before, before_length, ending, is_wide, listed, moment
from twins.errors import BadFile, HostileEgg

__all__ = ["PIECE", "ArchiveWriter", "Written"]

_GATHERED = 1 << 20
_NEAR_4GB = 0xF0000000  # room for what deflate may add to what does not shrink
_THINNEST = 2  # how far below the reader's ratio every archive stays, as a divisor


class Written(NamedTuple):
    """One file as it went in: ``sha256`` is of its content, in hex."""

    name: str
    size: int
    sha256: str


class ArchiveWriter:
    """Writes a ZIP archive into ``file``, which is seekable, empty, and stays the caller's to close.

    ``stored`` gives the exact layout of RAPP/1 eggs (nothing deflated, no ZIP64). ``at`` is the time of
    all members (UTC if it names no zone), 1980-01-01 without one. The bytes depend on nothing but these
    and on what is added, in the order it is added; ISA-L and zlib deflate differently, so compare
    contents across machines, not archives. What ``Limits`` would refuse to read is refused here:
    ``BadFile``. After any error the file holds a piece of an archive and is to be thrown away.
    """

    def __init__(self, file: BinaryIO, *, stored: bool = False, at: datetime | None = None) -> None:
        if file.tell() != 0:
            raise ValueError("an archive begins at the file's first byte")
        self._file = file
        self._only_stored = stored
        self._moment = moment(at)
        self._limits = Limits()
        self._names = NameSet()
        self._list: list[bytes] = []
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._offset = 0  # of the next byte, the gathered ones included
        self._content_bytes = 0
        self._usable = True

    def add(self, name: str, source: bytes | Path | Iterable[bytes]) -> Written:
        """Appends one file: its bytes, a path to a regular file (links are not followed), or its pieces.

        Raises ``BadFile`` for a name that no egg may carry, a name that is already there, and a file
        that cannot be packed or changes while it is.
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

    def finish(self) -> int:
        """Writes the list of files and hands everything to the file, unsynced; returns the bytes in all."""
        self._begin()
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
        except HostileEgg as error:
            raise BadFile(f"{shown(name)} cannot go into an egg: {error}", do="rename it") from error
        if len(self._list) >= self._limits.members:
            raise BadFile(f"An egg holds {self._limits.members} files at most", do="pack less")

    def _add_file(self, name: str, path: Path) -> Written:
        handle, size = opened(path, name)
        try:
            if size <= PIECE:
                return self._add_whole(name, exactly(handle, size, name))
            return self._add_pieces(name, of_file(handle, size, name), room=size >= _NEAR_4GB)
        finally:
            os.close(handle)

    def _add_pieces(self, name: str, pieces: Iterator[bytes], *, room: bool) -> Written:
        """``room``: the size may need more than 32 bits."""
        first = next(pieces, b"")
        second = next(pieces, None) if len(first) == PIECE else None
        if second is None:
            return self._add_whole(name, first)
        return self._add_streamed(name, first, chain((second,), pieces), room=room and not self._only_stored)

    def _add_whole(self, name: str, content: bytes) -> Written:
        size = len(content)
        packed, method = content, STORED
        if not self._only_stored and not self._too_thin(size):
            shrunk = deflated(content)
            if len(shrunk) < size:
                packed, method = shrunk, DEFLATED
        told = Told(name.encode(), False, method, crc32(content), len(packed), size)
        offset = self._offset
        self._put(before(told, self._moment), packed)
        self._enter(told, offset)
        return Written(name, size, hashlib.sha256(content).hexdigest())

    def _add_streamed(self, name: str, first: bytes, rest: Iterable[bytes], *, room: bool) -> Written:
        """The first piece decides whether it is worth deflating. Its record is filled in afterwards."""
        raw = name.encode()
        offset = self._offset
        length = before_length(raw, room=room)
        self._put(bytes(length))
        shrinks = not self._only_stored and len(deflated(first)) < len(first)
        stream = Deflating() if shrinks else None
        size = crc = 0
        digest = hashlib.sha256()
        for piece in chain((first,), rest):
            digest.update(piece)
            crc = crc32(piece, crc)
            size += len(piece)
            if size > self._limits.member_size:
                raise BadFile(f"{shown(name)} is too large for an egg", do="leave it out")
            self._put(stream.piece(piece, plain=self._too_thin(size)) if stream else piece)
        if stream:
            self._put(stream.end())
        compressed = self._offset - offset - length
        if not room and max(size, compressed) >= FULL32:
            self._refuse_wide()
        told = Told(raw, room, DEFLATED if stream else STORED, crc, compressed, size)
        self._flush()
        self._file.seek(offset)
        self._file.write(before(told, self._moment))
        self._file.seek(self._offset)
        self._enter(told, offset)
        return Written(name, size, digest.hexdigest())

    def _too_thin(self, size: int) -> bool:
        """Whether the reader could take the archive for a bomb, were ``size`` more bytes to shrink to nothing."""
        content = self._content_bytes + size
        return content > self._limits.harmless and content * _THINNEST > self._offset * self._limits.ratio

    def _enter(self, told: Told, offset: int) -> None:
        self._content_bytes += told.size
        if self._content_bytes > self._limits.total:
            raise BadFile(f"An egg holds {self._limits.total >> 30} GB at most", do="pack less")
        if offset >= FULL32:
            self._refuse_wide()
        self._list.append(listed(told, self._moment, offset))

    def _refuse_wide(self) -> None:
        if self._only_stored:
            raise BadFile("A RAPP/1 egg ends at 4 GB and 65,534 files", do="pack another kind of egg")

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
