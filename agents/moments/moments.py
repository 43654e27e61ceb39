"""Times within a sentence: "tomorrow at half past four", "alle 20 Minuten", "every month on the 31st". Pure.

A sentence is searched for pieces (a day, a clock time, a part of the day, a wait, a repetition); pieces beside each other
are one time. dateparser 1.5 was tried in place of this: it takes "me" of "remind me" for a date, knows neither "at
seven", "half past four" nor "halb acht", has no repetitions, and reads six sentences in two seconds.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

import msgspec

from agents.errors import AgentError
from agents.moments.vocabulary import (
    DAY_OF,
    HOURS,
    LATER_PARTS,
    MONTH,
    MONTH_OF,
    MONTH_UNITS,
    NUMBER,
    PARTS,
    UNIT,
    UNITS,
    WEEKDAY,
    any_of,
    number_of,
    unit_of,
)

SHORTEST = 60
"""Seconds between two moments of a repetition."""
FURTHEST = timedelta(days=366 * 10)
_MORNING = 9
_EARLY = 6
"""Hours below it are the afternoon's where a time is said without its half of the day."""
_EXAMPLES = "Say it like “tomorrow at 9”, “in 20 minutes” or “every weekday at 7”."


class NoMomentError(AgentError):
    """Words for a time that there is not, that is over, or that is not understood."""

    code = "no_moment"
    status = 400
    exit_code = 2

    def __init__(self, message: str, *, do: str = _EXAMPLES) -> None:
        super().__init__(message, do=do)


class Moment(msgspec.Struct, frozen=True):
    """A time: ``wait`` seconds from now, ``at`` a local time, or again and again by ``rule`` (``schedule/rules.py``).

    ``remark`` is to be said of it, "" for nothing. ``zone`` is the time zone that was named.
    """

    wait: float = 0.0
    at: datetime | None = None
    rule: str = ""
    remark: str = ""
    zone: str = ""


class Span(NamedTuple):
    """A time's place in a sentence, and its pieces: kind to what was said."""

    start: int
    end: int
    pieces: Mapping[str, Mapping[str, str]]


