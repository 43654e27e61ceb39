"""The journal that earlier versions wrote beside the database: refused while it holds events, else removed."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path

import pytest

from rappd.backup import create
from rappd.daemon.home import Home
from rappd.diagnostics.finding import CheckContext
from rappd.diagnostics.home import check_store
from rappd.errors import StoreError
from rappd.store.reader import Reader
from rappd.store.store import Store
from rappd.store.verify import verify

A = "aaaaaaaa-0000-4000-8000-000000000001"
MARK = b"mark of a record"
JOURNAL = base64.b64decode(
    """
cmFwcGQgaW50YWtlIDEKAG1hcmsgb2YgYSByZWNvcmSv/HOAlwAAAEF8cEkBAAAAAAAAAJKYpnRocmVhZNkkYWFhYWFhYWEt
MDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAxqWJyYWluc3RlbaRndWlkoyJzIqVoZWxsbwHCmaZyZWNvcmTZJGFhYWFhYWFh
LTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMaRIRUxQpGd1aWSkZGVza6ExxAp7ImlkIjoiMSJ9AcJOAAAA3YwaxwIAAAAA
AAAAkZmmcmVjb3Jk2SRhYWFhYWFhYS0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDGkRE9ORaRkZXNrpGd1aWShMcQKeyJp
ZCI6IjIifQLC
"""
)
"""Written by the last version that had it: frames 1 (a thread and a HELP) and 2 (its DONE)."""
HEADER_BYTES = 36


@pytest.fixture
async def home(path: Path, say, as_version) -> Path:
    """A record with one event as an earlier version left it, with ``MARK``."""
    with as_version(8):
        store = await Store.open(path)
        await store.commit(say(A, "before"))
        await store.close()
    _run(path, "UPDATE intake SET mark = ?, carried = 0", MARK)
    return path


def _run(path: Path, statement: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(statement, values)


def _journal(path: Path, content: bytes) -> Path:
    journal = path.with_name("rappd.db-intake")
    journal.write_bytes(content)
    return journal


@pytest.mark.parametrize("carried", [0, 1])
@pytest.mark.parametrize("reserve", [b"", bytes(1 << 20), b"\x4e\0\0\0 a frame that was cut off"])
async def test_journal_with_events_is_refused_and_kept(home: Path, carried: int, reserve: bytes) -> None:
    _run(home, "UPDATE intake SET carried = ?", carried)
    journal = _journal(home, JOURNAL + reserve)
    database = home.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match="-intake holds events") as caught:
            await Store.open(home)
        assert "Install the version that was there before" in caught.value.do
    assert journal.read_bytes() == JOURNAL + reserve
    assert home.read_bytes() == database, "the version before can open it"
    with pytest.raises(StoreError, match="older rappd"):
        Reader(home)
    with pytest.raises(StoreError, match="-intake holds events"):  # a backup would lack them
        create._record(home, home.parent.parent)


@pytest.mark.parametrize(
    ("content", "carried"),
    [
        (b"", 0),
        (JOURNAL[:HEADER_BYTES] + bytes(1 << 20), 0),
        (JOURNAL, 2),  # the database has all of it
        (JOURNAL.replace(MARK, b"another database"), 0),
        (JOURNAL[:HEADER_BYTES] + JOURNAL[-94:], 0),  # begins after a gap: not of this moment
    ],
)
async def test_journal_without_events_is_removed(home: Path, say, content: bytes, carried: int) -> None:
    _run(home, "UPDATE intake SET carried = ?", carried)
    journal = _journal(home, content)
    store = await Store.open(home)
    assert not journal.exists()
    assert await store.commit(say(A, "after")) == 2
    await store.close()
    assert (verify(home).events, verify(home).problems) == (2, [])


async def test_journal_in_use_is_refused(home: Path) -> None:
    journal = _journal(home, JOURNAL[:HEADER_BYTES])
    descriptor = os.open(journal, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(StoreError, match="earlier version of rappd uses") as caught:
        await Store.open(home)
    assert "rappd stop" in caught.value.do
    os.close(descriptor)
    await (await Store.open(home)).close()
    assert not journal.exists()


async def test_doctor_reports_journal_with_events(home: Path) -> None:
    _journal(home, JOURNAL)
    (finding,) = check_store(CheckContext(Home(home.parent)))
    assert finding.verdict == "bad"
    assert "-intake holds events" in finding.what


async def test_no_journal_is_written(store: Store, path: Path, say) -> None:
    await store.commit(say(A))
    assert not path.with_name("rappd.db-intake").exists()
