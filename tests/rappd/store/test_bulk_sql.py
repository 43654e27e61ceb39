"""Several rows in one statement are the rows that as many statements would have made."""

from __future__ import annotations

import sqlite3

import pytest

from rappd.store.write_operations import MOST, MultiRowStatement


@pytest.mark.parametrize("count", [0, 1, 2, MOST - 1, MOST, MOST + 1, 3 * MOST + 5])
def test_any_number_of_rows(count: int) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE, c BLOB) STRICT")
    insert = MultiRowStatement("INSERT INTO t(a, b, c) VALUES", 3, "ON CONFLICT(b) DO NOTHING RETURNING a")
    rows = [(number, f"b{number}", bytearray(b"c")) for number in range(count)]
    assert [row[0] for row in insert.execute(db, rows)] == list(range(count))
    assert insert.execute(db, rows) == []
    assert db.execute("SELECT count(*), max(a), max(c) FROM t").fetchone() == (
        (count, count - 1, b"c") if count else (0, None, None)
    )


def test_one_row_that_is_refused_refuses_its_statement() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY) STRICT")
    with pytest.raises(sqlite3.IntegrityError):
        MultiRowStatement("INSERT INTO t VALUES", 1).execute(db, [(1,), (1,)])
    assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