_HOUR = rf"(?P<hour>[01]?\d|2[0-4]|{any_of(HOURS)})"
_SPECIAL = r"half\s+past|halb|(?:a\s+)?quarter\s+(?:past|to)|viertel\s+(?:nach|vor)|dreiviertel"
_OCLOCK = r"(?:\s*(?:uhr|o'clock)\b)?"
_AMPM = r"(?:\s*(?P<ampm>[ap]\.?m\b\.?))"
_DAYS = rf"{WEEKDAY}s?(?:(?:\s*,\s*|\s+(?:and|und|&|or|oder)\s+)(?:on\s+)?{WEEKDAY}s?)*"
_PART = any_of(part for part in PARTS if part != "tonight")
_EACH_DAYS = [f"{name}s" for name in DAY_OF if name.endswith(("day", "tag", "abend"))]
_EVERY = r"(?:every|each|jede[nrsm]?|alle)"
_NTH = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th|\.)?"
_PIECES: tuple[tuple[str, str], ...] = (
    ("repeat", rf"{_EVERY}\s+(?:(?P<count>{NUMBER})\s+|(?P<other>other|second|zweiten?)\s+)?(?P<unit>{UNIT})\b"),
    ("repeat", rf"{_EVERY}\s+(?P<some>weekdays?|work(?:ing)?\s?days?|werktage?|arbeitstage?|weekends?|wochenenden?)\b"),
    ("repeat", r"(?P<some>on\s+weekdays|on\s+workdays|werktags|an\s+werktagen|(?:on|at)\s+weekends|am\s+wochenende\b(?=.*\bimmer\b))"),
    ("repeat", rf"{_EVERY}\s+(?P<days>{_DAYS})\b"),
    ("repeat", rf"{_EVERY}\s+(?P<parted>{_PART})\b"),
    ("repeat", rf"(?:on\s+)?(?P<days>(?:{any_of(_EACH_DAYS)})(?:(?:\s*,\s*|\s+(?:and|und)\s+){WEEKDAY}s)*)\b"),
    ("repeat", r"(?P<adverb>daily|hourly|weekly|monthly|yearly|täglich|stündlich|wöchentlich|monatlich|jährlich|jahrlich)\b"),
    ("monthday", rf"(?:on|am)\s+(?:the\s+)?{_NTH.format('nth')}\s+(?:of\s+)?(?P<each>every|each|jedes|eines\s+jeden|im)\s+(?:month|monats?)\b"),
    ("monthday", r"(?:on|am)\s+(?:the\s+)?(?:last\s+day|letzten(?:\s+tag)?)\s+(?:of\s+)?(?P<each>every|each|jedes)\s+(?:month|monats)\b"),
    ("monthday", r"(?:on|am)\s+(?:the\s+)?(?P<last>last\s+day|letzten(?:\s+tag)?)(?=\W|$)"),
    ("wait", rf"(?:in|within|after|nach)\s+(?P<count>{NUMBER})\s*(?P<unit>{UNIT})\b(?:\s+(?:and|und)\s+(?P<count2>{NUMBER})\s*(?P<unit2>{UNIT})\b)?"),
    ("wait", r"(?:in|within|after)\s+(?P<hourhalf>an\s+hour\s+and\s+a\s+half)\b"),
    ("wait", rf"(?P<count>{NUMBER})\s*(?P<unit>{UNIT})\s+from\s+now\b"),
    ("date", r"(?:on\s+|am\s+)?(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?:t(?=\d))?"),
    ("date", r"(?:on\s+(?:the\s+)?|am\s+|den\s+)?(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?:\s?(?P<year>20\d\d))?(?!\d)"),
    ("date", rf"(?:on\s+)?(?:the\s+|am\s+|den\s+)?{_NTH.format('day')}\s+(?:of\s+)?(?P<name>{MONTH})\b\.?(?:,?\s+(?P<year>20\d\d)\b)?"),
    ("date", rf"(?:on\s+)?(?P<name>{MONTH})\s+(?:the\s+)?{_NTH.format('day')}\b(?:,?\s+(?P<year>20\d\d)\b)?"),
    ("monthday", r"(?:on\s+the|am)\s+(?P<nth>\d{1,2})(?:st|nd|rd|th|\.)(?=\W|$)"),
    ("relative", rf"(?P<word>(?:the\s+)?day\s+after\s+tomorrow|übermorgen|uebermorgen|tomorrow|today|heute|morgen)(?:\s+(?P<part>{_PART}))?\b"),
    ("relative", r"(?P<word>(?:the\s+day\s+before\s+)?yesterday|(?:vor)?gestern|last\s+(?:week|month|night|year))\b"),
    ("relative", r"(?P<word>next|nächste)\s+(?P<span>week|woche|month|monat|year|jahr)\b"),
    ("weekday", rf"(?:(?:on|am|this|diesen|kommenden|coming|next|nächsten|naechsten)\s+)+(?P<name>{WEEKDAY})(?:\s*(?P<part>{_PART}))?\b"),
    ("weekday", rf"(?P<name>{any_of(name for name in DAY_OF if len(name) > 5)})(?:\s*(?P<part>{_PART}))?\b"),
    ("clock", rf"(?:at\s+|um\s+)?(?P<special>{_SPECIAL})\s+{_HOUR}\b{_AMPM}?(?:\s+uhr\b)?"),
    ("clock", rf"(?:at\s+|um\s+)?(?P<minutes>{NUMBER})\s+(?:minutes\s+|minuten\s+)?(?P<way>past|to|nach|vor)\s+{_HOUR}\b{_AMPM}?(?:\s+uhr\b)?"),
    ("clock", rf"(?:at\s+|um\s+|gegen\s+|by\s+|@\s*)?(?P<hour>[01]?\d|2[0-4])[:.h](?P<minute>[0-5]\d)(?::[0-5]\d)?(?!\d){_AMPM}?{_OCLOCK}"),
    ("clock", rf"(?:at\s+|um\s+|gegen\s+|by\s+|@\s*){_HOUR}(?![\d:])\b{_AMPM}?(?:\s*(?:uhr|o'clock)\b(?:\s+(?P<minute>[0-5]\d)\b)?)?"),
    ("clock", rf"{_HOUR}(?![\d:])\s*(?:{_AMPM}|(?:uhr|o'clock)\b(?:\s+(?P<minute>[0-5]\d)\b)?)"),
    ("clock", r"(?:at\s+|um\s+)?(?P<named>midnight|mitternacht|noon|midday)\b"),
    ("part", rf"(?:(?:in\s+the|at|am|in\s+der|this|heute)\s+)?(?P<part>tonight|{_PART})\b"),
    ("zone", r"(?P<zone>(?:africa|america|antarctica|asia|atlantic|australia|europe|indian|pacific)/[a-z_]+(?:/[a-z_]+)?|utc)(?:\s+time)?\b"),
)  # fmt: skip
_FIRST_OF = re.compile(r"[\w@]")
_BETWEEN = re.compile(r"\s*,?\s*(?:(?:and|und|at|on|um|am|starting|ab|immer)\s+)?")
_compiled: list[tuple[str, re.Pattern[str]]] = []


