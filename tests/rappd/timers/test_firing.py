"""Firing on a real store with made-up time: rights then and now, failures, limits, quiet hours, model calls, clocks."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.moments.moments import Moment
from envelopes.envelope import DONE, ERROR, HELP, Envelope, new_id
from neighborhoods.durable_tables import IssuedToken
from rappd.dispatch import unrecorded_replies
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RecordedCall, RequestContext
from rappd.errors import ConflictError, NotFoundError, RefusedError, StoreError
from rappd.features.timers import firing
from rappd.features.timers.firing import TimerFiring
from rappd.features.timers.model_call_limit import ModelCalls
from rappd.features.timers.setters import Setter, SetterRights, setter_of
from rappd.features.timers.timer_agent_requests import TimerConversation
from rappd.features.timers.turn_timers import TurnTimers
from rappd.notices.notices import Notices
from rappd.sessions.schedule.timers import Timers
from rappd.store.store import Store
from rappd.store.timer_table import TimerRow, TimerTable
from rappd.tenants.tenant import HOST
from rappd.tether.devices import Device

ID = "brainstem_0123456789abcdef"
NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC
HOUR = 3600.0
ROSE = "rose"
OWNER = Setter("control", "me", operator=True)


class Desk:
    """The parts of a daemon that fire timers, over one database, with a clock that the test sets."""

    def __init__(self, path: Path) -> None:
        self._path, self.now = path, NOON
        self.settings = {"timers.zone": "UTC", "timers.quiet": ""}
        self.devices: dict[str, Any] = {}
        self.peers: dict[str, Caller] = {}
        self.tokens: list[IssuedToken] = []
        self.asked: list[RequestContext] = []
        self.logs = ""
        self.model_calls = 5
        self.fails: Exception | None = None

    async def open(self) -> None:
        self.store = await Store.open(self._path)
        self.dispatcher = Dispatcher(self.store)
        self.dispatcher.route(ID, HOST, self._perform)
        self.timers = Timers(TimerTable(self.store), clock=lambda: self.now)
        settings: Any = SimpleNamespace(text=self.settings.__getitem__)
        self.turn_timers = TurnTimers(self.timers, lambda: settings, clock=lambda: self.now)
        self.notices = Notices()
        self.calls = ModelCalls(self.timers, lambda: self.model_calls, lambda: True, lambda: self.now)
        rights = SetterRights(self.devices.get, self.peers.get, self._tokens)
        TimerFiring(
            self.timers, self.turn_timers, rights, self.dispatcher, self._tenant, self.calls, self.notices,
            lambda: self.settings["timers.quiet"], lambda: self.now,
        )  # fmt: skip
        self.conversation = TimerConversation(
            self.turn_timers, lambda: self.settings["timers.quiet"], self._set_quiet
        )
        opened = self.dispatcher.open_thread(Envelope(new_id(), "me", ID, HELP, {}), HOST, session="s")
        self.thread = opened.thread
        await self.dispatcher.flush()
        await self.timers.start()

    async def close(self) -> None:
        await self.timers.close()
        await self.dispatcher.stop()
        await self.dispatcher.close()
        await self.store.close()

    async def add(self, what: str, moment: Moment, setter: Setter = OWNER, *, asks: bool = True) -> TimerRow:
        return await self.turn_timers.add(what, moment, setter, asks=asks, workspace=HOST, thread=self.thread)

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.timers._changed.set()
        async with asyncio.timeout(100):
            await asyncio.sleep(0.01)
            while self.timers._running or any(
                row.next <= self.now and not row.paused
                for row in self.timers.rows
                if row.kind in ("turn", "telling")
            ):
                await asyncio.sleep(0.005)

    async def answers(self) -> list[str]:
        events = await self.store.thread_events(self.thread)
        found = [__import__("orjson").loads(one.body)["data"] for one in events if one.verb in (DONE, ERROR)]
        return [str(data.get("response") or data.get("msg")) for data in found]

    @property
    def news(self) -> list[str]:
        return [one.what for one in self.notices.waiting()]

    async def _perform(self, context: RequestContext) -> dict[str, Any]:
        self.asked.append(context)
        if context.model_call is not None:
            await context.model_call()
        if self.fails is not None:
            raise self.fails
        return {"response": "It rains.", "agent_logs": self.logs, "model": "", "requested_model": ""}

    async def _tenant(self, name: str) -> Any:
        return await self.twin_now() if name == ROSE else SimpleNamespace(id=ID, name=HOST, requests=self)

    def may_repeat(self, calls: list[RecordedCall]) -> bool:
        return not calls

    async def twin_now(self) -> Any:
        return SimpleNamespace(id=ID, name=ROSE, requests=self)

    async def _tokens(self) -> list[IssuedToken]:
        return await self.tokens_now()

    async def tokens_now(self) -> list[IssuedToken]:
        return self.tokens

    async def _set_quiet(self, hours: str) -> None:
        self.settings["timers.quiet"] = hours


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    found = Desk(tmp_path / "rappd.db")
    await found.open()
    yield found
    await found.close()


async def test_what_was_missed_fires_once_and_says_how_late(desk: Desk, tmp_path: Path) -> None:
    await desk.add("call mum", Moment(wait=600), asks=False)
    await desk.add("tell me the weather", Moment(rule="daily 13:00"))
    await desk.close()
    desk.now += 50 * HOUR
    await desk.open()
    await desk.pass_time(0)
    assert await desk.answers() == [
        "Reminder: call mum. This is 2 days late: it was due Mon 30 Nov 2026, 12:10.",
        "It rains.\n\nThis is 2 days late: it was due Mon 30 Nov 2026, 13:00.",
    ]
    assert len(desk.turn_timers.of(OWNER)) == 1
    assert sorted(desk.news) == [
        "Reminder: call mum. This is 2 days late: it was due Mon 30 Nov 2026, 12:10.",
        "tell me the weather: It rains. This is 2 days late: it was due Mon 30 Nov 2026, 13:00.",
    ]


async def test_a_clock_that_is_set_back_repeats_nothing_and_loses_nothing(desk: Desk) -> None:
    await desk.add("tell me the weather", Moment(rule="daily 13:00"))
    await desk.pass_time(2 * HOUR)
    await desk.pass_time(-30 * 24 * HOUR)
    (row,) = desk.turn_timers.of(OWNER)
    assert row.next < desk.now + 25 * HOUR, "it comes forward"
    await desk.pass_time(30 * 24 * HOUR)
    assert len(desk.asked) == 2, "once on the way, late, and the moment of before not again"


@pytest.mark.parametrize("setter", [
    Setter("tether", "guest", device="phone", caps=("HELP.*", "TIMER")),
    Setter("federation", "pi_0123", peer="pi", caps=("HELP.*", "TIMER")),
    Setter("federation", "cron_token-abcdefgh", caps=("HELP.brainstem", "TIMER")),
])  # fmt: skip
async def test_a_revoked_caller_is_not_performed_and_the_owner_is_told(desk: Desk, setter: Setter) -> None:
    await desk.add("tell me the weather", Moment(rule="daily 13:00"), setter)
    desk.peers["pi"] = Caller(
        "federation", peer="pi", caps=("HELP.*",)
    )  # paired still, and no more than that
    await desk.pass_time(2 * HOUR)
    assert desk.asked == []
    assert desk.turn_timers.of(setter) == []
    assert "is removed" in desk.news[0]


async def test_rights_are_the_lesser_of_then_and_now(desk: Desk) -> None:
    desk.peers["pi"] = Caller("federation", peer="pi", caps=("HELP.brainstem.Clock", "SLUSH", "TIMER"))
    then = Setter("federation", "pi_0123", peer="pi", caps=("HELP.brainstem.*", "TIMER"))
    await desk.add("what time is it", Moment(wait=600), then)
    await desk.pass_time(HOUR)
    (context,) = desk.asked
    assert context.caller.caps == ("HELP.brainstem.Clock", "TIMER")
    assert not context.caller.operator
    assert desk.news == [], "a machine's answers are not the owner's news"


@pytest.mark.parametrize(("mine", "news"), [(True, ["Reminder: call mum."]), (False, [])])
async def test_an_own_phones_reminder_is_the_owners_news_and_a_guests_is_not(
    desk: Desk, mine: bool, news: list[str]
) -> None:
    caps = ("HELP.*", "TIMER")
    desk.devices["phone"] = Device(id="phone", name="Anna", secret="", created_at=0.0)
    setter = Setter("tether", "me", device="phone", mine=mine, caps=caps)
    await desk.add("call mum", Moment(wait=60), setter, asks=False)
    await desk.pass_time(60)
    assert await desk.answers() == ["Reminder: call mum."]
    assert desk.news == news


async def test_a_token_that_ended_sets_nothing_off(desk: Desk) -> None:
    setter = Setter("federation", "cron_token-abcdefgh", caps=("HELP.brainstem", "TIMER"))
    token = IssuedToken("abcdefgh-1234", "cron", ("HELP.brainstem", "TIMER"), 0, 1 << 40, 0, 0)
    desk.tokens = [token]
    await desk.add("one", Moment(wait=60), setter)
    await desk.add("two", Moment(wait=7200), setter)
    await desk.pass_time(HOUR)
    assert len(desk.asked) == 1
    desk.tokens = [IssuedToken("abcdefgh-1234", "cron", ("HELP.brainstem", "TIMER"), 0, 1 << 40, 5, 0)]
    await desk.pass_time(2 * HOUR)
    assert len(desk.asked) == 1


def test_without_the_capability_nobody_from_elsewhere_sets_any() -> None:
    for caller in (
        Caller("federation", peer="pi", caps=("HELP.*",)),
        Caller("tether", device="phone", caps=("HELP.*",)),
        Caller("legacy", caps=("HELP.brainstem", "TIMER")),
    ):
        with pytest.raises(RefusedError):
            setter_of(caller, "somebody")
    assert setter_of(Caller("federation", peer="pi", caps=("TIMER",)), "pi_0123").key == "peer:pi"


async def test_three_failures_pause_it_and_the_owner_is_told_once(desk: Desk) -> None:
    desk.logs = "[Garden] ERROR: no sensor"
    await desk.add("tell me how the garden is", Moment(rule="every 60 minutes"))
    for _ in range(6):
        await desk.pass_time(HOUR + 1)
    assert len(desk.asked) == 3
    paused = [one for one in desk.news if "paused" in one]
    assert paused == ["“tell me how the garden is” failed 3 times and is paused: Garden: no sensor"]
    (row,) = desk.turn_timers.of(OWNER)
    desk.logs = ""
    await desk.turn_timers.resume(row)
    await desk.pass_time(HOUR + 1)
    assert len(desk.asked) == 4


async def test_an_agent_that_is_gone_is_said_where_it_would_have_answered(desk: Desk) -> None:
    desk.logs = "[Weather] Sunny"
    await desk.add("tell me the weather", Moment(rule="every 60 minutes"))
    await desk.pass_time(HOUR + 1)
    await desk.pass_time(HOUR + 1)
    assert len(desk.asked) == 1
    assert "Weather, which did this before, is gone or quarantined." in (await desk.answers())[-1]


async def test_model_calls_of_a_day_are_bounded_over_a_restart(desk: Desk) -> None:
    desk.model_calls = 2
    await desk.add("tell me the weather", Moment(rule="every 10 minutes"))
    await desk.pass_time(601)
    await desk.pass_time(601)
    await desk.close()
    await desk.open()
    await desk.pass_time(601)
    assert "Timers made their 2 model calls of today" in (await desk.answers())[-1]
    await desk.pass_time(24 * HOUR)
    assert (await desk.answers())[-1].startswith("It rains.")


async def test_quiet_hours_hold_the_news_and_not_the_work(desk: Desk) -> None:
    desk.settings["timers.quiet"] = "22:00-07:00"
    await desk.add("call mum", Moment(wait=11 * HOUR), asks=False)
    await desk.pass_time(11 * HOUR + 1)
    assert await desk.answers() == ["Reminder: call mum."]
    assert desk.news == []
    await desk.close()
    await desk.open()
    await desk.pass_time(8 * HOUR)
    assert desk.news == ["Reminder: call mum. (at Mon 30 Nov 2026, 23:00, told after the quiet hours)"]


async def test_a_timer_sets_no_other_timers(desk: Desk) -> None:
    envelope = Envelope(new_id(), "me", ID, HELP, {"timer": {"id": "x"}}, {"_x_thread": desk.thread})
    context = RequestContext(envelope, Caller("control", operator=True), HOST)
    with pytest.raises(RefusedError, match="sets no other timers"):
        await desk.conversation.perform(context, "timers.ask", {"text": "remind me in 5 minutes to run"})


async def test_the_1001st_is_refused_and_a_thousand_due_at_once_are_all_told_once(desk: Desk) -> None:
    await desk.add("the first", Moment(wait=60), asks=False)
    await desk.pass_time(60)
    for number in range(1000):
        await desk.add(f"timer {number}", Moment(wait=60), asks=False)
    with pytest.raises(ConflictError, match="1000 timers are set; this one was not"):
        await desk.add("one more", Moment(wait=60))
    with pytest.raises(ConflictError, match="1000 timers are set"):
        await desk.turn_timers.snooze(OWNER, None)
    assert len(desk.turn_timers.of(OWNER)) == 1000
    program = Setter("loopback", "me")
    await desk.add("of another caller", Moment(wait=7200), program)
    await desk.pass_time(120)
    answers = await desk.answers()
    assert len(answers) == len(set(answers)) == 1001
    assert desk.turn_timers.of(OWNER) == []
    assert [row.detail["what"] for row in desk.turn_timers.of(program)] == ["of another caller"]


async def test_snooze_tells_once_more_after_a_restart(desk: Desk) -> None:
    await desk.add("call mum", Moment(wait=600), asks=False)
    await desk.pass_time(600)
    await desk.close()
    await desk.open()
    row = await desk.turn_timers.snooze(OWNER, None)
    assert (row.detail["what"], row.next) == ("call mum", desk.now + 600)
    await desk.pass_time(600)
    assert await desk.answers() == ["Reminder: call mum."] * 2


async def test_snooze_tells_nothing_that_was_told_another_user(desk: Desk) -> None:
    anna, ben = Setter("loopback", "anna"), Setter("loopback", "ben")
    await desk.add("buy a ring", Moment(wait=600), anna, asks=False)
    await desk.pass_time(600)
    with pytest.raises(NotFoundError, match="Nothing was told yet"):
        await desk.turn_timers.snooze(ben, None)
    assert (await desk.turn_timers.snooze(anna, None)).detail["what"] == "buy a ring"


@pytest.mark.parametrize("step", ["claim", "commit_reply", "set", "end"])
async def test_on_a_full_disk_it_is_tried_again_and_told_once(
    desk: Desk, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(unrecorded_replies, "PAUSES", (0.01,))
    await desk.add("tell me the weather", Moment(rule="daily 13:00"))
    full = FullDisk(
        desk.store if step in ("claim", "commit_reply") else desk.timers._table, step, monkeypatch
    )
    desk.now += HOUR
    desk.timers._changed.set()
    await full.is_met(2 if step != "end" else 1)
    full.empty()
    await desk.pass_time(0)
    assert await desk.answers() == ["It rains."]
    assert len(desk.asked) == len(desk.news) == 1
    assert desk.news[0].startswith("tell me the weather: It rains.")
    await desk.close()
    await desk.open()
    await desk.pass_time(0)
    assert len(desk.asked) == 1, "nor again after the next start"


async def test_rights_that_cannot_be_read_now_remove_no_timer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "_AGAIN_SECONDS", 0.01)
    desk.tokens = [IssuedToken("abcdefgh-1234", "cron", ("HELP.brainstem", "TIMER"), 0, 1 << 40, 0, 0)]
    setter = Setter("federation", "cron_token-abcdefgh", caps=("HELP.brainstem", "TIMER"))
    await desk.add("tell me the weather", Moment(wait=HOUR), setter)
    full = FullDisk(desk, "tokens_now", monkeypatch)
    desk.now += HOUR
    desk.timers._changed.set()
    await full.is_met(2)
    full.empty()
    await desk.pass_time(0)
    assert len(desk.asked) == 1


@pytest.mark.parametrize("stops", ["before it is found", "on a full disk", "before its turn begins"])
async def test_a_twin_that_stops_just_then_is_asked_once_it_is_back(
    desk: Desk, stops: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "_AGAIN_SECONDS", 0.01)
    await desk.turn_timers.add(
        "tell me how the garden is", Moment(wait=HOUR), OWNER, asks=True, workspace=ROSE, thread=desk.thread
    )
    found = FullDisk(desk, "twin_now", monkeypatch)
    if stops == "on a full disk":
        found.problem = OSError(errno.ENOSPC, "No space left on device")
    if stops == "before its turn begins":
        desk.dispatcher.unroute(ID)
        found.empty()
    desk.now += HOUR
    desk.timers._changed.set()
    await found.is_met(2)
    found.empty()
    desk.dispatcher.route(ID, HOST, desk._perform)
    await desk.pass_time(0)
    assert await desk.answers() == ["It rains."]
    assert len(desk.asked) == 1 and desk.turn_timers.of(OWNER) == []


class FullDisk:
    """A step of the work, which fails as on a full disk until there is room again."""

    def __init__(self, of: Any, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._work, self._full, self._met = getattr(of, step), True, 0
        self.problem: Exception = StoreError("The disk is full.")
        monkeypatch.setattr(of, step, self._begin)

    def _begin(self, *arguments: Any, **named: Any) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self._try(*arguments, **named))

    async def _try(self, *arguments: Any, **named: Any) -> Any:
        self._met += 1
        if self._full:
            raise self.problem
        return await self._work(*arguments, **named)

    async def is_met(self, times: int) -> None:
        async with asyncio.timeout(100):
            while self._met < times:
                await asyncio.sleep(0.005)

    def empty(self) -> None:
        self._full = False
