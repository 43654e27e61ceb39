"""A program that lives two weeks of made-up time: timers fire, it is killed at each step of firing, its clock jumps.

    python two_weeks.py HOME ZONE BEGIN SEED KILLS

Each life is a fork that ends by SIGKILL in the middle of firing, or with the two weeks. Prints what was told, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agents.moments.moments import Moment
from envelopes.envelope import HELP, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import RequestContext
from rappd.features.timers.firing import TimerFiring
from rappd.features.timers.model_call_limit import ModelCalls
from rappd.features.timers.setters import Setter, SetterRights
from rappd.features.timers.turn_timers import TurnTimers
from rappd.notices.notices import Notices
from rappd.sessions.schedule.timers import Timers
from rappd.store.notice_table import NoticeTable
from rappd.store.store import Store
from rappd.store.timer_table import TimerTable
from rappd.tenants.tenant import HOST

STEPS = ("due", "claimed", "performed", "answered", "told", "ended")
DAYS = 14
ONCE, DAILY = 150, 50
ID = "brainstem_0123456789abcdef"
OWNER = Setter("control", "me", operator=True)


class Life:
    """A life of the daemon's part that fires timers, on a clock that is kept in a file."""

    def __init__(self, home: Path, zone: str, seed: int) -> None:
        self.home, self.zone, self.chance = home, zone, random.Random(seed)
        self._clock = home / "clock"
        self.now = float(self._clock.read_text())
        self.dies_at = ""
        self.dies_after = 0

    def step(self, name: str) -> None:
        """Ends this process where that was decided."""
        if name == self.dies_at:
            self.dies_after -= 1
            if self.dies_after <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def set_clock(self, moment: float) -> None:
        self.now = moment
        self._clock.write_text(str(moment))

    async def open(self) -> None:
        self.store = await Store.open(self.home / "rappd.db")
        dispatcher = self.dispatcher = Dispatcher(self.store)
        dispatcher.route(ID, HOST, self._perform)
        notices = Notices(NoticeTable(self.store))
        await notices.load()
        self.timers = Timers(_Table(self.store, self), clock=lambda: self.now)
        settings = SimpleNamespace(text=lambda name: self.zone if name == "timers.zone" else "")
        self.turn_timers = TurnTimers(self.timers, lambda: settings, clock=lambda: self.now)  # type: ignore[arg-type, return-value]

        async def tenant(name: str) -> Any:
            self.step("due")
            return SimpleNamespace(id=ID, name=HOST, requests=SimpleNamespace(may_repeat=lambda _: False))

        async def no_tokens() -> list[Any]:
            return []

        rights = SetterRights(lambda _: None, lambda _: None, no_tokens)
        calls = ModelCalls(self.timers, lambda: 100, lambda: False)
        firing = TimerFiring(
            self.timers,
            self.turn_timers,
            rights,
            dispatcher,
            tenant,
            calls,
            notices,
            lambda: "",
            lambda: self.now,
        )
        self._step_after(firing, "handle", "performed", before="claimed")
        self._step_after(firing, "_ended", "told", before="answered")
        self.notices = notices

    def _step_after(self, of: Any, name: str, step: str, *, before: str) -> None:
        work: Callable[..., Any] = getattr(of, name)
        if asyncio.iscoroutinefunction(work):

            async def wrapped(*arguments: Any) -> Any:
                self.step(before)
                found = await work(*arguments)
                self.step(step)
                return found

            setattr(of, name, wrapped)
        else:

            def around(*arguments: Any) -> Any:
                self.step(before)
                found = work(*arguments)
                self.step(step)
                return found

            setattr(of, name, around)

    async def _perform(self, context: RequestContext) -> dict[str, Any]:
        with (self.home / "performed").open("a") as file:  # a kill of the process keeps it
            file.write(f"{context.envelope.id}\n")
        return {"response": "It rains.", "agent_logs": "", "model": "", "requested_model": ""}

    async def set_timers(self) -> None:
        opened = self.dispatcher.open_thread(Envelope(new_id(), "me", ID, HELP, {}), HOST, session="s")
        await self.dispatcher.flush()
        for number in range(ONCE + DAILY):
            if number < ONCE:
                moment = Moment(wait=self.chance.uniform(60, DAYS * 86400 - 60))
            else:
                hour, minute = self.chance.choice((2, 2, 3, 7, 22)), self.chance.randrange(60)
                moment = Moment(rule=f"daily {hour:02}:{minute:02}")
            asks = number % 2 == 1
            await self.turn_timers.add(
                f"timer {number}", moment, OWNER, asks=asks, workspace=HOST, thread=opened.thread
            )

    async def live(self, until: float, jumps: int) -> None:
        """Lets time pass to each next moment; at times the clock is set forward or back."""
        await self.timers.start()
        while self.now < until:
            await self._settle()
            ahead = [row.next for row in self.timers.rows if row.kind == "turn"]
            if jumps and self.chance.random() < 0.03:
                jumps -= 1
                self.set_clock(
                    min(until, max(0.0, self.now + self.chance.choice((-26, -3, -1, 1, 3, 26)) * 3600))
                )
            else:
                self.set_clock(max(self.now, min([until, *ahead])))
            self.timers._changed.set()
        await self._settle()
        await self.timers.close()
        await self.notices.close()
        await self.dispatcher.close()
        await self.store.close()

    async def _settle(self) -> None:
        """Waits until nothing that is due is left."""
        while True:
            await asyncio.sleep(0)
            rows = [row for row in self.timers.rows if row.next <= self.now and row.kind == "turn"]
            if not self.timers._running and not rows:
                return
            await asyncio.sleep(0.0005)


