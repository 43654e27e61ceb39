"""Rules for repeated moments: ``daily 03:00``, ``weekly sunday 03:00``, ``every 6 hours``. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from rappd.errors import UsageProblemError

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_EVERY = re.compile(r"every (\d{1,4}) ?(minute|hour|day)s?")
_LONGEST = timedelta(days=366)
_EXAMPLES = "Write daily 03:00, weekly sunday 03:00 or every 6 hours."


class Rule(msgspec.Struct, frozen=True):
    """Either ``every`` so many seconds, or at ``hour:minute`` on ``weekdays`` (Monday is 0)."""

    every: int = 0
    weekdays: frozenset[int] = frozenset()
    hour: int = 0
    minute: int = 0


def parse_rule(text: str) -> Rule:
    """Reads a rule. Raises ``UsageProblemError`` with examples for what is none."""
    words = " ".join(text.lower().split())
    if found := _EVERY.fullmatch(words):
        step = timedelta(**{f"{found[2]}s": int(found[1])})
        if not timedelta(minutes=1) <= step <= _LONGEST:
            raise UsageProblemError(f"“{text}” is out of range: a minute to a year.", do=_EXAMPLES)
        return Rule(every=int(step.total_seconds()))
    kind, _, rest = words.partition(" ")
    days = frozenset(range(7))
    if kind == "weekly":
        day, _, rest = rest.partition(" ")
        days = frozenset(
            number for number, name in enumerate(_DAYS) if len(day) >= 3 and name.startswith(day)
        )
    clock = _CLOCK.fullmatch(rest)
    if kind not in ("daily", "weekly") or clock is None or not days:
        raise UsageProblemError(f"“{text}” is no rule for moments.", do=_EXAMPLES)
    return Rule(weekdays=days, hour=int(clock[1]), minute=int(clock[2]))


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


def next_moment(rule: Rule, after: float, zone: ZoneInfo | None = None) -> float:
    """The first moment of a rule later than ``after``, both in seconds since 1970.

    A clock time that a change to summer time leaves out counts an hour later; one that comes twice counts once.
    """
    if rule.every:
        return after + rule.every
    day = datetime.fromtimestamp(after, UTC).astimezone(zone).date()
    for _ in range(9):
        if day.weekday() in rule.weekdays:
            local = datetime(day.year, day.month, day.day, rule.hour, rule.minute)
            moment = (local.astimezone() if zone is None else local.replace(tzinfo=zone)).timestamp()
            if moment > after:
                return moment
        day += timedelta(days=1)
    raise AssertionError("a rule has a weekday")
