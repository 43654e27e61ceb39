"""The durable timer on a real store: missed moments, kills, changes during a run, failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from envelopes.errors import ReportableError
from rappd.errors import StoreError
from rappd.sessions.schedule.timers import Timers
from rappd.store.store import Store
from rappd.store.timer_table import TimerRow, TimerTable

HOUR = 3600.0


class _FillableTable(TimerTable):
    """Timers on a disk that a test can fill."""

    full = False

    async def end(self, row: TimerRow, due: float) -> None:
        self._refuse()
        await super().end(row, due)

    async def remove_run(self, id: str, due: float) -> None:
        self._refuse()
        await super().remove_run(id, due)

    def _refuse(self) -> None:
        if self.full:
            raise StoreError("The disk is full; rappd.db cannot grow.")


class Desk:
    """Timers over one database, with a clock that the test sets, opened anew as after a stop."""

    def __init__(self, path: Path) -> None:
        self._path, self.now = path, 1_000_000.0
        self.ran: list[str] = []
        self.held: asyncio.Event | None = None
        self.fails = ""
        self.ended: list[TimerRow] = []

    async def open(self) -> Timers:
        self._store = await Store.open(self._path)
        self.table = _FillableTable(self._store)
        self.timers = Timers(self.table, clock=lambda: self.now, ended=self.ended.append)
        self.timers.register("work", self._work)
        await self.timers.start()
        return self.timers

    async def close(self) -> None:
        await self.timers.close()
        await self._store.close()

    async def _work(self, row: TimerRow) -> None:
        self.ran.append(row.id)
        if self.held is not None:
            await self.held.wait()
        if self.fails:
            raise ReportableError(self.fails, do="Do this.")

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.timers._changed.set()
        await asyncio.sleep(0.05)

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(100):
            while not condition():
                await asyncio.sleep(0.01)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    found = Desk(tmp_path / "rappd.db")
    await found.open()
    yield found
    await found.close()


async def test_timer_runs_at_its_moments(desk: Desk) -> None:
    row = await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    assert row.next == desk.now + HOUR
    await desk.pass_time(HOUR - 1)
    assert desk.ran == []
    await desk.pass_time(1)
    await desk.until(lambda: desk.ran == ["backup"])
    await desk.pass_time(HOUR)
    await desk.until(lambda: desk.ran == ["backup"] * 2)


async def test_missed_moments_run_once_after_a_stop(desk: Desk) -> None:
    await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    await desk.close()
    desk.now += 24 * HOUR
    await desk.open()
    await desk.until(lambda: desk.ran)
    await desk.pass_time(1)
    await desk.until(lambda: desk.timers.get("backup").next == desk.now - 1 + HOUR)
    assert desk.ran == ["backup"]


async def test_run_that_was_cut_off_is_repeated(desk: Desk) -> None:
    await desk.timers.once("once", "work", desk.now, caller="operator")
    desk.held = asyncio.Event()
    await desk.until(lambda: desk.ran == ["once"])
    await desk.close()
    desk.held = None
    await desk.open()
    await desk.until(lambda: desk.ran == ["once", "once"])
    await desk.until(lambda: not desk.timers.rows)
    await desk.close()
    await desk.open()
    assert desk.timers.rows == []


@pytest.mark.parametrize("runs", [1, 2])
async def test_end_of_a_run_on_a_full_disk_is_recorded_once_there_is_room(desk: Desk, runs: int) -> None:
    await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    await desk.timers.once("once", "work", desk.now + HOUR, caller="operator")
    desk.table.full = True
    for run in range(runs):
        await desk.pass_time(HOUR)
        await desk.until(lambda: len(desk.ran) == 2 + run)  # noqa: B023
    await desk.until(lambda: desk.timers.get("backup").next == desk.now + HOUR)
    desk.table.full = False
    await desk.pass_time(1)
    await desk.close()
    done = list(desk.ran)
    await desk.open()
    await desk.pass_time(1)
    assert desk.ran == done, "a restart repeats nothing"
    assert [row.id for row in desk.timers.rows] == ["backup"]


async def test_failure_stays_visible_until_a_run_succeeds(desk: Desk) -> None:
    ended = desk.ended
    desk.fails = "pi does not answer."
    await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    await desk.pass_time(HOUR)
    await desk.until(lambda: len(ended) == 1)
    first = desk.now
    await desk.pass_time(HOUR)
    await desk.until(lambda: len(ended) == 2)
    await desk.close()
    await desk.open()
    found = desk.timers.get("backup")
    assert (found.outcome, found.failed_since) == ("pi does not answer. Do this.", first)
    desk.fails = ""
    await desk.pass_time(HOUR)
    await desk.until(lambda: not desk.timers.get("backup").outcome)
    assert desk.timers.get("backup").failed_since == 0


async def test_work_that_takes_longer_than_its_pause_does_not_run_beside_itself(desk: Desk) -> None:
    await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    desk.held = asyncio.Event()
    await desk.pass_time(HOUR)
    await desk.until(lambda: desk.ran)
    await desk.pass_time(HOUR)
    await desk.pass_time(HOUR)
    assert desk.ran == ["backup"]
    desk.held.set()
    await desk.until(lambda: desk.timers.get("backup").last)
    assert desk.timers.get("backup").next == desk.now + HOUR, "what was missed meanwhile is not made up for"


async def test_change_during_a_run_keeps_the_new_moment(desk: Desk) -> None:
    await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    desk.held = asyncio.Event()
    await desk.pass_time(HOUR)
    await desk.until(lambda: desk.ran)
    await desk.timers.schedule("backup", "work", "every 3 hours", caller="operator")
    desk.held.set()
    await desk.until(lambda: desk.timers.get("backup").last)
    assert desk.timers.get("backup").next == desk.now + 3 * HOUR
    await desk.close()
    desk.held = None
    await desk.open()
    assert desk.timers.get("backup").next == desk.now + 3 * HOUR
    await desk.timers.remove("backup")
    assert desk.timers.rows == []


async def test_timer_set_anew_during_its_only_run_runs_again(desk: Desk) -> None:
    ended = desk.ended
    await desk.timers.once("once", "work", desk.now, caller="operator")
    desk.held = asyncio.Event()
    await desk.until(lambda: desk.ran)
    later = desk.now + HOUR
    await desk.timers.once("once", "work", later, caller="operator")
    desk.held.set()
    await desk.until(lambda: ended)
    assert desk.timers.get("once").next == later
    await desk.close()
    await desk.open()
    await desk.pass_time(HOUR)
    await desk.until(lambda: desk.ran == ["once", "once"] and not desk.timers.rows)


async def test_clock_that_was_years_ahead_delays_nothing(desk: Desk) -> None:
    await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    true, ahead = desk.now, 10 * 365 * 24 * HOUR
    await desk.pass_time(ahead)
    await desk.until(lambda: desk.ran == ["backup"])
    await desk.until(lambda: desk.timers.get("backup").next == true + ahead + HOUR)
    await desk.close()
    desk.now = true
    await desk.open()
    await desk.until(lambda: desk.timers.get("backup").next == true + HOUR)
    await desk.pass_time(HOUR)
    await desk.until(lambda: desk.ran == ["backup"] * 2)


async def test_clock_that_is_set_back_a_little_runs_nothing_twice(desk: Desk) -> None:
    await desk.timers.schedule("backup", "work", "every 1 hour", caller="operator")
    await desk.pass_time(HOUR)
    await desk.until(lambda: desk.timers.get("backup").last)
    moment = desk.timers.get("backup").next
    await desk.pass_time(-600)
    assert (desk.timers.get("backup").next, desk.ran) == (moment, ["backup"])
