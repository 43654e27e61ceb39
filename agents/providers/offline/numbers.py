"""Numbers in a text: digits, words, dice."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.providers.offline.tokens import stem

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
