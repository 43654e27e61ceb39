"""Rules for repeated moments. Pure.

``daily 03:00``, ``weekly mon,thu 18:00``, ``monthly 31 09:00``, ``yearly 12-24 18:00``, ``every 6 hours``;
``daily 14 2026-12-04 07:00`` (every 14 days, 4 December is one of them), ``monthly 1mon 09:00``, ``monthly lastfri 09:00``.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from rappd.errors import UsageProblemError

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_EVERY = re.compile(r"every (\d{1,5}) ?(minute|hour|day)s?")
_YEARLY = re.compile(r"(\d{1,2})-(\d{1,2})")
_STEPPED = re.compile(r"(\d{1,3}) (\d{4}-\d\d-\d\d) (.*)")
_NTH = re.compile(r"([1-4]|last)([a-z]+)")
_LONGEST = timedelta(days=366)
_EXAMPLES = "Write daily 03:00, weekly sunday 03:00 or every 6 hours."


class Rule(msgspec.Struct, frozen=True):
    """``every`` so many seconds; or at ``hour:minute`` on ``weekdays`` (Monday is 0), or on ``day`` of each month, or of ``month``.

    A month without that day has it on its last one. With ``nth`` (1-4, -1 for the last) the weekday is that one of each
    month. With ``step`` it is every so many days, counted from ``first``.
    """

    every: int = 0
    weekdays: frozenset[int] = frozenset()
    hour: int = 0
    minute: int = 0
    day: int = 0
    month: int = 0
    nth: int = 0
    step: int = 0
    first: date = date.min


def parse_rule(text: str) -> Rule:
    """Reads a rule. Raises ``UsageProblemError`` with examples for what is none."""
    words = " ".join(text.lower().split())
    if found := _EVERY.fullmatch(words):
        every = timedelta(**{f"{found[2]}s": int(found[1])})
        if not timedelta(minutes=1) <= every <= _LONGEST:
            raise UsageProblemError(f"“{text}” is out of range: a minute to a year.", do=_EXAMPLES)
        return Rule(every=int(every.total_seconds()))
    kind, _, rest = words.partition(" ")
    days, day, month, nth, step, first = frozenset[int](), 0, 0, 0, 0, date.min
    if kind == "daily" and (stepped := _STEPPED.fullmatch(rest)):
        step, rest = int(stepped[1]), stepped[3]
        first = _date_of(stepped[2])
    elif kind == "daily":
        days = frozenset(range(7))
    elif kind in ("weekly", "monthly", "yearly"):
        named, _, rest = rest.partition(" ")
        if kind == "weekly":
            days = _weekdays(named)
        elif kind == "monthly" and (found := _NTH.fullmatch(named)):
            nth, days = -1 if found[1] == "last" else int(found[1]), _weekdays(found[2])
        else:
            month, day = _day_of(kind, named)
    clock = _CLOCK.fullmatch(rest)
    if clock is None or not (days or day or (0 < step <= _LONGEST.days and first != date.min)):
        raise UsageProblemError(f"“{text}” is no rule for moments.", do=_EXAMPLES)
    return Rule(
        weekdays=days,
        hour=int(clock[1]),
        minute=int(clock[2]),
        day=day,
        month=month,
        nth=nth,
        step=step,
        first=first,
    )


def _date_of(text: str) -> date:
    """The day; ``date.min`` for one that there is not."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.min


def _weekdays(named: str) -> frozenset[int]:
    found = [
        {number for number, name in enumerate(_DAYS) if len(day) >= 3 and name.startswith(day)}
        for day in named.split(",")
    ]
    return frozenset().union(*found) if all(found) else frozenset()


def _day_of(kind: str, named: str) -> tuple[int, int]:
    """Month and day, the month 0 for every one; the day 0 for none."""
    if kind == "monthly":
        return 0, int(named) if named.isdecimal() and len(named) < 3 and 1 <= int(named) <= 31 else 0
    found = _YEARLY.fullmatch(named)
    month, day = (int(found[1]), int(found[2])) if found else (0, 0)
    is_one = 1 <= month <= 12 and 1 <= day <= calendar.monthrange(2024, month)[1]  # a leap year
    return (month, day) if is_one else (0, 0)


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone of that name; None, which is this machine's own, for "". Raises ``UsageProblemError``."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageProblemError(
            f"There is no time zone “{name}”.", do="Write one like Europe/Berlin."
        ) from error


def moment_at(local: datetime, zone: ZoneInfo | None) -> float:
    """A local time in seconds since 1970.

    A clock time that a change to summer time leaves out counts an hour later; one that comes twice is the first.
    """
    return (local.astimezone() if zone is None else local.replace(tzinfo=zone)).timestamp()


def local_time(moment: float, zone: ZoneInfo | None) -> datetime:
    """The local time, without its zone, of seconds since 1970."""
    return datetime.fromtimestamp(moment, UTC).astimezone(zone).replace(tzinfo=None)


def next_moment(rule: Rule, after: float, zone: ZoneInfo | None = None) -> float:
    """The first moment of a rule later than ``after``, both in seconds since 1970.

    A clock time that a change to summer time leaves out counts an hour later; one that comes twice counts once.
    """
    if rule.every:
        return after + rule.every
    day = local_time(after, zone).date()
    for _ in range(9):  # a day whose time is over, and a year whose day is
        day = _first_from(rule, day)
        moment = moment_at(datetime(day.year, day.month, day.day, rule.hour, rule.minute), zone)
        if moment > after:
            return moment
        day += timedelta(days=1)
    raise AssertionError("a rule has a day")


def _first_from(rule: Rule, day: date) -> date:
    if rule.step:
        return day + timedelta(days=(rule.first - day).days % rule.step) if day > rule.first else rule.first
    if rule.nth:
        return next(one for months in range(2) if (one := _nth_of_month(rule, day, months)) >= day)
    if rule.weekdays:
        return next(
            one for ahead in range(7) if (one := day + timedelta(days=ahead)).weekday() in rule.weekdays
        )
    for months in range(24):
        year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
        found = date(year, month + 1, min(rule.day, calendar.monthrange(year, month + 1)[1]))
        if found >= day and rule.month in (0, found.month):
            return found
    raise AssertionError("a rule has a month")


def _nth_of_month(rule: Rule, day: date, months: int) -> date:
    """The rule's weekday in the month that is so many ``months`` after that of ``day``."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    weekday, days = next(iter(rule.weekdays)), calendar.monthrange(year, month + 1)[1]
    begin = date(year, month + 1, 1 + 7 * (rule.nth - 1) if rule.nth > 0 else days - 6)
    return begin + timedelta(days=(weekday - begin.weekday()) % 7)
