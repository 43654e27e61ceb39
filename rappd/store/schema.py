"""The tables (``schema.sql``), and how a file written by an older version gets them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rappd.errors import StoreError

_APPLICATION_ID = 0x52415050  # "RAPP", for file(1)


def _read(text: str) -> tuple[tuple[str, ...], ...]:
    """The statements of each version, which begins with its number in a comment."""
    versions: list[list[str]] = []
    statement = ""
    for line in text.splitlines():
        if line.startswith("-- version "):
            versions.append([])
        elif not line.startswith("--"):
            statement += f"{line}\n"
            if sqlite3.complete_statement(statement):
                versions[-1].append(statement.strip().removesuffix(";"))
                statement = ""
    return tuple(map(tuple, versions))


_MIGRATIONS = _read(Path(__file__).with_suffix(".sql").read_text("utf-8"))
VERSION = len(_MIGRATIONS)


def bring_up_to_date(db: sqlite3.Connection) -> None:
    """Runs the migrations that this file lacks, all of them or none.

    ``StoreError`` when the file was written by a newer version; it is left as it is.
    """
    version = version_of(db)
    if version == VERSION:
        return
    if version == 0:
        db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    with db:  # commits, or rolls back
        db.execute("BEGIN IMMEDIATE")
        for statements in _MIGRATIONS[version:VERSION]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")


def version_of(db: sqlite3.Connection) -> int:
    """The file's schema version, 0 for an empty file; ``StoreError`` when it is from the future."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise StoreError(
            f"The record was written by a newer rappd (schema {version}, this one knows {VERSION}).",
            do="Update rappd; the record is left as it is.",
        )
    return version
