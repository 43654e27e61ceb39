"""The file's form: append-only by trigger, versioned, migrated with what it holds, never touched when it is too new."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from rappd.errors import StoreError
from rappd.store import schema
from rappd.store.inbox_table import InboxTable
from rappd.store.outbox_table import OutboxTable
from rappd.store.peer_table import PeerTable
from rappd.store.reader import Reader
from rappd.store.store import Store
from rappd.store.token_table import TokenTable
from rappd.store.verify import verify
from rappd.store.write_operations import ClaimState, InboxClaim

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


@pytest.mark.parametrize("version", range(1, schema.VERSION))
async def test_an_older_record_goes_on_and_gets_the_new_tables(
    path: Path, say, about, as_version, version: int
) -> None:
    with as_version(version):
        store = await Store.open(path)
        store.thread(about(A))
        await store.commit(say(A, "before"))
        await store.close()
    store = await Store.open(path)
    taking = InboxClaim("p", "1", "HELP", "started", "brainstem", A, b"", 1, [say(A, "after", id="1")])
    assert await store.claim(taking) is None
    assert await store.claim(taking) == ClaimState("started", A)
    assert [event.n for event in await store.thread_events(A)] == [1, 2]
    assert await OutboxTable(store).outgoing() == await PeerTable(store).peers() == []
    assert await TokenTable(store).tokens() == []
    await store.close()
    assert (verify(path).events, verify(path).problems) == (2, [])


@pytest.mark.parametrize("version", range(3, schema.VERSION))
async def test_what_was_taken_before_stays_taken(path: Path, say, about, as_version, version: int) -> None:
    with as_version(version):
        store = await Store.open(path)
        store.thread(about(A))
        for number, state in enumerate(("accepted", "started", "started"), start=1):
            said = [say(A, f"asked {number}", id=str(number))] if state == "started" else []
            taking = InboxClaim("p", str(number), "HELP", state, "rose", A, b"body", number, said)
            assert await store.claim(taking) is None
        await store.commit_reply(say(A, "done", id="3", recipient="p"), "p", "3", "HELP")
        await store.close()
        with contextlib.closing(sqlite3.connect(path)) as db:  # as they were left then
            db.execute("INSERT INTO inbox VALUES('p', '4', 'HELP', 'done', 'rose', 'there', 1, x'')")
            db.commit()
    store = await Store.open(path)
    rows = await InboxTable(store).unfinished()
    assert [(row.id, row.state, row.body) for row in rows] == [
        ("1", "accepted", b"body"),
        ("2", "started", b"body"),
    ]
    assert await InboxTable(store).find("p", "3", "HELP") == ClaimState("done", A)
    assert await InboxTable(store).find("p", "4", "HELP") == ClaimState("done", "there")
    assert await InboxTable(store).forget_before(10) == 1
    await store.close()


async def test_the_tables_hold_what_they_are_meant_for_only(store: Store, path: Path) -> None:
    db = sqlite3.connect(path)
    for statement in (
        "INSERT INTO inbox VALUES('p', '1', 'HELP', 'unknown', 'w', 't', 1, x'')",
        "INSERT INTO token_uses VALUES('j', 'many', 1)",
        "INSERT INTO revoked_peers VALUES(NULL, 1)",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(statement)
    db.close()
