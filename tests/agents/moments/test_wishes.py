"""Sentences about times as people say them, in English and German, on Monday 30 November 2026 at 11:00."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import orjson
import pytest

from agents.moments.errors import NoMomentError
from agents.moments.wishes import moved, when, wish_of
from agents.providers.offline.route import route

TOOLS = [
    {
        "type": "function",
        "function": {"name": one["tool_name"], **{key: one[key] for key in ("description", "parameters")}},
    }
    for file in orjson.loads(
        (Path(__file__).parents[3] / "agents/library/descriptions.json").read_bytes()
    ).values()
    for one in file["agents"]
]
NOW = datetime(2026, 11, 30, 11, 0)


@pytest.mark.parametrize(
    ("sentence", "what", "moment"),
    [
        ("Remind me tomorrow at 9 to call mum", "call mum", "2026-12-01 09:00"),
        ("remind me to call mum tomorrow at 9", "call mum", "2026-12-01 09:00"),
        ("remind me at half past four to feed the cat", "feed the cat", "2026-11-30 16:30"),
        ("remind me at 4 to feed the cat", "feed the cat", "2026-11-30 16:00"),
        ("remind me at quarter to six about tea", "tea", "2026-11-30 17:45"),
        ("remind me tomorrow to call Bob at 5", "call Bob", "2026-12-01 17:00"),
        ("remind me at 9 about the meeting at 10", "the meeting at 10", "2026-11-30 21:00"),
        ("remind me tonight to lock the door", "lock the door", "2026-11-30 19:00"),
        ("remind me on friday evening about the film", "the film", "2026-12-04 19:00"),
        ("remind me next monday to buy milk", "buy milk", "2026-12-07 09:00"),
        ("remind me the day after tomorrow at noon to eat", "eat", "2026-12-02 12:00"),
        ("remind me on 24 December at 18:00 to light candles", "light candles", "2026-12-24 18:00"),
        ("remind me 2026-12-05 at 9 to vote", "vote", "2026-12-05 09:00"),
        ("wake me at 7", "wake up", "2026-12-01 07:00"),
        ("set an alarm for 7 pm", "the time is up", "2026-11-30 19:00"),
        ("erinnere mich morgen um 9 daran, Mama anzurufen", "Mama anzurufen", "2026-12-01 09:00"),
        ("Erinnere mich übermorgen um halb acht an den Zahnarzt", "den Zahnarzt", "2026-12-02 07:30"),
        ("erinnere mich am 5.12. um 14 Uhr 30 an das Paket", "das Paket", "2026-12-05 14:30"),
        ("erinnere mich heute abend an die Tonne", "die Tonne", "2026-11-30 19:00"),
        ("morgen früh erinnere mich an Brot", "Brot", "2026-12-01 09:00"),
        ("weck mich um 6:30", "wake up", "2026-12-01 06:30"),
        ("at 5 pm tell me a joke", "tell me a joke", "2026-11-30 17:00"),
        ("remind me in 3 days at noon to water plants", "water plants", "2026-12-03 12:00"),
        ("remind me tomorrow morning at nine thirty to call", "call", "2026-12-01 09:30"),
        ("remind me at 0900 tomorrow to eat", "eat", "2026-12-01 09:00"),
        ("remind me on 12/24 at 18:00 to light candles", "light candles", "2026-12-24 18:00"),
        ("remind me on New Year's Eve at 23:00 to dance", "dance", "2026-12-31 23:00"),
        ("remind me the last day of the month to pay", "pay", "2026-12-31 09:00"),
        ("remind me at the weekend to rest", "rest", "2026-12-05 09:00"),
        ("remind me next week on Tuesday to call", "call", "2026-12-08 09:00"),
        ("don't let me forget to call mum at 5", "call mum", "2026-11-30 17:00"),
        ("set an alarm for 6:45", "the time is up", "2026-12-01 06:45"),
        ("reminder tomorrow at 9: call mum", "call mum", "2026-12-01 09:00"),
        ("kannst du mich morgen um 9 daran erinnern, Mama anzurufen?", "Mama anzurufen", "2026-12-01 09:00"),
        ("erinnere mich um neun Uhr dreißig an den Bus", "den Bus", "2026-11-30 21:30"),
        ("erinnere mich Heiligabend um 18 Uhr an die Kerzen", "die Kerzen", "2026-12-24 18:00"),
        ("ask Rose tomorrow at 9 how the garden is", "ask Rose how the garden is", "2026-12-01 09:00"),
    ],
)
def test_one_time(sentence: str, what: str, moment: str) -> None:
    wish = wish_of(sentence, NOW)
    assert wish is not None and wish.moment is not None and wish.action == "add" and wish.plainly
    assert (wish.what, f"{wish.moment.at:%Y-%m-%d %H:%M}") == (what, moment)


@pytest.mark.parametrize(
    ("sentence", "what", "seconds"),
    [
        ("remind me in 20 minutes to call mum", "call mum", 1200),
        ("in 20 minutes ask Rose how the garden is", "ask Rose how the garden is", 1200),
        ("remind me in half an hour to check the oven", "check the oven", 1800),
        ("remind me in 2 hours and 30 minutes to stretch", "stretch", 9000),
        ("set a timer for 10 minutes", "the time is up", 600),
        ("stell einen Timer auf 10 Minuten", "the time is up", 600),
        ("erinnere mich in einer halben Stunde an den Kuchen", "den Kuchen", 1800),
        ("remind me in 1h 30m to call", "call", 5400),
        ("ask Rose in 20 minutes how the garden is", "ask Rose how the garden is", 1200),
        ("5 min timer please", "the time is up", 300),
    ],
)
def test_a_while(sentence: str, what: str, seconds: float) -> None:
    wish = wish_of(sentence, NOW)
    assert wish is not None and wish.moment is not None
    assert (wish.what, wish.moment.wait) == (what, seconds)


@pytest.mark.parametrize(
    ("sentence", "what", "rule"),
    [
        (
            "every weekday at seven tell me the weather",
            "tell me the weather",
            "weekly mon,tue,wed,thu,fri 07:00",
        ),
        ("tell me the weather every morning at 7", "tell me the weather", "daily 07:00"),
        ("every morning tell me the news", "tell me the news", "daily 09:00"),
        ("every monday and thursday at 18:00 remind me to water", "water", "weekly mon,thu 18:00"),
        ("remind me every month on the 31st to pay", "pay", "monthly 31 09:00"),
        ("remind me on the 31st of every month to pay", "pay", "monthly 31 09:00"),
        ("every year on 29 february at 9 remind me of Leo", "Leo", "yearly 2-29 09:00"),
        ("every 2 hours check the oven", "check the oven", "every 120 minutes"),
        (
            "jeden Werktag um sieben sag mir das Wetter",
            "sag mir das Wetter",
            "weekly mon,tue,wed,thu,fri 07:00",
        ),
        ("remind me every second Tuesday at 7 to sweep", "sweep", "daily 14 2026-12-01 07:00"),
        ("every other day at 9 remind me to water", "water", "daily 2 2026-12-01 09:00"),
        ("every two weeks on Friday remind me to pay", "pay", "daily 14 2026-12-04 09:00"),
        ("remind me every first monday of the month to pay", "pay", "monthly 1mon 09:00"),
        ("erinnere mich am letzten Freitag im Monat an die Miete", "die Miete", "monthly lastfri 09:00"),
        ("remind me on the first of every month to pay", "pay", "monthly 1 09:00"),
        ("erinnere mich jeden zweiten Dienstag an die Tonne", "die Tonne", "daily 14 2026-12-01 09:00"),
        ("sag mir jeden Morgen die Nachrichten", "sag mir die Nachrichten", "daily 09:00"),
        ("alle 20 Minuten prüfe die Temperatur", "prüfe die Temperatur", "every 20 minutes"),
        ("jeden Morgen um 7 sag mir die Nachrichten", "sag mir die Nachrichten", "daily 07:00"),
    ],
)
def test_again_and_again(sentence: str, what: str, rule: str) -> None:
    wish = wish_of(sentence, NOW)
    assert wish is not None and wish.moment is not None
    assert (wish.what, wish.moment.rule) == (what, rule)


def test_months_without_that_day_are_said() -> None:
    wish = wish_of("remind me every month on the 31st to pay", NOW)
    assert wish is not None and wish.moment is not None
    assert wish.moment.remark == "In months without a 31st it is on their last day."


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Remind me yesterday to call mum", "Yesterday is over"),
        ("remind me on 31 February to laugh", "There is no 31 February"),
        ("remind me on 29 February 2027 to laugh", "2027 has no 29 February"),
        ("remind me on 1 January 2020 to laugh", "is over"),
        ("every 0 seconds tell me the time", "too often"),
        ("every 10 seconds tell me the time", "too often"),
        ("every day at 25 tell me the time", "There is no 25 o'clock"),
        ("remind me to call mum", "no time was understood"),
        ("remind me in 0 minutes to call mum", "nothing was set"),
        ("remind me in 20 years to call mum", "more than ten years away"),
        ("remind me every month on the 32nd to pay", "No month has a day 32"),
        ("remind me to take pills every day at 8am and 8pm", "Two times at once"),
        ("remind me at 9 tomorrow and on Friday to call mum", "Two times at once"),
        ("remind me twice a day to feed the dog", "At which times"),
        ("remind me every day from 9 to 5 to stand up", "“from” beside a time is not understood"),
        ("remind me every day except Sunday to stretch", "“except” beside a time is not understood"),
        ("erinnere mich jeden Tag außer Sonntag an den Müll", "“außer” beside a time is not understood"),
        ("remind me 2 hours before midnight to sleep", "“before” beside a time is not understood"),
        ("remind me a week from Friday to call", "“from” beside a time is not understood"),
        ("remind me at 9 am EST to call", "“est” beside a time is not understood"),
        ("remind me mon and wed at 5 to eat", "“mon” beside a time is not understood"),
        ("remind me every third Thursday to eat", "or that one of each month"),
        ("remind me every day starting on Friday to eat", "begins or ends on a day"),
        ("remind me on 5/6 at 9 to vote", "5/6 may be the day before the month"),
        ("remind me tomorrow, on Friday, to eat", "Two times at once|Two days are named"),
        ("remind me in two weeks on Friday to call", "do not go together"),
        ("remind me on my birthday to celebrate", "not known here"),
        ("remind Bob tomorrow to call mum", "Only you are reminded here, not Bob"),
        ("Erinnere den Vater morgen an die Tonne", "Only you are reminded here, not den Vater"),
        ("remind me every five years to renew", "Every few months or years"),
    ],
)
def test_no_time_is_said_and_nothing_else(sentence: str, said: str) -> None:
    with pytest.raises(NoMomentError, match=said):
        wish_of(sentence, NOW)


@pytest.mark.parametrize(
    "sentence",
    [
        "remind me what the wifi password is", "what time is it in 20 minutes?", "what is the weather tomorrow?",
        "tell me the weather tomorrow at 9", "every dog has its day", "tomorrow is monday", "yesterday at 9 mum called",
        "cancel the meeting with mum", "today I feel fine", "what did you do every day at school", "move the sofa to the wall",
        "on monday I was ill", "a timer is a useful thing", "an alarm went off this morning", "a reminder of my youth",
        "notify me when the temperature is above 30", "alert me if more than 5 people come", "show me every day of the week",
        "show me every monday in march", "tell me every weekday name", "new alarm sounds please",
    ],
)  # fmt: skip
def test_other_sentences_are_no_wish(sentence: str) -> None:
    assert wish_of(sentence, NOW) is None


@pytest.mark.parametrize(
    ("sentence", "action", "which"),
    [
        ("what did i ask you to remind me of?", "list", ""), ("list my timers", "list", ""),
        ("woran sollst du mich erinnern?", "list", ""), ("cancel the one about mum", "cancel", "mum"),
        ("lösche die Erinnerung an Mama", "cancel", "mama"), ("cancel all my reminders", "cancel", "*"),
        ("move it to ten", "move", ""), ("verschiebe es auf zehn Uhr", "move", ""),
        ("move the reminder about mum to tomorrow at 9", "move", "mum"), ("snooze", "snooze", ""),
        ("snooze for an hour", "snooze", ""), ("pause the weather timer", "pause", "weather"),
        ("quiet hours from 22 to 7", "quiet", ""), ("stop reminding me about pills", "cancel", "pills"),
        ("move the mum one to 10:30", "move", "mum"), ("postpone it by an hour", "move", ""),
    ],
)  # fmt: skip
def test_talking_about_them(sentence: str, action: str, which: str) -> None:
    wish = wish_of(sentence, NOW)
    assert wish is not None and (wish.action, wish.which) == (action, which)


def test_moving_stays_on_its_day_and_in_its_half() -> None:
    assert moved("ten", NOW, datetime(2026, 12, 1, 9, 0)).at == datetime(2026, 12, 1, 10, 0)
    assert moved("ten", NOW, datetime(2026, 12, 1, 19, 0)).at == datetime(2026, 12, 1, 22, 0)
    assert moved("tomorrow at 8", NOW, datetime(2026, 12, 5, 9, 0)).at == datetime(2026, 12, 1, 8, 0)
    assert moved("by an hour", NOW, datetime(2026, 12, 5, 9, 0)).at == datetime(2026, 12, 5, 10, 0)
    assert moved("um eine Stunde", NOW, datetime(2026, 12, 5, 9, 0)).at == datetime(2026, 12, 5, 10, 0)
    with pytest.raises(NoMomentError, match="is over"):
        moved("at 10", NOW, datetime(2026, 11, 30, 11, 30))


def test_times_alone() -> None:
    assert when("2026-12-05T09:00", NOW).at == datetime(2026, 12, 5, 9, 0)
    assert when("20 minutes", NOW).wait == 1200
    with pytest.raises(NoMomentError):
        when("the moon", NOW)


@pytest.mark.parametrize(
    ("sentence", "agent"),
    [
        ("remind me tomorrow at 9 to call mum", "Timer"), ("in 20 minutes ask Rose how the garden is", "Timer"),
        ("back up all my machines every night", "NeighborhoodSnapshot"), ("remind me to take a snapshot at 9", "Timer"),
    ],
)  # fmt: skip
def test_offline_brain_takes_it_for_the_agent_of_its_own(sentence: str, agent: str) -> None:
    assert route(sentence, TOOLS).name == agent


@pytest.mark.parametrize(
    "sentence",
    [
        "remind me tomorrow at 9 to call mum",
        "remind Bob tomorrow to call mum",
        "don't let me forget to call mum at 5",
    ],
)
def test_a_reminder_is_never_merely_stored(sentence: str) -> None:
    assert route(sentence, TOOLS).name == "Timer"
    without = [one for one in TOOLS if one["function"]["name"] != "Timer"]
    assert route(sentence, without).name != "ManageMemory"
