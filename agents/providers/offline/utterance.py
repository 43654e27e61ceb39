"""A sentence as typed: its words, and the values in it as people write them: numbers, days, times, addresses, codes, quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any

from agents.providers.offline.vocabulary import STOP, Word, stem, word_set

_LONGEST_HEAD = 400  # characters looked at for what is asked; the rest can only be an argument
_NEAR = 4_000  # characters looked at for typed values
_TAIL = 1_000  # characters looked at where a long text ends

_URL = re.compile(r"(?:https?|ftp|wss?)://[^\s<>\"']+|www\.[^\s<>\"']+", re.I)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_GUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I)
_QUOTED = re.compile(
    r"\"([^\"]{1,4000})\"|“([^”]{1,4000})”|„([^“”]{1,4000})[“”]|«([^»]{1,4000})»|`([^`]{1,4000})`"
    r"|(?<!\w)'([^'\n]{1,400})'(?!\w)|‘([^’\n]{1,400})’"
)
_TOKEN = re.compile(r"\S+")
_EXTENSION = re.compile(r"[^\\/]\.[A-Za-z][A-Za-z0-9]{0,4}$")
_IP = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?$|\[?[0-9a-fA-F:]*::[0-9a-fA-F:]*\]?$")
_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}(?::\d{1,5})?$|localhost(?::\d+)?$"
)
_CODE = re.compile(r"#?(?=[\w-]*\d)[A-Za-z0-9][\w-]{1,63}$")
_ORDINAL = re.compile(r"\d{1,2}(?:st|nd|rd|th)$", re.I)
_SYMBOL = re.compile(r"\$?[A-Z]{1,5}(?:[.-][A-Z]{1,2})?$")
_NOT_SYMBOLS = word_set("I A OK AM PM TV PC IT UP ME US USA UK EU CEO FAQ ASAP PDF CSV JSON URL API CPU")
_ZONE = re.compile(
    r"(?:[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?|UTC|GMT|CET|EST|PST)(?:[+-]\d{1,2})?$"
)
_MATHS = re.compile(r"[\d(.√-][\d\s.,+*/^%()×÷−-]{1,200}")
_OPERATION = re.compile(r"[\d)%]\s*(?:[*/^×÷+−-]|\*\*)\s*[-(]?\s*[\d(.]")
_PAIR = re.compile(
    r"(?<![\w-])(?:--)?(?:(?P<first>\w{1,30}) )?(?P<key>\w[\w-]{0,40}) ?(?P<sign>=|:(?=\s)) ?"
    r"(?:\"(?P<double>[^\"]{0,2000})\"|'(?P<single>[^']{0,2000})'|(?P<bare>[^\s,;\"']{1,2000}(?:,[^\s,;]{1,200}){0,50}))"
)
_SPOKEN_MATHS = re.compile(
    r"(\d[\d.]{0,15})\s*(times|x|plus|minus|divided by|multiplied by|to the power of|%\s+of|percent of)\s*(\d[\d.]{0,15})",
    re.I,
)
_SPOKEN = {
    "times": "*", "x": "*", "plus": "+", "minus": "-", "divided by": "/", "multiplied by": "*",
    "to the power of": "^",
}  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def words(text: str) -> list[Word]:
    """The words of ``text`` in order; ``what's`` counts as ``what``, ``don't`` as ``dont``."""
    found = []
    for match in _WORD.finditer(text):
        folded = _fold(match.group())
        found.append(Word(folded, stem(folded), match.start(), match.end()))
    return found


def terms(text: str) -> Iterator[str]:
    """Stems of ``text`` that carry meaning, hyphenated pairs also joined (``e-mail`` gives ``email``)."""
    before: Word | None = None
    for word in words(text):
        if before is not None and word.start == before.end + 1 and text[before.end] == "-":
            yield stem(before.text + word.text)
        if word.text not in STOP:
            yield word.stem
        before = word


def _fold(word: str) -> str:
    folded = word.casefold()
    if folded.isalnum():
        return folded
    folded = folded.replace("’", "'")
    return folded[:-2] if folded.endswith("'s") else folded.replace("'", "")


@dataclass(slots=True, frozen=True)
class Found:
    """A value found in the text, and where."""

    value: Any
    start: int
    end: int


class Utterance:
    """One message. Everything found in it is worked out once, on first use, in time linear to its length."""

    def __init__(self, text: str, today: date) -> None:
        self.text = text
        self.today = today
        self._near = text[:_NEAR]

    @cached_property
    def quoted(self) -> list[Found]:
        found = []
        for match in _QUOTED.finditer(self._near):
            inner = next(group for group in match.groups() if group is not None).strip()
            if inner:
                found.append(Found(inner, match.start(), match.end()))
        return found

    @cached_property
    def head_end(self) -> int:
        """The end of the question and the start of its subject: a colon, a line end, a quote."""
        ends = [self.quoted[0].start] if self.quoted else []
        for mark in re.finditer(r"[:：](?=\s)|\n", self._near[:_LONGEST_HEAD]):
            ends.append(mark.start())
            break
        return min([end for end in ends if end > 0], default=min(len(self.text), _LONGEST_HEAD))

    @cached_property
    def words(self) -> list[Word]:
        """All words of the first part of the text; values such as links are left in."""
        return words(self._near[: 2 * _LONGEST_HEAD])

    @cached_property
    def tokens(self) -> list[Found]:
        """Parts between blanks, stripped of the punctuation around them."""
        found = []
        for match in self._parts():
            core = match.group().strip("\"'“”„«»‘’`()[]{}<>,;!")
            core = core.rstrip("?.:") if len(core) > 2 and "*" not in core else core
            if core:
                start = match.start() + match.group().index(core)
                found.append(Found(core, start, start + len(core)))
        return found

    def _parts(self) -> Iterator[re.Match[str]]:
        """All parts; of a long text only those near its ends, for nothing in the middle is looked at."""
        if len(self.text) <= _NEAR + _TAIL:
            yield from _TOKEN.finditer(self.text)
        else:
            yield from _TOKEN.finditer(self.text, 0, _NEAR)
            yield from _TOKEN.finditer(self.text, len(self.text) - _TAIL)

    @cached_property
    def pairs(self) -> list[tuple[str, str, Found]]:
        """``name=value`` and ``name: value`` as ``(name, sign, value)``, a name of two words also as both."""
        found = []
        for match in _PAIR.finditer(self._near) if "=" in self._near or ":" in self._near else ():
            first, key, sign = match["first"] or "", match["key"], match["sign"]
            value = next(match[group] for group in ("double", "single", "bare") if match[group] is not None)
            found.append(
                (
                    key.replace("_", "").replace("-", "").casefold(),
                    sign,
                    Found(value, match.start("key"), match.end()),
                )
            )
            if first:
                both = Found(value, match.start("first"), match.end())
                found.append(((first + key).replace("_", "").casefold(), sign, both))
        return found

    @cached_property
    def urls(self) -> list[Found]:
        found = []
        for match in _URL.finditer(self._near):
            value = match.group().rstrip(".,;:!?)]}")
            found.append(Found(value, match.start(), match.start() + len(value)))
        return found

    @cached_property
    def emails(self) -> list[Found]:
        return [Found(match.group(), match.start(), match.end()) for match in _EMAIL.finditer(self._near)]

    @cached_property
    def guids(self) -> list[Found]:
        return [Found(match.group(), match.start(), match.end()) for match in _GUID.finditer(self._near)]

    @cached_property
    def dates(self) -> list[Found]:
        """Days, as ISO dates."""
        return [Found(day.isoformat(), start, end) for day, start, end in days(self._near, self.today)]

    @cached_property
    def times(self) -> list[Found]:
        """Times of day, as ``HH:MM``."""
        return [Found(*found) for found in times(self._near)]

    @cached_property
    def paths(self) -> list[Found]:
        return [
            token
            for token in self._near_tokens
            if _is_path(token.value) and not self.inside(token, self._links)
        ]

    @cached_property
    def globs(self) -> list[Found]:
        return [token for token in self._near_tokens if "*" in token.value and re.search(r"\w", token.value)]

    @cached_property
    def hosts(self) -> list[Found]:
        return [
            token
            for token in self._near_tokens
            if (_IP.match(token.value) or _HOST.match(token.value)) and not self.inside(token, self._links)
        ]

    @cached_property
    def codes(self) -> list[Found]:
        """Flight, parcel, order numbers: words with a digit in them that are nothing else."""
        other_values = [*self._links, *self.dates, *self.times]
        return [
            token
            for token in self._near_tokens
            if _CODE.match(token.value)
            and not _ORDINAL.match(token.value)
            and not self.inside(token, other_values)
        ]

    @cached_property
    def symbols(self) -> list[Found]:
        if self.text.isupper():
            return []
        return [
            Found(token.value.lstrip("$"), token.start, token.end)
            for token in self._near_tokens
            if _SYMBOL.match(token.value) and token.value not in _NOT_SYMBOLS
        ]

    @cached_property
    def zones(self) -> list[Found]:
        return [token for token in self._near_tokens if _ZONE.match(token.value)]

    @cached_property
    def expressions(self) -> list[Found]:
        """Sums to work out, spoken ones written with signs."""
        found = []
        for match in _SPOKEN_MATHS.finditer(self._near):
            one, sign, other = match.groups()
            of = sign.startswith("%") or sign.lower().startswith("percent")
            value = f"{one} / 100 * {other}" if of else f"{one} {_SPOKEN[sign.lower()]} {other}"
            found.append(Found(value, match.start(), match.end()))
        other_values = [*self._links, *self.dates, *self.times, *found]
        for match in _MATHS.finditer(self._near):
            value = match.group().strip(" ,.")
            start = match.start() + match.group().index(value) if value else 0
            candidate = Found(value, start, start + len(value))
            if _OPERATION.search(value) and not self.inside(candidate, other_values):
                found.append(candidate)
        return found

    @cached_property
    def numbers(self) -> list[Number]:
        """Plain numbers: none that is part of a link, a day, a time or a code."""
        other_values = [*self._links, *self.dates, *self.times]
        return [number for number in numbers(self._near) if not self.inside(number, other_values)]

    @cached_property
    def _near_tokens(self) -> list[Found]:
        return [token for token in self.tokens if token.start < _NEAR]

    @cached_property
    def _links(self) -> list[Found]:
        return [*self.urls, *self.emails, *self.guids]

    @staticmethod
    def inside(found: Found | Number | Word, others: list[Found]) -> bool:
        return any(found.start < other.end and other.start < found.end for other in others)


def _is_path(token: str) -> bool:
    if "://" in token or len(token) < 2 or "@" in token or "*" in token:
        return False
    if token.startswith(("~/", "./", "../")) or re.match(r"/[\w.]|[A-Za-z]:\\", token):
        return True
    return bool(_EXTENSION.search(token)) and not token.startswith("www.")


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
_SPOKEN_NUMBER = re.compile(
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
        _placed(text, _spoken_number(match), match.start(), match.end(), "", match.group().lower() == "one")
        for match in _SPOKEN_NUMBER.finditer(text)
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


def _spoken_number(match: re.Match[str]) -> int:
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
