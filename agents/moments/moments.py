"""Times within a sentence: "tomorrow at half past four", "alle 20 Minuten", "every month on the 31st". Pure.

A sentence is searched for pieces; pieces beside each other are one time. A time of which a part is not understood is
refused: a reminder at another time than was said is worse than none.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import msgspec

from agents.moments.days import FURTHEST, Pieces, day_of, months_later
from agents.moments.errors import NoMomentError
from agents.moments.repetitions import repeats, rule_of
from agents.moments.vocabulary import LATER_PARTS, MINUTES, MONTH_UNITS, PARTS, UNITS, number_of, unit_of

_MORNING = 9
_EARLY = 6
"""Hours below it are the afternoon's where a time is said without its half of the day."""


class Moment(msgspec.Struct, frozen=True):
    """A time: ``wait`` seconds from now, ``at`` a local time, or again and again by ``rule`` (``schedule/rules.py``).

    ``remark`` is to be said of it, "" for nothing. ``zone`` is the time zone that was named.
    """

    wait: float = 0.0
    at: datetime | None = None
    rule: str = ""
    remark: str = ""
    zone: str = ""


def moment_of(pieces: Pieces, now: datetime, *, wakes: bool = False) -> Moment:
    """The time that pieces of a sentence name. ``now`` is the local time. Raises ``NoMomentError``.

    "At 4" is the next one, and on another day than today's the afternoon's; with ``wakes`` the morning's.
    """
    zone = pieces.get("zone", {}).get("zone", "")
    zone = (
        zone.upper() if zone == "utc" else "/".join(_titled(part) for part in zone.split("/")) if zone else ""
    )
    if unknown := pieces.get("unknown"):
        raise NoMomentError(f"When that is ({unknown['unknown']}) is not known here; nothing was set.")
    if often := pieces.get("often"):
        raise NoMomentError(
            f"At which times ({often['often']})? Nothing was set.",
            do="Say one for each: “every day at 8”, “every day at 20”.",
        )
    clock, _ = _clock(pieces)
    if repeats(pieces):
        rule, remark = rule_of(pieces, clock, now)
        return Moment(rule=rule, remark=remark, zone=zone)
    if "wait" in pieces:
        return _waited(pieces, clock, now)
    return Moment(at=_once(pieces, now, wakes=wakes), zone=zone)


def _titled(part: str) -> str:
    return "_".join(word.capitalize() for word in part.split("_"))


def _waited(pieces: Pieces, clock: time | None, now: datetime) -> Moment:
    wait = pieces["wait"]
    if "hourhalf" in wait:
        wait = {"count": "1.5", "unit": "hour"}
    months, seconds = 0, 0.0
    for count, unit in (("count", "unit"), ("count2", "unit2")):
        if count not in wait:
            continue
        number, name = number_of(wait[count]), unit_of(wait.get(unit, "m"))
        if name in MONTH_UNITS:
            months += int(number * MONTH_UNITS[name])
        else:
            seconds += number * UNITS[name]
    if not months and seconds <= 0:
        raise NoMomentError("“In 0” is no time to wait; nothing was set.")
    _not_too_far(now + timedelta(seconds=min(seconds, 1e10)), now)
    if day_of(pieces, now.date(), lambda weekday: now.date()) is not None:
        raise NoMomentError("A wait and a day do not go together; nothing was set.")
    if not months and clock is None:
        return Moment(wait=seconds)
    if clock is not None and seconds % 86400:
        raise NoMomentError("A wait and a time of day do not go together; nothing was set.")
    at = datetime.combine(months_later(now.date(), months), clock or now.time()) + timedelta(seconds=seconds)
    return Moment(at=_not_too_far(at, now))


def _not_too_far(at: datetime, now: datetime) -> datetime:
    if at > now + FURTHEST:
        raise NoMomentError("That is more than ten years away; nothing was set.", do="Choose an earlier day.")
    return at


def _clock(pieces: Pieces) -> tuple[time | None, bool]:
    """The clock time, and True where its half of the day is left open ("at 4")."""
    part = PARTS.get(_part(pieces), -1)
    clock = pieces.get("clock")
    if clock is None:
        return (time(part), False) if part >= 0 else (None, False)
    if "named" in clock:
        return time(0 if clock["named"] in ("midnight", "mitternacht") else 12), False
    hour = int(clock["hour"]) if clock["hour"].isdecimal() else int(number_of(clock["hour"]))
    minute = int(clock.get("minute", 0)) or MINUTES.get(clock.get("minuteword", ""), 0)
    open_half = (
        "ampm" not in clock and 1 <= hour <= 12 and part < 0 and not clock.get("hour", "").startswith("0")
    )
    if special := clock.get("special", ""):
        shift = {"half past": 30, "halb": -30, "dreiviertel": -15, "drei viertel": -15}.get(
            " ".join(special.split())
        )
        if shift is None:
            shift = 15 if special.endswith(("past", "nach")) else -15
        minute = shift
    elif "minutes" in clock:
        minute = int(number_of(clock["minutes"])) * (1 if clock["way"] in ("past", "nach") else -1)
    if "ampm" in clock:
        if not 1 <= hour <= 12:
            raise NoMomentError(f"There is no {hour} {clock['ampm']}; nothing was set.")
        hour = hour % 12 + (12 if clock["ampm"][0] == "p" else 0)
    elif part in LATER_PARTS and 1 <= hour < 12 and not (part == PARTS["night"] and hour < 6):
        hour += 12
    total = (hour * 60 + minute) % 1440
    return time(total // 60, total % 60), open_half


def _part(pieces: Pieces) -> str:
    for kind in ("part", "relative", "weekday"):
        if part := pieces.get(kind, {}).get("part"):
            return part
    return pieces.get("repeat", {}).get("parted", "")


def _once(pieces: Pieces, now: datetime, *, wakes: bool) -> datetime:
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


def _day(pieces: Pieces, now: datetime) -> date | None:
    today = now.date()

    def next_weekday(weekday: int) -> date:
        ahead = (weekday - today.weekday()) % 7
        if ahead == 0:
            clock, _ = _clock(pieces)
            ahead = 0 if clock is not None and datetime.combine(today, clock) > now else 7
        return today + timedelta(days=ahead)

    found = day_of(pieces, today, next_weekday)
    return today if found is None and _part(pieces) == "tonight" else found
