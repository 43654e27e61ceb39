"""The day that pieces of a sentence name. Pure."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping
from datetime import date, timedelta

from agents.moments.errors import NoMomentError
from agents.moments.vocabulary import DAY_OF, HOLIDAYS, MONTH_OF

Pieces = Mapping[str, Mapping[str, str]]
DAYS = ("relative", "date", "monthday", "weekday")
"""Kinds of pieces that name a day."""
FURTHEST = timedelta(days=366 * 10)


def day_of(pieces: Pieces, today: date, next_weekday: Callable[[int], date]) -> date | None:
    """The day that is named; None where none is. ``next_weekday`` gives that of a weekday, Monday being 0.

    Raises ``NoMomentError``, also where two days are named that are not the same.
    """
    found: dict[str, date] = {}
    if piece := pieces.get("relative"):
        found["relative"] = _relative(piece, today)
    if piece := pieces.get("date"):
        found["date"] = _dated(piece, today)
    if piece := pieces.get("monthday"):
        found["monthday"] = _next_nth(int(piece.get("nth", 31)), today)
    if piece := pieces.get("weekday"):
        weekday = 5 if "weekend" in piece else DAY_OF[piece["name"]]
        if pieces.get("relative", {}).get("span") in ("week", "woche"):
            monday = found.pop("relative")
            found["weekday"] = monday + timedelta(days=weekday - monday.weekday())
        elif set(found.values()) and {day.weekday() for day in found.values()} == {weekday}:
            pass  # "Friday, 4 December"
        else:
            found["weekday"] = next_weekday(weekday)
    if len(set(found.values())) > 1:
        first, second = sorted(set(found.values()))[:2]
        raise NoMomentError(f"Two days are named, {first:%d %B} and {second:%d %B}; nothing was set.")
    return next(iter(found.values()), None)


def _relative(piece: Mapping[str, str], today: date) -> date:
    word = " ".join(piece["word"].split())
    if "span" in piece:
        months = {"week": 0, "woche": 0, "year": 12, "jahr": 12}.get(piece["span"], 1)
        return months_later(today, months) if months else today + timedelta(days=7)
    if "yesterday" in word or "gestern" in word or word.startswith("last"):
        raise NoMomentError(f"{word.capitalize()} is over; nothing was set.")
    if word in ("today", "heute"):
        return today
    return today + timedelta(days=2 if word.endswith("after tomorrow") or word.startswith(("ü", "ue")) else 1)


def _dated(piece: Mapping[str, str], today: date) -> date:
    month, day = month_and_day(piece)
    year = int(piece["year"]) if "year" in piece else 0
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


def month_and_day(piece: Mapping[str, str]) -> tuple[int, int]:
    """Month and day of a piece that is a date. Raises ``NoMomentError`` for a day that no year has."""
    if "holiday" in piece:
        return HOLIDAYS[piece["holiday"]]
    if "one" in piece:
        one, two = int(piece["one"]), int(piece["two"])
        if one != two and one <= 12 and two <= 12:
            raise NoMomentError(
                f"{one}/{two} may be the day before the month or after it; nothing was set.",
                do="Write the month as a word: 24 December.",
            )
        day, month = (one, two) if one > 12 else (two, one)
    else:
        month, day = MONTH_OF[piece["name"]] if "name" in piece else int(piece["month"]), int(piece["day"])
    if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(2024, month)[1]):
        name = calendar.month_name[month] if 1 <= month <= 12 else f"month {month}"
        raise NoMomentError(f"There is no {day} {name}; nothing was set.")
    return month, day


def _next_nth(day: int, today: date) -> date:
    if not 1 <= day <= 31:
        raise NoMomentError(f"No month has a day {day}; nothing was set.")
    for months in range(3):  # of two months in a row one has a 31st
        first = months_later(today.replace(day=1), months)
        if day <= calendar.monthrange(first.year, first.month)[1] and first.replace(day=day) >= today:
            return first.replace(day=day)
    raise AssertionError(day)


def months_later(day: date, months: int) -> date:
    """The same day so many months later, or that month's last one."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
