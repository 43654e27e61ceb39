"""The file's form: append-only by trigger, versioned, migrated, never touched when it is too new."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rappd.errors import StoreError
from rappd.store import schema
from rappd.store.reader import Reader
from rappd.store.store import Store
from rappd.store.verify import verify

A = "aaaaaaaa-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM events", "UPDATE events SET at = 0", "UPDATE events SET body = x'' WHERE n = 1"],
)
async def test_events_cannot_be_changed_by_accident(store: Store, path: Path, say, statement: str) -> None:
    await store.commit(say(A))
    await store.flush()
    db = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)
    db.close()
    assert verify(path).whole


async def test_a_record_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    await (await Store.open(path)).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    db.commit()
    db.close()
    for use in (lambda: Reader(path), lambda: verify(path), lambda: Store(path)):
        with pytest.raises(StoreError, match="newer rappd") as caught:
            use()
        assert caught.value.do
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (schema.VERSION + 1,)
    db.close()


async def test_an_older_record_is_migrated_on_opening_and_only_then(path: Path, say, monkeypatch) -> None:
    store = await Store.open(path)
    await store.commit(say(A))
    await store.close()
    monkeypatch.setattr(schema, "_MIGRATIONS", (*schema._MIGRATIONS, ("CREATE TABLE later(x)",)))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(StoreError, match="older rappd"):
        Reader(path)
    store = await Store.open(path)
    assert await store.commit(say(A)) == 2
    await store.close()
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM later").fetchone() == (0,)
    assert db.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
    db.close()


async def test_a_migration_that_fails_changes_nothing(path: Path, say, monkeypatch) -> None:
    store = await Store.open(path)
    await store.commit(say(A))
    await store.close()
    with monkeypatch.context() as patch:
        patch.setattr(
            schema, "_MIGRATIONS", (*schema._MIGRATIONS, ("CREATE TABLE later(x)", "CREATE TABLE later(x)"))
        )
        patch.setattr(schema, "VERSION", schema.VERSION + 1)
        with pytest.raises(StoreError):
            await Store.open(path)
    store = await Store.open(path)
    assert (await store.counts()).events == 1
    await store.close()
    assert verify(path).whole
