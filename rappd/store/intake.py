"""The intake: what was taken is written into this file at once, and carried into the tables by many.

To write a transaction into the tables takes SQLite half a dozen statements, each of which lets go of the interpreter, and
a page for each of them; here it is one write of a few hundred bytes. Who waits is told after that. What stands here
and not in the tables when a process dies is carried into them by whoever opens the record next.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rappd.store import syncing

FULL = 4 << 20
"""Bytes after which it is started over."""
ROOM = 1 << 20
RESERVE = 1 << 19
"""Enough for the tables to take what is behind at any time."""
MARK_BYTES = 16

_MAGIC = b"rappd intake 1\n\0"
_HEAD = struct.Struct(
    f"<{len(_MAGIC)}s{MARK_BYTES}sI"
)  # the record that it belongs to, and what its checksums begin with
_FRAME = struct.Struct("<IIQ")  # bytes, checksum, number
_NUMBER = struct.Struct("<Q")
_ZEROS = bytes(1 << 16)
_TRIES, _TRY_SECONDS = 10, 0.03


class Intake:
    """One process has it at a time. A frame is its length and checksum, its number, and what was written; numbers
    have no gap, and go on where a file before this one ended."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._first = self._last = self._seed = 0
        self._was_left = os.fstat(descriptor).st_size > 0
        self._at = self._end = _HEAD.size
        self._is_synced = False

    @classmethod
    def open(cls, path: Path) -> Intake | None:
        """The file beside the record, created (0600) where there is none; None when another process has it.
        Raises OSError."""
        for _ in range(_TRIES):
            descriptor = os.open(beside(path), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_there(descriptor, beside(path)):
                    return cls(descriptor, path)
                os.close(descriptor)  # who had it has removed it meanwhile
            except BlockingIOError:  # perhaps somebody who only carries on what a dead process left
                os.close(descriptor)
                time.sleep(_TRY_SECONDS)
        return None

    @property
    def is_used(self) -> bool:
        """Whether an earlier process left it, or anything was appended to it."""
        return self._was_left or self._last > self._first

    @property
    def is_full(self) -> bool:
        """Whether it is time to ``start_over``."""
        return self._at >= FULL

    @property
    def has_room(self) -> bool:
        """Whether ``make_room`` has nothing to do."""
        return self._end - self._at >= RESERVE

    @property
    def synced_by_descriptor(self) -> int | None:
        """What a sync of the file alone is enough for; None where ``sync`` has more to do."""
        return self._descriptor if self._is_synced else None

    def left(self, mark: bytes, carried: int) -> list[tuple[int, bytes]]:
        """What an earlier process wrote that the tables, which have all up to ``carried``, do not have: numbers and
        payloads, in order. Raises OSError."""
        frames = list(_frames(self._descriptor, mark, carried))
        self._at += sum(_FRAME.size + len(payload) for _, payload in frames)
        self._end = os.fstat(self._descriptor).st_size  # the rest is in reserve
        return [(number, payload) for number, payload in frames if number > carried]

    def begin(self, mark: bytes, last: int) -> None:
        """An empty file for the record with that mark; the next number follows ``last``. What stood in it is on
        the disk elsewhere. Raises OSError."""
        self._first = self._last = last
        self._was_left = False
        self._seed = secrets.randbits(32)  # no frame of before fits in here
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, _HEAD.pack(_MAGIC, mark, self._seed), 0)
        self._at = self._end = _HEAD.size
        self.make_room()

    def append(self, payload: bytes) -> int:
        """Survives the process when this returns: its number. Raises OSError; then nothing was appended."""
        number = self._last + 1
        numbered = _NUMBER.pack(number) + payload
        frame = struct.pack("<II", len(payload), zlib.crc32(numbered, self._seed)) + numbered
        if os.pwrite(self._descriptor, frame, self._at) != len(frame):
            raise OSError(28, "No space left on device")
        self._at += len(frame)
        self._last = number
        return number

    def start_over(self) -> None:
        """The next one is written to the beginning. All that stands in it is on the disk elsewhere."""
        self._at = _HEAD.size

    def sync(self) -> None:
        """All that was appended is on the disk when this returns. Raises OSError."""
        if not self._is_synced:
            self._is_synced = True
            syncing.sync_folder(self._path.parent)  # else a power cut could take the file with its name
        syncing.to_disk(self._descriptor)

    def make_room(self) -> bool:
        """Zeros ahead of what is used: a sync of a file that does not grow takes half as long, and on a full disk they
        are what ``give_room`` gives. False where the disk has no such reserve."""
        if not self.has_room:
            with suppress(OSError):
                for _ in range(ROOM // len(_ZEROS)):
                    self._end += os.pwrite(self._descriptor, _ZEROS, self._end)
        return self.has_room

    def give_room(self) -> bool:
        """Gives the disk back what is not used yet, for the tables; False where that is nothing. Raises OSError."""
        if self._end <= self._at:
            return False
        os.ftruncate(self._descriptor, self._at)
        self._end = self._at
        return True

    def close(self, *, remove: bool) -> None:
        """Gives it back. ``remove``: all that stands in it stands in the tables."""
        if remove:
            with suppress(FileNotFoundError):
                beside(self._path).unlink()
        os.close(self._descriptor)


def beside(path: Path) -> Path:
    """The file that belongs to the record at ``path``."""
    return path.with_name(f"{path.name}-intake")


def last_number(path: Path, mark: bytes, carried: int) -> int:
    """The last number in the file beside the record, whoever writes to it; ``carried`` where it holds no more.
    Raises OSError."""
    try:
        descriptor = os.open(beside(path), os.O_RDONLY)
    except FileNotFoundError:
        return carried
    try:
        return max((number for number, _ in _frames(descriptor, mark, carried)), default=carried)
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether a process that lives writes to it. Raises OSError."""
    descriptor = os.open(beside(path), os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _frames(descriptor: int, mark: bytes, carried: int) -> Iterator[tuple[int, bytes]]:
    """Numbers and payloads until the first that is none. Nothing where they begin later than the tables end: then
    the file belongs to a later moment of this record."""
    held = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    if len(held) < _HEAD.size:
        return
    magic, marked, seed = _HEAD.unpack_from(held)
    if (magic, marked) != (_MAGIC, mark):
        return
    at, last = _HEAD.size, None
    while at + _FRAME.size <= len(held):
        size, checksum, number = _FRAME.unpack_from(held, at)
        body = held[at + _FRAME.size - _NUMBER.size : at + _FRAME.size + size]
        if len(body) != _NUMBER.size + size or zlib.crc32(body, seed) != checksum:
            return
        if number != last + 1 if last is not None else number > carried + 1:
            return
        yield number, body[_NUMBER.size :]
        at, last = at + _FRAME.size + size, number
