"""Words and what they mean to keyword matching: their stems, and the lists of ``vocabulary.toml``, which says what each is for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


def word_set(listed: str) -> frozenset[str]:
    """The words of ``listed``, which are parted by blanks."""
    return frozenset(listed.split())


_LISTS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

STOP = word_set(_LISTS["stop"])
FAINT = word_set(_LISTS["faint"])
VAGUE = STOP - word_set(_LISTS["not_vague"]) | word_set(_LISTS["vague"])
_KEEP_S = word_set(_LISTS["keep_s"])
_ENDINGS = tuple((ending, least) for least, endings in _LISTS["endings"] for ending in endings.split())
_VOWEL = re.compile(r"[aeiouy]")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A light stem: plural, tense and the commonest derivations go; short words stay whole."""
    if not 3 <= len(word) <= 30 or not word.isascii() or word in _KEEP_S:
        return word
    if word.endswith("ies") and len(word) > 4:
        return stem(word[:-3] + "y")
    for ending, least in _ENDINGS:
        if not word.endswith(ending):
            continue
        left = word[: -len(ending)]
        if len(left) < least or not _VOWEL.search(left):
            continue
        if ending == "s":
            return word if left[-1] in "sui" else stem(left)
        if ending == "y" and left[-1] in "aeiou":
            continue
        if least > 2 and len(left) > 3 and left[-1] == left[-2] and left[-1] not in "aeiouls":
            return left[:-1]
        return left
    return word


FAINT_STEMS = frozenset(stem(word) for word in FAINT)
STOP_STEMS = frozenset(stem(word) for word in STOP)


@dataclass(slots=True, frozen=True)
class Word:
    """A word of a text: ``text`` folded to lower case, ``start``/``end`` its place in the original."""

    text: str
    stem: str
    start: int
    end: int


_NAME_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+|[^\W\da-zA-Z_]+")


@lru_cache(maxsize=8_192)
def name_words(name: str) -> tuple[str, ...]:
    """``HackerNews``, ``hacker_news`` and ``hacker-news`` all give ``("hacker", "news")``."""
    return tuple(part.casefold() for part in _NAME_PART.findall(name))


@lru_cache(maxsize=8_192)
def compact(name: str) -> str:
    """A name without case and separators, so that spellings of one name compare equal."""
    return "".join(name_words(name))


LANGUAGES = {name: code for code, names in _LISTS["languages"].items() for name in names.split()}
CURRENCIES = {
    **{name: code for code, names in _LISTS["currencies"].items() for name in names.split()},
    **{code.lower(): code for code in _LISTS["currency_codes"].split()},
}
_LENGTHS = {"seconds": 1 / 60, "minutes": 1, "hours": 60, "days": 1440, "weeks": 10_080}
MINUTES = {word: _LENGTHS[unit] for unit, words in _LISTS["lengths"].items() for word in words.split()}
CHOICE_WORDS: Mapping[str, str] = _LISTS["choices"]
BOTH_WAYS = word_set(_LISTS["both_ways"])
SHAPE_OF = {word: shape for shape, words in reversed(_LISTS["shapes"].items()) for word in words.split()}
OTHER_SHAPES, FROM, TO, ABOUT, NAMED = (
    word_set(_LISTS[name]) for name in ("other_shapes", "from", "to", "about", "named")
)
SAMPLES: Mapping[str, str] = _LISTS["samples"]
BASE_VERBS = word_set(_LISTS["base_verbs"])
SAYINGS: Mapping[str, list[str]] = {stem(word): sayings for word, sayings in _LISTS["sayings"].items()}

_STRENGTH = 0.75  # of the first related word; each further one counts a little less
_FADING = 0.92


def related(word: Word) -> tuple[tuple[str, float], ...]:
    """Stems an agent may use where a person says ``word``, each with a strength below 1."""
    return (
        _RELATED.get(word.text) or _RELATED.get(word.stem) or (_DICE if _THROW.fullmatch(word.text) else ())
    )


def phrase(first: Word, second: Word) -> tuple[tuple[str, float], ...]:
    """Like ``related``, for two neighbouring words."""
    return _BY_PHRASE.get((first.text, second.text), ())


def _faded(meant: str) -> tuple[tuple[str, float], ...]:
    return tuple((stem(word), _STRENGTH * _FADING**place) for place, word in enumerate(meant.split()))


def _table() -> dict[str, tuple[tuple[str, float], ...]]:
    table: dict[str, tuple[tuple[str, float], ...]] = {}
    for words, meant in _LISTS["synonyms"].items():
        for word in words.split():
            for key in (word, stem(word)):
                known = table.get(key, ())
                table[key] = known + tuple(pair for pair in _faded(meant) if pair not in known)
    return table


_RELATED = _table()
_THROW = re.compile(r"\d{0,3}d\d{1,3}")
_DICE = ((stem("dice"), 1.0),)
_BY_PHRASE = {tuple(pair.split()): _faded(meant) for pair, meant in _LISTS["phrases"].items()}
