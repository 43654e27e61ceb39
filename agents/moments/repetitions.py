"""Repetitions that pieces of a sentence name, as rules (``rappd/sessions/schedule/rules.py``). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, time, timedelta

from agents.moments.days import DAYS, Pieces, month_and_day
from agents.moments.errors import NoMomentError
from agents.moments.vocabulary import DAY_OF, MONTH_UNITS, ORDINALS, UNITS, WEEKDAY, number_of, unit_of

SHORTEST = 60
"""Seconds between two moments of a repetition."""
_MORNING = time(9)
_ADVERBS = {
    "daily": "day", "täglich": "day", "hourly": "hour", "stündlich": "hour", "weekly": "week", "wöchentlich": "week",
    "monthly": "month", "monatlich": "month", "yearly": "year", "jährlich": "year", "jahrlich": "year",
}  # fmt: skip
_SHORT_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def repeats(pieces: Pieces) -> bool:
    """True where the pieces name a repetition."""
    return "repeat" in pieces or "each" in pieces.get("monthday", {})


def rule_of(pieces: Pieces, clock: time | None, now: datetime) -> tuple[str, str]:
    """The rule of a repetition, and what is to be said of it. ``now`` is the local time. Raises ``NoMomentError``."""
    piece: Mapping[str, str] = pieces.get("repeat", {})
    unit = _ADVERBS.get(piece.get("adverb", "")) or unit_of(piece.get("unit", "month"))
    fits = {
        "monthday",
        *(("weekday",) if unit == "week" else ("date",) if MONTH_UNITS.get(unit) == 12 else ()),
    }
    named = [kind for kind in DAYS if kind in pieces and (kind not in fits or (piece.keys() & _WHOLE_DAYS))]
    if named or "wait" in pieces:
        raise NoMomentError(
            "A repetition that begins or ends on a day is not known; nothing was set.",
            do="Say it when it is to begin, and cancel it when it is to end.",
        )
    at = f"{clock or _MORNING:%H:%M}"
    if "vague" in piece:
        raise NoMomentError(
            "Every so many weeks, or that one of each month? Nothing was set.",
            do="Say “every 3 weeks on Thursday” or “every third Thursday of the month”.",
        )
    if "nthday" in piece:
        nth, day = ORDINALS[piece["ordinal"]], _SHORT_DAYS[DAY_OF[piece["nthday"]]]
        if nth > 4:
            raise NoMomentError(f"Not every month has a {piece['ordinal']} one; nothing was set.")
        return f"monthly {'last' if nth < 0 else nth}{day} {at}", ""
    if "some" in piece:
        ends = "weekend" in piece["some"] or "wochenende" in piece["some"]
        return f"weekly {'sat,sun' if ends else 'mon,tue,wed,thu,fri'} {at}", ""
    if "days" in piece:
        days = sorted({DAY_OF[name] for name in re.findall(WEEKDAY, piece["days"])})
        if "alternate" in piece:
            return _stepped(14, clock, now, days[0]), ""
        return f"weekly {','.join(_SHORT_DAYS[day] for day in days)} {at}", ""
    if "parted" in piece:
        return f"daily {at}", ""
    count = 2.0 if "other" in piece else number_of(piece.get("count", "1"))
    if unit in MONTH_UNITS:
        return _each_month(pieces, unit, count, at)
    return _by_seconds(count * UNITS[unit], pieces, clock, now), ""


_WHOLE_DAYS = {"nthday", "some", "days", "parted"}


def _by_seconds(seconds: float, pieces: Pieces, clock: time | None, now: datetime) -> str:
    piece = pieces.get("repeat", {})
    if seconds == 86400 and (clock is not None or "adverb" in piece or "count" not in piece):
        return f"daily {clock or _MORNING:%H:%M}"
    if seconds % 604800 == 0 and seconds and (day := pieces.get("weekday", {}).get("name")):
        if seconds == 604800:
            return f"weekly {_SHORT_DAYS[DAY_OF[day]]} {clock or _MORNING:%H:%M}"
        return _stepped(int(seconds // 86400), clock, now, DAY_OF[day])
    if seconds < SHORTEST:
        raise NoMomentError("That is too often: a minute is the least; nothing was set.")
    if clock is not None and seconds % 86400 == 0:
        return _stepped(int(seconds // 86400), clock, now, None)
    if clock is not None:
        raise NoMomentError(
            "A time of day goes with days, weekdays and months alone; nothing was set.",
            do="Say “every day at 7”, or “every 2 hours”.",
        )
    if seconds % 86400 == 0:
        return f"every {int(seconds // 86400)} days"
    if seconds % 60:
        raise NoMomentError("Repetitions go by whole minutes; nothing was set.")
    return f"every {int(seconds // 60)} minutes"


def _stepped(days: int, clock: time | None, now: datetime, weekday: int | None) -> str:
    """Every so many days, beginning with the next that is not over and, where one is named, is that weekday."""
    if days > 366:
        raise NoMomentError("A year between two is the most; nothing was set.")
    at = clock or _MORNING
    first = now.date() if datetime.combine(now.date(), at) > now else now.date() + timedelta(days=1)
    if weekday is not None:
        first += timedelta(days=(weekday - first.weekday()) % 7)
    return f"daily {days} {first:%Y-%m-%d} {at:%H:%M}"


def _each_month(pieces: Pieces, unit: str, count: float, at: str) -> tuple[str, str]:
    if count != 1:
        raise NoMomentError(
            "Every few months or years is not known; nothing was set.", do="Say “every month on the 1st”."
        )
    if MONTH_UNITS[unit] == 12:
        piecee = pieces.get("date")
        if piecee is None:
            raise NoMomentError(
                "On which day of the year? Nothing was set.", do="Say “every year on 24 December at 9”."
            )
        month, day = month_and_day(piecee)
        remark = "In years without a 29 February it is on the 28th." if (month, day) == (2, 29) else ""
        return f"yearly {month}-{day} {at}", remark
    piecee = pieces.get("monthday", {})
    nth = (
        int(piecee["nth"])
        if "nth" in piecee
        else ORDINALS.get(piecee.get("ordinal", ""), -1)
        if piecee
        else 0
    )
    if nth < 0:
        return f"monthly 31 {at}", "It is on each month's last day."
    if not piecee:
        raise NoMomentError(
            "On which day of the month? Nothing was set.", do="Say “every month on the 1st at 9”."
        )
    if not 1 <= nth <= 31:
        raise NoMomentError(f"No month has a day {nth}; nothing was set.")
    remark = f"In months without a {nth}{_ending(nth)} it is on their last day." if nth > 28 else ""
    return f"monthly {nth} {at}", remark


def _ending(number: int) -> str:
    return {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(number, "th")
