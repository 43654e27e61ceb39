"""A year of a daily schedule, at made-up time: stops, kills in the middle of a run, summer and winter time.

Two phones are paired when it begins. One comes back now and then, by IPv6, from another address each time; the other
never does. Other machines have no part in it: their trust has no end in time, and no timer knows an address.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from rappd.sessions.schedule.timers import Timers
from rappd.store.store import Store
from rappd.store.timer_table import TimerRow, TimerTable
from rappd.tether.devices import IDLE_DAYS, DeviceRegistry

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3600.0


class Year:
    """Timers over one database, and phones beside it; ``now`` is what the test says."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.now = datetime(2026, 1, 1, 12, tzinfo=BERLIN).timestamp()
        self.begun, self.visits = 0, 0
        self.done: Counter[date] = Counter()
        self.is_cut_off = False

    async def open(self) -> None:
        self._store = await Store.open(self._path)
        self.timers = Timers(TimerTable(self._store), clock=lambda: self.now)
        self.timers.register("work", self._work)
        await self.timers.start()
        self.phones = DeviceRegistry(self._path.with_name("devices.json"), lambda: self.now)

    def pair(self, name: str) -> None:
        self.phones.add(b"", name, scope="talk", user="", seen_from="fd00::1")

    def visit(self, name: str) -> None:
        self.visits += 1
        phone = self.phones.find(name)
        self.phones.seen(phone, self.address, "")
        self.phones.seen_by_socket(phone, self.address)

    @property
    def address(self) -> str:
        """The address from which the last visit came."""
        return f"fd00::1:{self.visits:x}"

    async def close(self) -> None:
        await self.timers.close()
        await self._store.close()

    async def _work(self, row: TimerRow) -> None:
        self.begun += 1
        if self.is_cut_off:
            await asyncio.sleep(3600)
        self.done[self.last_moment()] += 1

    def last_moment(self) -> date:
        """The day of the last moment that has come, by the calendar alone."""
        day = datetime.fromtimestamp(self.now, BERLIN).date()
        came = datetime(day.year, day.month, day.day, 2, 30, tzinfo=BERLIN).timestamp()
        return day if came <= self.now else day - timedelta(days=1)

    async def rests(self, condition: Callable[[], object]) -> None:
        """Waits for it, and that nothing more comes of it."""
        async with asyncio.timeout(100):
            while not condition():
                await asyncio.sleep(0.002)
        await asyncio.sleep(0.002)


@pytest.mark.timeout(900)
async def test_each_day_of_a_year_has_its_run_once(tmp_path: Path) -> None:
    chance = random.Random(23)
    year = Year(tmp_path / "rappd.db")
    await year.open()
    await year.timers.schedule("backup", "work", "daily 02:30", caller="operator", zone="Europe/Berlin")
    year.pair("Tablet")
    year.pair("Old phone")
    forgotten = year.now + IDLE_DAYS * 24 * HOUR
    end = year.now + 365 * 24 * HOUR
    first = last_done = year.last_moment()
    looked_at = set[date]()
    while year.now < end:
        year.now += chance.uniform(1, 16) * HOUR
        if datetime.fromtimestamp(year.now, BERLIN).hour in (
            2,
            3,
        ):  # whether it has come is the rule's matter
            year.now += 2 * HOUR
        is_due = year.last_moment() != last_done
        year.is_cut_off = is_due and chance.random() < 0.1
        is_off = chance.random() < 0.2
        if is_off:  # for up to five days
            await year.close()
            year.now += chance.uniform(0, 120) * HOUR
            year.now += 2 * HOUR * (datetime.fromtimestamp(year.now, BERLIN).hour in (2, 3))
            await year.open()
            is_due = year.last_moment() != last_done
            known = {phone.name for phone in year.phones.all()}
            assert known == {"Tablet", *(["Old phone"] if year.now < forgotten else [])}
        elif chance.random() < 0.2:
            year.visit("Tablet")
        begun = year.begun
        year.timers._changed.set()
        if is_due and year.is_cut_off:
            await year.rests(lambda begun=begun: year.begun > begun)  # type: ignore[misc]
            await year.close()
            year.is_cut_off = False
            await year.open()
        if is_due:
            await year.rests(
                lambda: year.done[year.last_moment()] and year.timers.get("backup").next > year.now
            )
            last_done = year.last_moment()
            looked_at.add(last_done)
        else:
            await asyncio.sleep(0.002)
    await year.close()
    await year.open()
    await year.close()
    [phone] = year.phones.all()
    assert (phone.seen_from, phone.sockets_from[-1]) == (year.address, year.address)
    assert len(phone.sockets_from) < year.visits, "not each address is kept for ever"
    assert set(year.done) == looked_at
    assert set(year.done.values()) == {1}, [day for day, count in year.done.items() if count > 1]
    assert first not in year.done
    assert len(looked_at) > 150