def spans(text: str) -> list[Span]:
    """The times in a sentence, in their order; ``text`` is in small letters."""
    if not _compiled:  # with the first sentence that may have one: most have none
        _compiled.extend((kind, re.compile(pattern)) for kind, pattern in _PIECES)
    found: list[Span] = []
    place = 0
    for start, end, kind, said in _pieces(text):
        if found and kind not in found[-1].pieces and _BETWEEN.fullmatch(text, place, start):
            last = found.pop()
            found.append(Span(last.start, end, {**last.pieces, kind: said}))
        else:
            found.append(Span(start, end, {kind: said}))
        place = end
    return [one for one in found if one.pieces.keys() - {"zone"}]


def _pieces(text: str) -> Iterator[tuple[int, int, str, dict[str, str]]]:
    place = 0
    while (start := _FIRST_OF.search(text, place)) is not None:
        place = start.start()
        if place and (text[place - 1].isalnum() or text[place - 1] in "_-"):
            place += 1
            continue
        for kind, pattern in _compiled:
            if match := pattern.match(text, place):
                said = {key: value for key, value in match.groupdict().items() if value}
                yield place, match.end(), kind, said
                place = match.end()
                break
        else:
            place += 1


def moment_of(pieces: Mapping[str, Mapping[str, str]], now: datetime, *, wakes: bool = False) -> Moment:
    """The time that pieces of a sentence name. ``now`` is the local time. Raises ``NoMomentError``.

    "At 4" is the next one, and on another day than today's the afternoon's; with ``wakes`` the morning's.
    """
    zone = pieces.get("zone", {}).get("zone", "")
    zone = (
        zone.upper() if zone == "utc" else "/".join(_titled(part) for part in zone.split("/")) if zone else ""
    )
    if "repeat" in pieces or _is_each_month(pieces):
        return msgspec.structs.replace(_repeated(pieces), zone=zone)
    if "wait" in pieces:
        return _waited(pieces["wait"], now)
    return Moment(at=_once(pieces, now, wakes=wakes), zone=zone)


def _is_each_month(pieces: Mapping[str, Mapping[str, str]]) -> bool:
    said = pieces.get("monthday", {})
    return "each" in said


def _titled(part: str) -> str:
    return "_".join(word.capitalize() for word in part.split("_"))


def _waited(said: Mapping[str, str], now: datetime) -> Moment:
    if "hourhalf" in said:
        return Moment(wait=5400.0)
    months, seconds = 0, 0.0
    for count, unit in (("count", "unit"), ("count2", "unit2")):
        if unit not in said:
            continue
        number, name = number_of(said[count]), unit_of(said[unit])
        if name in MONTH_UNITS:
            months += int(number * MONTH_UNITS[name])
        else:
            seconds += number * UNITS[name]
    if months:
        moved = _months_later(now.date(), months)
        at = datetime.combine(moved, now.time()) + timedelta(seconds=seconds)
        return Moment(at=_not_too_far(at, now))
    if seconds <= 0:
        raise NoMomentError("“In 0” is no time to wait; nothing was set.")
    _not_too_far(now + timedelta(seconds=min(seconds, 1e10)), now)
    return Moment(wait=seconds)