class _Table(TimerTable):
    """Timers whose daemon may die once an end is written down."""

    def __init__(self, store: Store, life: Life) -> None:
        super().__init__(store)
        self._life = life

    async def end(self, row: Any, due: float) -> None:
        await super().end(row, due)
        self._life.step("ended")

    async def remove_run(self, id: str, due: float) -> None:
        await super().remove_run(id, due)
        self._life.step("ended")


def _live(home: Path, zone: str, until: float, seed: int, dies_at: str, after: int, jumps: int) -> None:
    async def run() -> None:
        life = Life(home, zone, seed)
        await life.open()
        life.dies_at, life.dies_after = dies_at, after
        await life.live(until, jumps)

    asyncio.run(run())


def main(home: Path, zone: str, begin: float, seed: int, kills: int) -> None:
    """Sets the timers, lives the two weeks, and prints how often each moment was answered."""
    (home / "clock").write_text(str(begin))
    until = begin + DAYS * 86400

    async def prepare() -> None:
        life = Life(home, zone, seed)
        await life.open()
        await life.set_timers()
        await life.dispatcher.close()
        await life.store.close()

    asyncio.run(prepare())
    deaths = [step for step in STEPS for _ in range(kills)]
    chance = random.Random(seed)
    chance.shuffle(deaths)
    killed = dict.fromkeys(STEPS, 0)
    for number, step in enumerate([*deaths, ""]):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _live(
                    home, zone, until, seed + number, step, chance.randint(1, 3), 2 if number % 4 == 0 else 0
                )
                status = 0
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL:
            killed[step] += 1
        elif os.waitstatus_to_exitcode(ended):
            raise SystemExit(f"a life ended with {ended}")
    sys.stdout.write(json.dumps({"killed": killed, **_told(home)}))


def _told(home: Path) -> dict[str, Any]:
    import sqlite3

    database = sqlite3.connect(home / "rappd.db")
    asked: dict[str, dict[str, Any]] = {}
    answers: dict[str, list[Any]] = {}
    for verb, id, body in database.execute("SELECT verb, id, body FROM events ORDER BY seq"):
        data = json.loads(body)["data"]
        if verb == "HELP":
            asked[id] = data["timer"]
        else:
            answers.setdefault(id, []).append(data.get("response") or f"ERROR {data.get('reason')}")
    performed = (home / "performed").read_text().split() if (home / "performed").exists() else []
    left = database.execute("SELECT count(*) FROM timers WHERE kind = 'turn' AND rule = ''").fetchone()[0]
    return {"asked": asked, "answers": answers, "performed": performed, "left": left}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
