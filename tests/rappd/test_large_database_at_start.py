"""The look at every page of a large database at the start: what it takes of a slow disk, and how it ends."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents.programs import programs
from rappd.daemon import readiness
from rappd.daemon.readiness import Readiness
from rappd.store.store import Store

PAGE = 4096


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    path = tmp_path / "rappd.db"
    await (await Store.open(path)).close()
    with sqlite3.connect(path) as writing:
        writing.execute("CREATE TABLE rows (content BLOB)")
        writing.executemany("INSERT INTO rows VALUES (?)", [(bytes(1000),) for _ in range(18_000)])
    writing.close()
    assert path.stat().st_size > readiness._LARGE_BYTES
    return path


def watched(path: Path) -> Readiness:
    nothing: Any = type("Nothing", (), {"failure": None})()
    return Readiness(nothing, path, nothing, nothing)


async def test_damaged_page_of_a_large_database_is_found(database: Path) -> None:
    whole = watched(database)
    await whole.examine()
    assert whole._damage is None
    with database.open("r+b") as file:
        file.seek(300 * PAGE)
        file.write(os.urandom(PAGE))
    damaged = watched(database)
    await damaged.examine()
    assert damaged._damage is not None


@pytest.mark.parametrize("moment", ["while it starts", "while it reads"])
async def test_look_that_is_under_way_ends_with_the_daemon(
    database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str
) -> None:
    start = programs.start

    def started(*command: Any, **how: Any) -> programs.RunningProgram:
        found = start(*command, **how)
        while not (note.exists() and note.read_text()):
            time.sleep(0.02)
        time.sleep(0.3 if moment == "while it starts" else 0)
        return found

    monkeypatch.setattr(programs, "start", started)
    note = tmp_path / "pid"
    program = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    monkeypatch.setattr(readiness, "_READ_WITH_PAUSES", program)
    looking = asyncio.create_task(watched(database).examine())
    async with asyncio.timeout(100):
        while not (note.exists() and note.read_text()):
            await asyncio.sleep(0.02)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert not Path(f"/proc/{note.read_text()}").exists()


def test_slow_disk_is_left_to_turns_for_most_of_the_time(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a card that gives 20 MB in a second."""
    clock = {"reading": 0.0, "pausing": 0.0}
    read = os.read

    def slowly(file: int, count: int) -> bytes:
        found = read(file, count)
        clock["reading"] += len(found) / 20e6
        return found

    def pause(seconds: float) -> None:
        clock["pausing"] += seconds

    monkeypatch.setattr(os, "read", slowly)
    monkeypatch.setattr(time, "sleep", pause)
    monkeypatch.setattr(time, "monotonic", lambda: sum(clock.values()))
    monkeypatch.setattr(sys, "argv", ["", str(database)])
    exec(readiness._READ_WITH_PAUSES, {})
    assert clock["reading"] == pytest.approx(database.stat().st_size / 20e6)
    assert clock["pausing"] == pytest.approx(3 * clock["reading"])
