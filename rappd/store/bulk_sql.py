"""SQL statements that take several rows.

SQLite lets go of the interpreter at every statement, and a busy event loop is slow to give it back: for the
writer, that is most of what a statement costs. A row that comes alone is another matter: what makes a table of
several rows makes SQLite set up a temporary database for it, which takes ten times as long as the row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

MOST = 32
"""The most rows in one statement; each number of rows is a statement of its own, which SQLite keeps prepared."""

Row = tuple[Any, ...]


class MultiRowStatement:
    """``begin`` + ``(?,?),(?,?)…`` + ``end``, each row of so many ``columns``; ``alone`` does the same for one."""

    def __init__(self, begin: str, columns: int, end: str = "", *, alone: str | None = None) -> None:
        row = f"({','.join('?' * columns)})"
        self._statements = [f"{begin} {','.join([row] * rows)} {end}" for rows in range(MOST + 1)]
        if alone is not None:
            self._statements[1] = alone

    def execute(self, db: sqlite3.Connection, rows: Sequence[Sequence[object]]) -> list[Row]:
        """Executes it for all rows in order and returns the resulting rows."""
        if len(rows) == 1:
            return db.execute(self._statements[1], rows[0]).fetchall()
        found: list[Row] = []
        for first in range(0, len(rows), MOST):
            some = rows[first : first + MOST]
            values = list(chain.from_iterable(some))
            found += db.execute(self._statements[len(some)], values).fetchall()
        return found
