"""Numbers, days and times of day in a text, as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from agents.providers.offline.vocabulary import stem

_DIGITS = re.compile(
    r"(?<![\w.:/@#,])([-+]?)(\d[\d,]{0,17}(?:\.\d{1,12})?)([%€$£°]|[a-zA-Zµ°]{1,10})?(?![\w@]|\.\d|:\d|/\d)"
)
_DICE = re.compile(r"(?<!\w)(\d{0,3})[dD](\d{1,4})(?!\w)")
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_AFTER = re.compile(r"[\s-]{0,3}([^\W\d_]+|[%€$£°])")
_BEFORE = re.compile(r"([^\W\d_]+)\W{0,2}$|([€$£])\s?$")
_ONES = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_ROUND = {"dozen": 12, "hundred": 100, "thousand": 1_000, "couple": 2}
_SPOKEN = re.compile(
    rf"(?<![\w-])(?:(?P<tens>{'|'.join(_TENS)})(?:[\s-](?P<unit>{'|'.join(list(_ONES)[1:10])}))?"
    rf"|(?P<ones>{'|'.join(_ONES)})(?:\s(?P<times>hundred|thousand|dozen))?"
    rf"|an?\s(?P<round>{'|'.join(_ROUND)}))(?![\w'’])",
    re.I,
)
_A_WHILE = re.compile(r"\b(half an?|an?)\s(hour|minute|second|day|week)\b", re.I)


@dataclass(slots=True, frozen=True)
class Number:
    """A number with the words next to it: ``after`` as a stem, ``unit`` and ``before`` as written.

    ``dice`` says that it came from ``3d6``, as ``count`` or as ``sides``. ``weak`` marks "one", mostly a word.
    """

    value: int | float
    start: int
    end: int
    unit: str = ""
    after: str = ""
    before: str = ""
    dice: str = ""
    weak: bool = False


def numbers(text: str) -> list[Number]:
    """The numbers of ``text`` in order of appearance."""
    found: list[Number] = []
    for match in _DICE.finditer(text):
        count, sides = match.groups()
        if count:
            found.append(Number(int(count), match.start(), match.start() + len(count), dice="count"))
        found.append(Number(int(sides), match.end() - len(sides), match.end(), dice="sides"))
    for match in _DIGITS.finditer(text):
        sign, digits, suffix = match.groups()
        if suffix and suffix.lower() in _ORDINALS:
            continue
        value = _value(digits)
        if value is None:
            continue
        found.append(
            _placed(text, -value if sign == "-" else value, match.start(), match.end(), suffix or "")
        )
    found += [
        _placed(text, _spoken(match), match.start(), match.end(), "", match.group().lower() == "one")
        for match in _SPOKEN.finditer(text)
    ]
    for match in _A_WHILE.finditer(text):
        amount = 0.5 if match[1].lower().startswith("half") else 1
        found.append(_placed(text, amount, match.start(), match.end(1), "", amount == 1))
    return sorted(found, key=lambda number: number.start)


def _placed(text: str, value: float, start: int, end: int, suffix: str, weak: bool = False) -> Number:
    after = _AFTER.match(text, end)
    unit = suffix or (after.group(1) if after else "")
    before = _BEFORE.search(text[max(0, start - 24) : start])
    word = (before.group(1) or before.group(2)) if before else ""
    return Number(value, start, end, unit, stem(unit.casefold()), word.casefold(), weak=weak)


def _value(digits: str) -> int | float | None:
    whole, _, fraction = digits.partition(".")
    if "," in whole:
        parts = whole.split(",")
        if all(len(part) == 3 for part in parts[1:]) and 1 <= len(parts[0]) <= 3:
            whole = "".join(parts)
        elif len(parts) == 2 and parts[1] == "":
            whole = parts[0]
        elif len(parts) == 2 and not fraction:
            return float(f"{parts[0]}.{parts[1]}")
        else:
            return None
    return float(f"{whole}.{fraction}") if fraction else int(whole)


def _spoken(match: re.Match[str]) -> int:
    groups = {key: value.lower() for key, value in match.groupdict().items() if value}
    if "tens" in groups:
        return _TENS[groups["tens"]] + _ONES.get(groups.get("unit", ""), 0)
    if "ones" in groups:
        return _ONES[groups["ones"]] * _ROUND.get(groups.get("times", ""), 1)
    return _ROUND[groups["round"]]


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
