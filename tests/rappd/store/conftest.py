"""An open store, and records to put into it."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import orjson
import pytest

from rappd.store import schema, transactions
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store
from rappd.store.write_operations import MultiRowStatement

Say = Callable[..., Record]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "rappd.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(path)
    yield opened
    await opened.close()


@pytest.fixture
def say() -> Say:
    """``say(thread, text, …)``: a record as the dispatcher makes them; moments count up from 1,000,000."""
    clock = iter(range(1_000_000, 1 << 60))

    def make(
        thread: str,
        text: str = "hello",
        *,
        verb: str = "HELP",
        sender: str = "guid",
        recipient: str = "desk_4f2a",
        id: str = "",
        at: int = 0,
        answers: bool = False,
    ) -> Record:
        id = id or str(uuid.uuid4())
        data = {"user_input": text} if verb == "HELP" else {"response": text}
        envelope = {"id": id, "from": sender, "to": recipient, "verb": verb, "data": data}
        body = orjson.dumps({**envelope, "_x_thread": thread})
        return Record(thread, verb, sender, recipient, id, body, at or next(clock), answers)

    return make


@pytest.fixture
def about() -> Callable[..., ThreadInfo]:
    def make(
        thread: str, title: str = "hello", session: str | None = '"s"', at: int = 1_000_000
    ) -> ThreadInfo:
        return ThreadInfo(thread, "brainstem", "guid", session, title, at)

    return make


@pytest.fixture
def tamper(path: Path) -> Callable[..., None]:
    """Runs statements on the file as somebody would who does not care for the triggers."""

    def run(*statements: str) -> None:
        db = sqlite3.connect(path, isolation_level=None)
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)
        db.close()

    return run


@pytest.fixture
def as_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], AbstractContextManager[None]]:
    """``with as_version(8):`` stores are opened and written as that version of the schema had them."""

    @contextmanager
    def version(number: int) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(schema, "_MIGRATIONS", schema._MIGRATIONS[:number])
            patch.setattr(schema, "VERSION", number)
            if number < _PARENTS:
                patch.setattr(transactions, "_INSERT", _WithoutParents())
                patch.setattr(transactions, "_DESCRIBE", _ThreadsWithoutParents())
            yield

    return version


_PARENTS = 14
"""The version of the schema from which on events have parents."""


class _WithoutParents:
    """Writes events as they were before they had parents."""

    _former = MultiRowStatement("INSERT INTO events VALUES", 12)

    def execute(self, db: sqlite3.Connection, rows: list[tuple[object, ...]]) -> object:
        return self._former.execute(db, [row[:12] for row in rows])


class _ThreadsWithoutParents:
    """Writes threads as they were before they had parents."""

    def execute(self, db: sqlite3.Connection, rows: list[tuple[object, ...]]) -> None:
        columns = "number, id, workspace, caller, session, title, created, updated, count, head"
        for row in rows:
            db.execute(
                f"INSERT OR REPLACE INTO threads({columns}) VALUES(?,?,?,?,?,?,?,?,?,?)",
                row[:10],
            )
