"""Days and times of day as people write them."""

from __future__ import annotations

import re
from datetime import date, timedelta

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?![\d.])")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b(?:,?\s+(\d{{4}}))?", re.I)
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}}))?", re.I)
_WEEKDAY = re.compile(rf"\b(?:(next|this|on)\s+)?({'|'.join(_DAYS)})\b", re.I)
_RELATIVE = re.compile(r"\b(day after tomorrow|tomorrow|today|tonight|yesterday|next week)\b", re.I)
_IN = re.compile(r"\bin\s+(\d{1,3}|a)\s+(day|week)s?\b", re.I)
_STEPS = {
    "day after tomorrow": 2, "tomorrow": 1, "today": 0, "tonight": 0, "yesterday": -1, "next week": 7,
}  # fmt: skip
_CLOCK = re.compile(
    r"(?<![\w:.])([01]?\d|2[0-3])[:h]([0-5]\d)(?::[0-5]\d)?\s?(am|pm|a\.m\.|p\.m\.)?(?![\w:])", re.I
)
_HOUR = re.compile(r"(?<![\w:.])(1[0-2]|0?[1-9])\s?(am|pm|a\.m\.|p\.m\.|o'clock|o’clock)(?!\w)", re.I)
_NOON = re.compile(r"\b(noon|midnight)\b", re.I)


def days(text: str, today: date) -> list[tuple[date, int, int]]:
    """Days named in ``text``: ``(day, start, end)``. A month's day without a year is the next one."""
    found: list[tuple[date, int, int]] = []

    def add(day: date | None, match: re.Match[str]) -> None:
        if day is not None and not any(
            match.start() < end and start < match.end() for _, start, end in found
        ):
            found.append((day, match.start(), match.end()))

    for match in _ISO.finditer(text):
        add(_day(match[1], match[2], match[3]), match)
    for match in _DOTTED.finditer(text):
        add(_day(match[3], match[2], match[1]), match)
    for match in _DAY_MONTH.finditer(text):
        add(_coming(match[1], match[2], match[3], today), match)
    for match in _MONTH_DAY.finditer(text):
        add(_coming(match[2], match[1], match[3], today), match)
    for match in _RELATIVE.finditer(text):
        add(_after(today, _STEPS[match[1].lower()]), match)
    for match in _IN.finditer(text):
        step = 1 if match[1].lower() == "a" else int(match[1])
        add(_after(today, step * (7 if match[2].lower() == "week" else 1)), match)
    for match in _WEEKDAY.finditer(text):
        ahead = (_DAYS.index(match[2].lower()) - today.weekday()) % 7 or 7
        add(_after(today, ahead), match)
    return sorted(found, key=lambda one: one[1])


def times(text: str) -> list[tuple[str, int, int]]:
    """Times of day in ``text``: ``("17:30", start, end)``."""
    found = [
        (f"{_hour(match[1], match[3])}:{match[2]}", match.start(), match.end())
        for match in _CLOCK.finditer(text)
    ]
    found += [
        (f"{_hour(match[1], match[2])}:00", match.start(), match.end()) for match in _HOUR.finditer(text)
    ]
    found += [
        ("12:00" if match[1].lower() == "noon" else "00:00", match.start(), match.end())
        for match in _NOON.finditer(text)
    ]
    return sorted(found, key=lambda one: one[1])


def _hour(hour: str, half: str | None) -> str:
    value, half = int(hour), (half or "").lower().replace(".", "")
    if half == "pm" and value < 12:
        value += 12
    elif half == "am" and value == 12:
        value = 0
    return f"{value:02d}"


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _after(today: date, step: int) -> date | None:
    try:
        return today + timedelta(days=step)
    except OverflowError:
        return None


def _coming(day: str, month: str, year: str | None, today: date) -> date | None:
    number = str(_MONTHS.index(month[:3].lower()) + 1)
    if year:
        return _day(year, number, day)
    this_year = _day(str(today.year), number, day)
    if this_year is not None and this_year < today:
        return _day(str(today.year + 1), number, day)
    return this_year
