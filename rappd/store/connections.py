"""SQLite connections to the store, and SQLite's errors in words."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rappd.errors import StoreError
from rappd.store import schema
from rappd.store.former_journal import finish_journal

T = TypeVar("T")

BUSY_MS = 5000
ANCHORS = "anchors.db"
"""The file of the signed anchors, beside the database."""


def open_writing(path: Path) -> sqlite3.Connection:
    """The connection that writes: creates the file (0600) and its folder (0700), migrates, sets WAL.

    Commits by explicit ``BEGIN``/``COMMIT`` only; never checkpoints by itself.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _make_private(path)
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA fullfsync = ON")  # macOS: a sync that reaches the disk
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA cache_size = -8000")
        # Beyond what the checkpointer lets the log grow to: else each start over would cut it off, only to write it anew.
        db.execute(f"PRAGMA journal_size_limit = {128 << 20}")
        db.execute("PRAGMA trusted_schema = OFF")
        finish_journal(path, db)
        schema.bring_up_to_date(db)
    except BaseException:
        db.close()
        raise
    return db


def open_reading(path: Path) -> sqlite3.Connection:
    """A read-only connection, whether the daemon runs or not. A missing file reads as an empty store."""
    if path.exists():
        db, version = connect_reading(path, schema.version_of)
        if version == schema.VERSION:
            return db
        db.close()
        if version:
            raise StoreError(
                f"The record has the form of an older rappd (schema {version} of {schema.VERSION}).",
                do="`rappd start` once brings it up to date.",
            )
    empty = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    schema.bring_up_to_date(empty)
    return empty


def connect_reading(
    path: Path, look: Callable[[sqlite3.Connection], T], *, immutable: bool = False
) -> tuple[sqlite3.Connection, T]:
    """A read-only connection to a file that is there, and what ``look`` finds in it first.

    On a disk that is read-only, too, where SQLite cannot make the index of its log. ``immutable``: nobody writes.
    """
    where = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"
    try:
        return _looked(_connected(where), look)
    except sqlite3.OperationalError as error:
        no_index = _family(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if not no_index or os.access(path.parent, os.W_OK):
            raise
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return _looked(_connected(f"{path.absolute().as_uri()}?mode=ro&immutable=1"), look)
    with tempfile.TemporaryDirectory(prefix="rappd-") as folder:  # its files stay while they are open
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(log.name))
        return _looked(_connected(copy.as_uri()), look)


def _connected(where: str) -> sqlite3.Connection:
    return sqlite3.connect(
        where, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000
    )


def _looked(db: sqlite3.Connection, look: Callable[[sqlite3.Connection], T]) -> tuple[sqlite3.Connection, T]:
    try:
        return db, look(db)
    except BaseException:
        db.close()
        raise


@contextmanager
def in_words(path: Path) -> Iterator[None]:
    """Lets errors of SQLite and of the system leave as ``StoreError``."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(error, path) from error


def explain(error: BaseException, path: Path) -> StoreError:
    """Translates an error of SQLite (or the system) into words for the owner."""
    family = _family(error)
    if is_full(error):
        return StoreError(
            f"The disk is full; {path.name} cannot grow. What was answered is kept.",
            remedy=f"Free some space where {path.parent} lies",
        )
    if family in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        if path.name == ANCHORS:
            return StoreError(
                f"{path.name} is damaged.",
                do=f"`rappd stop`, move {path} away, `rappd threads accept`: the conversations stay, and what was"
                " signed before is compared no more.",
            )
        return StoreError(
            f"{path.name} is damaged.",
            do=f"`rappd doctor` says what is missing. `rappd restore` puts a backup back; without one, move"
            f" {path} away: the next start makes a new one, and the old records are lost.",
        )
    if family in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM) or isinstance(
        error, PermissionError
    ):
        return StoreError(f"{path} cannot be opened for this.", do=f"Make {path.parent} yours and writable.")
    if family in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            f"Another program has kept {path.name} locked for {BUSY_MS // 1000} s.",
            remedy="Close it",
        )
    return StoreError(f"{path.name} could not be used: {error}.", do="Try again; if it stays, see the log.")


def is_full(error: BaseException) -> bool:
    """True for an error of SQLite (or the system) that says that the disk is full."""
    return (
        _family(error) == sqlite3.SQLITE_FULL
        or getattr(error, "sqlite_errorcode", 0)
        == sqlite3.SQLITE_IOERR_SHMSIZE  # no room for the log's index
        or getattr(error, "errno", 0) == errno.ENOSPC
    )


def is_damage(error: BaseException) -> bool:
    """True for an error of SQLite that says that the file is damaged or cannot be read from the disk."""
    return _family(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)


def _family(error: BaseException) -> int:
    # The low byte is the error's family; the rest says which system call noticed.
    return int(getattr(error, "sqlite_errorcode", -1)) & 0xFF


def _make_private(path: Path) -> None:
    # An existing file is never opened here: closing any descriptor of it would drop the locks
    # that SQLite holds on it in this process (POSIX advisory locks).
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        path.chmod(0o600)
