"""Words: cutting text into them, reducing them to stems, knowing which ones mean little."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NAME_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+|[^\W\da-zA-Z_]+")


def word_set(listed: str) -> frozenset[str]:
    """The words of ``listed``, which are parted by blanks."""
    return frozenset(listed.split())


STOP = word_set("""a about above after again all also am an and any anybody anyone anything are as at back be because been
    before being but by can cannot could couldnt did do does doesnt doing dont down each either else ever every
    for from get gets getting give gives go goes going gonna got had has hasnt have havent he hello her here
    hers hey hi him his how i id if ill im in into is isnt it its itself ive just kindly know let lets like
    long me mine much many more most my need not now of off ok okay on one only onto or other our out over own
    please really right say says shall she should so some something such sure tell tells telling told than thank thanks
    that thats the their them then there these they thing things this those to today tomorrow too u um up us very
    via wanna want was wasnt we well were what whats when where which while who whom whose why will wish with
    without wont would x yeah yes yesterday yet you your yours""")
"""Words that are no evidence for any agent."""

FAINT = word_set("""able access action actions agent agents allow answer app application ask assistant automatic base based
    big call called check choose code content create current data day days default describe description detail
    details different do entire example existing feature few file find first fix format function general
    generate good great handle hand help helper helps home house include info information input item items
    keep kind last latest learn leave line list load lookup look maker make manage manager many message mode month
    move name named new next number object old open operation optional option output parameter people
    perform person place point provide provides put query question quick read real request response
    result return returns run save search send service set several short show simple skill small specific
    start state status step stop string support system take text time title tool topic turn type use used useful
    user using value various view way week whenever win work world write year""")
"""Words that many agents share or that people say about anything: weak evidence."""

VAGUE = STOP - word_set("hello hi hey thanks thank yes no") | word_set(
    "stuff someone somebody somewhere whatever another same new nothing none"
)
"""Words that say nothing by themselves as an argument."""

_KEEP_S = word_set("news gas bus alias canvas always perhaps series species always lens chess")
_ENDINGS = tuple(
    (ending, least)
    for least, endings in (
        (3, "yses ysis yzing yzers yzer yzed yzes yze yse"),
        (
            4,
            "izations isations ations ization isation ation izing ising izers isers izer iser ized ised izes ises",
        ),
        (4, "ating ators ator ated ates ments ment ions ion ers ors ate ize ise er or"),
        (3, "ings ing ed"),
        (2, "s e y"),
    )
    for ending in endings.split()
)
"""Endings that go, and how many letters they must leave; the first that fits is taken."""
_VOWEL = re.compile(r"[aeiouy]")


@dataclass(slots=True, frozen=True)
class Word:
    """One word of a text: ``text`` folded to lower case, ``start``/``end`` its place in the original."""

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


def _fold(word: str) -> str:
    folded = word.casefold()
    if folded.isalnum():
        return folded
    folded = folded.replace("’", "'")
    return folded[:-2] if folded.endswith("'s") else folded.replace("'", "")


FAINT_STEMS = frozenset(stem(word) for word in FAINT)
STOP_STEMS = frozenset(stem(word) for word in STOP)