def _not_too_far(at: datetime, now: datetime) -> datetime:
    if at > now + FURTHEST:
        raise NoMomentError("That is more than ten years away; nothing was set.", do="Choose an earlier day.")
    return at


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _clock(pieces: Mapping[str, Mapping[str, str]]) -> tuple[time | None, bool]:
    """The clock time, and True where its half of the day is left open ("at 4")."""
    part = PARTS.get(_part(pieces), -1)
    said = pieces.get("clock")
    if said is None:
        return (time(part), False) if part >= 0 else (None, False)
    if "named" in said:
        return time(0 if said["named"] in ("midnight", "mitternacht") else 12), False
    hour = int(said["hour"]) if said["hour"].isdecimal() else int(number_of(said["hour"]))
    minute = int(said.get("minute", 0))
    open_half = (
        "ampm" not in said and 1 <= hour <= 12 and part < 0 and not said.get("hour", "").startswith("0")
    )
    if special := said.get("special", ""):
        shift = {"half past": 30, "halb": -30, "dreiviertel": -15}.get(" ".join(special.split()))
        if shift is None:
            shift = 15 if special.endswith(("past", "nach")) else -15
        minute = shift
    elif "minutes" in said:
        minute = int(number_of(said["minutes"])) * (1 if said["way"] in ("past", "nach") else -1)
    if "ampm" in said:
        if not 1 <= hour <= 12:
            raise NoMomentError(f"There is no {hour} {said['ampm']}; nothing was set.")
        hour = hour % 12 + (12 if said["ampm"][0] == "p" else 0)
    elif part in LATER_PARTS and 1 <= hour < 12 and not (part == PARTS["night"] and hour < 6):
        hour += 12
    total = (hour * 60 + minute) % 1440
    return time(total // 60, total % 60), open_half


def _part(pieces: Mapping[str, Mapping[str, str]]) -> str:
    for kind in ("part", "relative", "weekday"):
        if part := pieces.get(kind, {}).get("part"):
            return part
    return pieces.get("repeat", {}).get("parted", "")


def _once(pieces: Mapping[str, Mapping[str, str]], now: datetime, *, wakes: bool) -> datetime:
    clock, open_half = _clock(pieces)
    open_half = open_half and not wakes
    day = _day(pieces, now)
    if day is None:
        if clock is None:
            raise NoMomentError("When? No time was understood; nothing was set.")
        at = datetime.combine(now.date(), clock)
        if open_half and at <= now < at + timedelta(hours=12) and clock.hour < 12:
            return at + timedelta(hours=12)
        return at if at > now else at + timedelta(days=1)
    if clock is None:
        if day == now.date():
            raise NoMomentError("When today? Nothing was set.")
        clock = time(_MORNING)
    at = datetime.combine(day, clock)
    if open_half and clock.hour < 12 and (at <= now if day == now.date() else 1 <= clock.hour < _EARLY):
        at += timedelta(hours=12)
    if at <= now:
        raise NoMomentError(f"{at:%d %B %Y, %H:%M} is over; nothing was set.")
    return _not_too_far(at, now)


def _day(pieces: Mapping[str, Mapping[str, str]], now: datetime) -> date | None:
    today = now.date()
    if said := pieces.get("relative"):
        return _relative(said, now)
    if said := pieces.get("date"):
        return _dated(said, today)
    if said := pieces.get("monthday"):
        return _next_nth(int(said.get("nth", 31)), today)
    if said := pieces.get("weekday"):
        ahead = (DAY_OF[said["name"]] - today.weekday()) % 7
        if ahead == 0:
            clock, _ = _clock(pieces)
            ahead = 0 if clock is not None and datetime.combine(today, clock) > now else 7
        return today + timedelta(days=ahead)
    return today if _part(pieces) == "tonight" else None


def _relative(said: Mapping[str, str], now: datetime) -> date:
    word, today = " ".join(said["word"].split()), now.date()
    if "span" in said:
        months = {"week": 0, "woche": 0, "year": 12, "jahr": 12}.get(said["span"], 1)
        return _months_later(today, months) if months else today + timedelta(days=7)
    if "yesterday" in word or "gestern" in word or word.startswith("last"):
        raise NoMomentError(f"{word.capitalize()} is over; nothing was set.")
    if word in ("today", "heute"):
        return today
    return today + timedelta(days=2 if word.endswith("after tomorrow") or word.startswith(("ü", "ue")) else 1)


def _dated(said: Mapping[str, str], today: date) -> date:
    month = MONTH_OF[said["name"]] if "name" in said else int(said["month"])
    day = int(said["day"])
    year = int(said["year"]) if "year" in said else 0
    _check_day(month, day)
    for candidate in [year] if year else range(today.year, today.year + 9):
        try:
            found = date(candidate, month, day)
        except ValueError:
            if year:
                raise NoMomentError(f"{year} has no 29 February; nothing was set.") from None
            continue
        if year or found >= today:
            return found
    raise NoMomentError("That day does not come; nothing was set.")


def _check_day(month: int, day: int) -> None:
    if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(2024, month)[1]):
        name = calendar.month_name[month] if 1 <= month <= 12 else f"month {month}"
        raise NoMomentError(f"There is no {day} {name}; nothing was set.")


