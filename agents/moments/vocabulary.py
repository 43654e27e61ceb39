"""Words for numbers, days, months and parts of the day in English and German, as ``vocabulary.toml`` lists them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")


def _listed(words: str) -> list[str]:
    return re.split(r",\s+", words.strip())


def _by_word(rows: Iterable[tuple[_T, str]]) -> dict[str, _T]:
    """The value that each word stands for."""
    return {word: value for value, words in rows for word in _listed(words)}


_WORDS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NUMBERS: Mapping[str, float] = _by_word(_WORDS["numbers"])
HOURS = _listed(_WORDS["hours"])
MINUTES: Mapping[str, int] = _by_word(_WORDS["minutes"])
ORDINALS: Mapping[str, int] = _by_word(_WORDS["ordinals"])
HOLIDAYS: Mapping[str, tuple[int, int]] = _by_word((tuple(day), words) for day, words in _WORDS["holidays"])
NEVER_CONTENT = _listed(_WORDS["never_content"])
UNKNOWN_DAYS = _listed(_WORDS["unknown_days"])
UNITS: Mapping[str, float] = _by_word(_WORDS["units"])
MONTH_UNITS: Mapping[str, int] = _by_word(_WORDS["month_units"])
DAY_OF: Mapping[str, int] = _by_word(enumerate(_WORDS["weekdays"]))
MONTH_OF: Mapping[str, int] = _by_word(enumerate(_WORDS["months"], 1))
PARTS: Mapping[str, int] = _by_word(_WORDS["parts"])
LATER_PARTS = frozenset({15, 19, 21})
"""Parts in which "at 7" is 19:00."""


def any_of(words: object) -> str:
    """A pattern for any of the words, the longest first."""
    return "(?:" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + ")"  # type: ignore[call-overload]


NUMBER = rf"(?:\d{{1,4}}(?:[.,]\d)?|{any_of(NUMBERS)})"
UNIT = rf"(?:{any_of(UNITS.keys() - {'m', 's'})}|{any_of(MONTH_UNITS)})(?:en|n|e|s|\.)?"
WEEKDAY = rf"{any_of(DAY_OF)}"
MONTH = rf"{any_of(MONTH_OF)}"


def number_of(text: str) -> float:
    """The value of a text that ``NUMBER`` matches."""
    return NUMBERS[text] if text in NUMBERS else float(text.replace(",", "."))


def unit_of(text: str) -> str:
    """The unit of a text that ``UNIT`` matches, without its plural."""
    for end in ("", "en", "n", "e", "s", "."):
        stem = text.removesuffix(end) if end else text
        if stem in UNITS or stem in MONTH_UNITS:
            return stem
    raise AssertionError(text)
