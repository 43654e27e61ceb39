"""A sentence as typed: its words, and the typed values in it: numbers, dates, addresses, codes, quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import Any

from agents.providers.offline.quantities import Number, days, numbers, times
from agents.providers.offline.vocabulary import STOP, stem, word_set

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
_NAME_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+|[^\W\da-zA-Z_]+")


@dataclass(slots=True, frozen=True)
class Word:
    """A word of a text: ``text`` folded to lower case, ``start``/``end`` its place in the original."""

    text: str
    stem: str
    start: int
    end: int


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


@lru_cache(maxsize=8_192)
def name_words(name: str) -> tuple[str, ...]:
    """``HackerNews``, ``hacker_news`` and ``hacker-news`` all give ``("hacker", "news")``."""
    return tuple(part.casefold() for part in _NAME_PART.findall(name))


@lru_cache(maxsize=8_192)
def compact(name: str) -> str:
    """A name without case and separators, so that spellings of one name compare equal."""
    return "".join(name_words(name))


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
        taken = [*self._links, *self.dates, *self.times]
        return [
            token
            for token in self._near_tokens
            if _CODE.match(token.value) and not _ORDINAL.match(token.value) and not self.inside(token, taken)
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
        taken = [*self._links, *self.dates, *self.times, *found]
        for match in _MATHS.finditer(self._near):
            value = match.group().strip(" ,.")
            start = match.start() + match.group().index(value) if value else 0
            candidate = Found(value, start, start + len(value))
            if _OPERATION.search(value) and not self.inside(candidate, taken):
                found.append(candidate)
        return found

    @cached_property
    def numbers(self) -> list[Number]:
        """Plain numbers: none that is part of a link, a day, a time or a code."""
        taken = [*self._links, *self.dates, *self.times]
        return [number for number in numbers(self._near) if not self.inside(number, taken)]

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