def _next_nth(day: int, today: date) -> date:
    if not 1 <= day <= 31:
        raise NoMomentError(f"No month has a day {day}; nothing was set.")
    for months in range(3):  # of two months in a row one has a 31st
        first = _months_later(today.replace(day=1), months)
        if day <= calendar.monthrange(first.year, first.month)[1] and first.replace(day=day) >= today:
            return first.replace(day=day)
    raise AssertionError(day)


_ADVERBS = {
    "daily": "day", "täglich": "day", "hourly": "hour", "stündlich": "hour", "weekly": "week", "wöchentlich": "week",
    "monthly": "month", "monatlich": "month", "yearly": "year", "jährlich": "year", "jahrlich": "year",
}  # fmt: skip
_SHORT_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _repeated(pieces: Mapping[str, Mapping[str, str]]) -> Moment:
    said: Mapping[str, str] = pieces.get("repeat", {})
    clock, _ = _clock(pieces)
    at = f"{clock or time(_MORNING):%H:%M}"
    if "some" in said:
        ends = "weekend" in said["some"] or "wochenende" in said["some"]
        return Moment(rule=f"weekly {'sat,sun' if ends else 'mon,tue,wed,thu,fri'} {at}")
    if "days" in said:
        names = re.findall(WEEKDAY, said["days"])
        days = sorted({DAY_OF[name] for name in names})
        return Moment(rule=f"weekly {','.join(_SHORT_DAYS[day] for day in days)} {at}")
    if "parted" in said:
        return Moment(rule=f"daily {at}")
    unit = _ADVERBS.get(said.get("adverb", "")) or unit_of(said.get("unit", "month"))
    count = 2.0 if "other" in said else number_of(said.get("count", "1"))
    if unit in MONTH_UNITS:
        return _each_month(pieces, unit, count, at)
    seconds = count * UNITS[unit]
    if seconds == 86400 and (clock is not None or "adverb" in said or "count" not in said):
        return Moment(rule=f"daily {at}")
    if seconds == 604800 and "weekday" in pieces:
        return Moment(rule=f"weekly {_SHORT_DAYS[DAY_OF[pieces['weekday']['name']]]} {at}")
    if seconds < SHORTEST:
        raise NoMomentError("That is too often: a minute is the least; nothing was set.")
    if clock is not None:
        raise NoMomentError(
            "A time of day goes with days, weekdays and months alone; nothing was set.",
            do="Say “every day at 7”, or “every 2 hours”.",
        )
    if seconds % 86400 == 0:
        return Moment(rule=f"every {int(seconds // 86400)} days")
    if seconds % 60:
        raise NoMomentError("Repetitions go by whole minutes; nothing was set.")
    return Moment(rule=f"every {int(seconds // 60)} minutes")


def _each_month(pieces: Mapping[str, Mapping[str, str]], unit: str, count: float, at: str) -> Moment:
    if count != 1:
        raise NoMomentError(
            "Every few months or years is not known; nothing was set.", do="Say “every month on the 1st”."
        )
    if MONTH_UNITS[unit] == 12:
        said = pieces.get("date")
        if said is None:
            raise NoMomentError(
                "On which day of the year? Nothing was set.", do="Say “every year on 24 December at 9”."
            )
        month, day = (MONTH_OF[said["name"]] if "name" in said else int(said["month"])), int(said["day"])
        _check_day(month, day)
        remark = "In years without a 29 February it is on the 28th." if (month, day) == (2, 29) else ""
        return Moment(rule=f"yearly {month}-{day} {at}", remark=remark)
    said = pieces.get("monthday", {})
    if "nth" not in said and said:
        return Moment(rule=f"monthly 31 {at}", remark="It is on each month's last day.")
    if "nth" not in said:
        raise NoMomentError(
            "On which day of the month? Nothing was set.", do="Say “every month on the 1st at 9”."
        )
    nth = int(said["nth"])
    if not 1 <= nth <= 31:
        raise NoMomentError(f"No month has a day {nth}; nothing was set.")
    remark = f"In months without a {nth}{_ending(nth)} it is on their last day." if nth > 28 else ""
    return Moment(rule=f"monthly {nth} {at}", remark=remark)


def _ending(number: int) -> str:
    return {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(number, "th")
