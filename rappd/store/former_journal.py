"""Refuses a record whose former write-ahead journal still holds events; removes an empty one.

Versions with schema 7 and 8 wrote events into a file beside the database (``rappd.db-intake``) before SQLite had them.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
import zlib
from pathlib import Path

from rappd.errors import StoreError

_MAGIC = b"rappd intake 1\n\0"
_HEAD = struct.Struct("<16s16sI")  # magic, mark of the database, start value of the checksums
_FRAME = struct.Struct("<IIQ")  # size, checksum, number
_SCHEMAS = (7, 8)


def journal_path(path: Path) -> Path:
    """The path of the former journal of the database at ``path``."""
    return path.with_name(f"{path.name}-intake")


def check_journal(path: Path, db: sqlite3.Connection) -> None:
    """Raises ``StoreError`` when the journal holds events that the database ``db`` lacks."""
    journal = journal_path(path)
    if db.execute("PRAGMA user_version").fetchone()[0] not in _SCHEMAS or not journal.exists():
        return
    mark, carried = db.execute("SELECT mark, carried FROM intake").fetchone()
    if _last_frame(journal.read_bytes(), mark, carried) > carried:
        raise StoreError(
            f"{journal.name} holds events that an earlier version of rappd acknowledged and {path.name} lacks.",
            do="Install the version that was there before, run `rappd start` and `rappd stop` once with it, which moves"
            " them, then install this version again. Nothing is lost until then.",
        )


def finish_journal(path: Path, db: sqlite3.Connection) -> None:
    """Removes an empty journal before the database is migrated.

    Raises ``StoreError`` when it is not empty, or when a process of an earlier version uses it; both files
    are left as they are.
    """
    journal = journal_path(path)
    if not journal.exists():
        return
    descriptor = os.open(journal, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        check_journal(path, db)
        journal.unlink()
    except BlockingIOError as error:
        raise StoreError(
            f"A process of an earlier version of rappd uses {path.name}.",
            do="Run `rappd stop`, then try again.",
        ) from error
    finally:
        os.close(descriptor)


def _last_frame(content: bytes, mark: bytes, carried: int) -> int:
    """The number of the last whole frame that follows what the database has; ``carried`` when there is none."""
    if len(content) < _HEAD.size:
        return carried
    magic, marked, seed = _HEAD.unpack_from(content)
    if (magic, marked) != (_MAGIC, mark):
        return carried
    at, last = _HEAD.size, None
    while at + _FRAME.size <= len(content):
        size, checksum, number = _FRAME.unpack_from(content, at)
        body = content[at + _FRAME.size - 8 : at + _FRAME.size + size]
        if len(body) != 8 + size or zlib.crc32(body, seed) != checksum:
            break
        if number != last + 1 if last is not None else number > carried + 1:
            break
        at, last = at + _FRAME.size + size, number
    return max(carried, last if last is not None else carried)
