"""Writing an archive: streaming, flat in memory, and the same bytes for the same input."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from twins.eggs.archive.deflate import Deflating, crc32, deflated
from twins.eggs.archive.layout import (
    CENTRAL,
    CENTRAL_SIGN,
    DEFLATED,
    END,
    END64,
    END64_SIGN,
    END_SIGN,
    EPOCH,
    FIELD,
    FULL16,
    FULL32,
    LOCAL,
    LOCAL_SIGN,
    LOCATOR,
    LOCATOR_SIGN,
    STORED,
    UTF8,
    ZIP64_FIELD,
)
from twins.eggs.archive.limits import Limits
from twins.eggs.archive.names import NameSet, safe_path, shown
from twins.errors import BadFile, HostileEgg

PIECE = 1 << 20
"""Bytes in memory at once. A file up to this size is one piece; a larger one is streamed."""
_GATHERED = 1 << 20
_NEAR_4GB = 0xF0000000  # room for what deflate may add to what does not shrink
_THINNEST = 2  # how far below the reader's ratio every archive stays, as a divisor
_ZIP64_ROOM = FIELD.size + 16


class Written(NamedTuple):
    """One file as it went in: ``sha256`` is of its content, in hex."""

    name: str
    size: int
    sha256: str


class ArchiveWriter:
    """Writes a ZIP archive into ``file``, which is seekable, empty, and stays the caller's to close.

    ``stored`` gives the exact layout of RAPP/1 eggs (nothing deflated, no ZIP64). ``at`` is the time of
    all members (UTC if it names no zone), 1980-01-01 without one. The bytes depend on nothing but these and on what is added,
    in the order it is added; ISA-L and zlib deflate differently, so compare contents across machines,
    not archives. What ``Limits`` would refuse to read is refused here: ``BadFile``. After any error the
    file holds a piece of an archive and is to be thrown away.
    """

    def __init__(self, file: BinaryIO, *, stored: bool = False, at: datetime | None = None) -> None:
        if file.tell() != 0:
            raise ValueError("an archive begins at the file's first byte")
        self._file = file
        self._only_stored = stored
        self._moment = _moment(at)
        self._limits = Limits()
        self._names = NameSet()
        self._directory: list[bytes] = []
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
        if not self._usable:
            raise ValueError("this archive is finished or failed")
        self._usable = False
        self._accept(name)
        if isinstance(source, (bytes, bytearray, memoryview)):
            room = len(source) >= _NEAR_4GB
            written = self._add_pieces(name, _pieces(bytes(source)), room=room)
        elif isinstance(source, Path):
            written = self._add_path(name, source)
        else:
            written = self._add_pieces(name, _regrouped(source), room=True)
        self._usable = True
        return written

    def finish(self) -> int:
        """Writes the list of files and hands everything to the file, unsynced; returns the bytes in all."""
        if not self._usable:
            raise ValueError("this archive is finished or failed")
        self._usable = False
        start = self._offset
        for record in self._directory:
            self._put(record)
        size, count = self._offset - start, len(self._directory)
        if count >= FULL16 or start >= FULL32 or size >= FULL32:
            self._refuse_zip64()
            at = self._offset
            self._put(END64.pack(END64_SIGN, END64.size - 12, 45, 45, 0, 0, count, count, size, start))
            self._put(LOCATOR.pack(LOCATOR_SIGN, 0, at, 1))
        short = min(count, FULL16)
        self._put(END.pack(END_SIGN, 0, 0, short, short, min(size, FULL32), min(start, FULL32), 0))
        self._flush()
        self._file.flush()
        return self._offset

    def _accept(self, name: str) -> None:
        try:
            self._names.add(safe_path(name))
        except HostileEgg as error:
            raise BadFile(f"{shown(name)} cannot go into an egg: {error}", do="rename it") from error
        if len(self._directory) >= self._limits.members:
            raise BadFile(f"An egg holds {self._limits.members} files at most", do="pack less")

    def _add_path(self, name: str, path: Path) -> Written:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise BadFile(f"{shown(name)} cannot be read: {error.strerror}", do="look at the file") from error
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise BadFile(f"{shown(name)} is no regular file", do="leave it out")
            size = status.st_size
            if size <= PIECE:
                return self._add_whole(name, _exactly(handle, name, size))
            return self._add_pieces(name, _read(handle, name, size), room=size >= _NEAR_4GB)
        finally:
            os.close(handle)

    def _add_pieces(self, name: str, pieces: Iterator[bytes], *, room: bool) -> Written:
        """``room``: the size may need 64 bits."""
        first = next(pieces, b"")
        second = next(pieces, None) if len(first) == PIECE else None
        if second is None:
            return self._add_whole(name, first)
        return self._add_streamed(name, first, chain((second,), pieces), room=room)

    def _add_whole(self, name: str, content: bytes) -> Written:
        size = len(content)
        packed, method = content, STORED
        if not self._only_stored and not self._too_thin(size):
            shrunk = deflated(content)
            if len(shrunk) < size:
                packed, method = shrunk, DEFLATED
        crc = crc32(content)
        raw = name.encode()
        offset = self._offset
        time, date = self._moment
        head = LOCAL.pack(LOCAL_SIGN, 20, UTF8, method, time, date, crc, len(packed), size, len(raw), 0)
        self._put(head, raw, packed)
        self._list(raw, 20, method, crc, len(packed), size, offset)
        return Written(name, size, hashlib.sha256(content).hexdigest())

    def _add_streamed(self, name: str, first: bytes, rest: Iterable[bytes], *, room: bool) -> Written:
        raw = name.encode()
        offset = self._offset
        room = room and not self._only_stored
        head = LOCAL.size + len(raw) + (_ZIP64_ROOM if room else 0)
        self._put(bytes(head))
        stream = None
        if not self._only_stored and len(deflated(first)) < len(first):
            stream = Deflating()
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
        compressed = self._offset - offset - head
        if not room and max(size, compressed) >= FULL32:
            self._refuse_zip64()
            raise BadFile(f"{shown(name)} changed while it was packed", do="try again")
        method = DEFLATED if stream else STORED
        self._patch(offset, _local(raw, room, method, self._moment, crc, compressed, size))
        self._list(raw, 45 if room else 20, method, crc, compressed, size, offset)
        return Written(name, size, digest.hexdigest())

    def _too_thin(self, size: int) -> bool:
        """Whether the reader could take the archive for a bomb, were ``size`` more bytes to shrink to nothing."""
        content = self._content_bytes + size
        return content > self._limits.harmless and content * _THINNEST > self._offset * self._limits.ratio

    def _list(
        self, raw: bytes, version: int, method: int, crc: int, compressed: int, size: int, offset: int
    ) -> None:
        self._content_bytes += size
        if self._content_bytes > self._limits.total:
            raise BadFile(f"An egg holds {self._limits.total >> 30} GB at most", do="pack less")
        long = [value for value in (size, compressed, offset) if value >= FULL32]
        extra = b""
        if long:
            self._refuse_zip64()
            version = 45
            extra = FIELD.pack(ZIP64_FIELD, 8 * len(long)) + b"".join(n.to_bytes(8, "little") for n in long)
        time, date = self._moment
        small, short, near = min(size, FULL32), min(compressed, FULL32), min(offset, FULL32)
        head = CENTRAL.pack(
            CENTRAL_SIGN, version, version, UTF8, method, time, date, crc, short, small,
            len(raw), len(extra), 0, 0, 0, 0, near,
        )  # fmt: skip
        self._directory.append(head + raw + extra)

    def _refuse_zip64(self) -> None:
        if self._only_stored:
            raise BadFile(
                "This is too much for a RAPP/1 egg, which ends at 4 GB", do="pack another kind of egg"
            )

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

    def _patch(self, offset: int, octets: bytes) -> None:
        self._flush()
        self._file.seek(offset)
        self._file.write(octets)
        self._file.seek(self._offset)


def _local(
    raw: bytes, room: bool, method: int, moment: tuple[int, int], crc: int, compressed: int, size: int
) -> bytes:
    extra = b""
    version, short, small = 20, compressed, size
    if room:
        extra = FIELD.pack(ZIP64_FIELD, 16) + size.to_bytes(8, "little") + compressed.to_bytes(8, "little")
        version, short, small = 45, FULL32, FULL32
    head = LOCAL.pack(LOCAL_SIGN, version, UTF8, method, *moment, crc, short, small, len(raw), len(extra))
    return head + raw + extra


def _moment(at: datetime | None) -> tuple[int, int]:
    """DOS time and date, to two seconds; what ZIP cannot say is brought to its first or last year."""
    if at is None:
        return EPOCH
    at = at.astimezone(UTC) if at.tzinfo else at
    if at.year < 1980:
        return EPOCH
    year = min(at.year, 2107)
    return at.hour << 11 | at.minute << 5 | at.second >> 1, (year - 1980) << 9 | at.month << 5 | at.day


def _pieces(content: bytes) -> Iterator[bytes]:
    if len(content) <= PIECE:
        yield content
        return
    for at in range(0, len(content), PIECE):
        yield content[at : at + PIECE]


def _regrouped(source: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of ``PIECE``, so that how they came does not show in the archive."""
    held = bytearray()
    for part in source:
        rest = memoryview(part)
        while len(held) + len(rest) >= PIECE:
            taken = PIECE - len(held)
            yield bytes(held + rest[:taken])
            held.clear()
            rest = rest[taken:]
        held += rest
    if held:
        yield bytes(held)


def _read(handle: int, name: str, size: int) -> Iterator[bytes]:
    for at in range(0, size, PIECE):
        yield _exactly(handle, name, min(PIECE, size - at))


def _exactly(handle: int, name: str, count: int) -> bytes:
    piece = os.read(handle, count)
    while len(piece) < count:
        more = os.read(handle, count - len(piece))
        if not more:
            raise BadFile(f"{shown(name)} changed while it was packed", do="try again")
        piece += more
    return piece
