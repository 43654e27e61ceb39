"""Finds the agents that the words point to: an index over the loaded tools, synonyms, and the scores it gives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import orjson

from agents.providers.offline.schema import Profile, profile_of, raw
from agents.providers.offline.utterance import Utterance, Word, compact
from agents.providers.offline.vocabulary import FAINT_STEMS, STOP, stem, word_set
from agents.providers.provider import Tool

_STRENGTH = 0.75  # of the first related word; each further one counts a little less
_FADING = 0.92

# said: what an agent for it is likely called or described with, likeliest first
_SAID = """
rain raining rainy: weather forecast
umbrella sunny sun cloudy snow snowing windy storm: weather forecast
warm cold hot: temperature thermometer
degrees: temperature thermometer weather
celsius fahrenheit kelvin: unit convert temperature
km kilometers kilometres miles meters metres feet foot inches cm yards: unit convert length distance
kg kilograms pounds lbs ounces grams: unit convert mass weight
liters litres gallons ml: unit convert volume
conversion exchange: convert
usd eur gbp jpy chf cad aud dollar euro yen francs money: currency convert exchange
calc compute multiply divide plus minus percent: calculator math expression evaluate
equation arithmetic maths: math calculator expression
remember memorize remind: memory store reminder
save: memory store note
forget: memory delete
recall remembered recollect: memory recall context
mail: email
letter message: email mail
email: mail
compose write: draft
todos chore chores task tasks shopping groceries: todo task
appointment meeting event events schedule: calendar schedule meeting
agenda diary: calendar
countdown alarm: timer
clock: time clock
temperature: thermometer weather
price cost worth quote shares: price stock
ticker stocks share: stock
joke funny laugh humor humour pun: joke
cook cooking dinner meal eat lunch dish bake: recipe cook
song songs listen album artist playlist band: music play
lamp lamps bulb: light
space storage: disk
drive: disk
definition: dictionary wikipedia
wiki encyclopedia article: wikipedia
cpu ram uptime load: system
computer machine server os: system machine
running: process
website webpage page site link: url web page fetch
download scrape: fetch web
picture photo: image
bill billing: invoice
ship release rollout rollback: deploy
ticket card cards: kanban card issue
client customer lead prospect: customer crm account
mood tone feeling: sentiment
tldr shorten condense: summary summarize
summary sum: summarize
say: translate
parcel package shipment delivery: parcel package tracking
plane flight flights: flight
headlines press: news headlines
guid guids: uuid
uuids: uuid
reachable alive: ping host
passphrase: password
random: generate
coin flip: coin random
throw toss: roll dice
die d20 d6: dice
quiz trivia: question quiz
barcode: code
mute louder volume quieter: volume music
reminder: remind reminder calendar
bug bugs lint: review code
repo repository commit commits: git
tweet post: post social
spell grammar: spelling grammar
"""

# two or three words that together point somewhere
_PHRASES = {
    ("what", "time"): "clock time",
    ("what", "date"): "date clock",
    ("what", "day"): "date clock",
    ("will", "it"): "forecast",
    ("look", "up"): "lookup",
    ("how", "warm"): "temperature thermometer",
    ("how", "hot"): "temperature thermometer",
    ("how", "cold"): "temperature thermometer",
    ("dont", "forget"): "remember memory store",
    ("keep", "mind"): "remember memory store",
    ("remember", "this"): "save store",
    ("remember", "that"): "save store",
    ("remember", "to"): "save store",
    ("remember", "my"): "save store",
    ("remember", "i"): "save store",
    ("you", "remember"): "recall context",
    ("create", "agent"): "learnnew",
    ("make", "agent"): "learnnew",
    ("build", "agent"): "learnnew",
    ("new", "agent"): "learnnew",
    ("to", "do"): "todo",
    ("turn", "on"): "switch",
    ("turn", "off"): "switch",
}


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
    for line in _SAID.strip().splitlines():
        said, _, meant = line.partition(":")
        for word in said.split():
            for key in (word, stem(word)):
                known = table.get(key, ())
                table[key] = known + tuple(pair for pair in _faded(meant) if pair not in known)
    return table


_RELATED = _table()
_THROW = re.compile(r"\d{0,3}d\d{1,3}")
_DICE = ((stem("dice"), 1.0),)
_BY_PHRASE = {pair: _faded(meant) for pair, meant in _PHRASES.items()}


_LONGEST_NAME = 6  # words of a spoken agent name
_MOST_WORDS = 60
_AFTER_HEAD = 0.25  # weight of words that are quoted or come after a colon
_CALLING = word_set("use using run call invoke execute via launch")
_CALLING_BY_NAME = _CALLING | word_set("ask try start open with through tell")
_SHAPE_EVIDENCE = {
    "expression": 2.2,
    "url": 0.8,
    "glob": 0.9,
    "email": 0.5,
    "host": 0.5,
    "guid": 0.8,
}
_FILLERS = word_set("is the s a an are todays me new")
_LONGEST_SAYING = 100
_SAYING = re.compile(r'["“]([^"“”\n]{2,60})["”]')


@dataclass(slots=True)
class Evidence:
    """A score of one agent, and the words that gave it."""

    score: float = 0.0
    places: set[int] = field(default_factory=set)
    name_stems: set[str] = field(default_factory=set)


@dataclass(slots=True, frozen=True)
class Mention:
    """An agent's name in the text. ``explicit`` when the person clearly asks for that agent."""

    tool: int
    start: int
    end: int
    length: int
    explicit: bool


class Index:
    """The tools of a turn, prepared for matching. Built once per set of tools, see ``index_of``."""

    def __init__(self, contents: Sequence[bytes]) -> None:
        known = [(place, profile_of(content)) for place, content in enumerate(contents)]
        self.places = [place for place, profile in known if profile is not None]
        self.profiles: list[Profile] = [profile for _, profile in known if profile is not None]
        self._postings: dict[str, list[tuple[int, float]]] = {}
        self._names: dict[str, int] = {}
        self._by_kind: dict[str, list[int]] = {}
        self._sayings: dict[str, int | None] = {}
        for number, profile in enumerate(self.profiles):
            self._add(number, profile)
        total = len(self.profiles) + 5
        self._rarity = {
            term: math.log(1 + total / len(found)) / math.log(1 + total)
            for term, found in self._postings.items()
        }

    def _add(self, number: int, profile: Profile) -> None:
        for term, weight in profile.weights.items():
            self._postings.setdefault(term, []).append((number, weight))
        self._names.setdefault(profile.compact, number)
        for tail in ("agent", "tool", "skill"):
            if profile.compact.endswith(tail) and len(profile.compact) > len(tail) + 2:
                self._names.setdefault(profile.compact.removesuffix(tail), number)
        for kind in {param.kind for param in profile.params if param.required}:
            self._by_kind.setdefault(kind, []).append(number)
        for saying in set(map(bare, _SAYING.findall(profile.description))) - {""}:
            self._sayings[saying] = None if saying in self._sayings else number

    def named(self, name: str) -> int | None:
        """The agent of exactly that name."""
        number = self._names.get(compact(name))
        return number if number is not None and self.profiles[number].name == name else None

    def is_called(self, spoken: str, text: str) -> bool:
        """True when an agent goes by a spoken name, and ``text`` writes it as the agent does."""
        number = self._names.get(compact(spoken))
        return number is not None and self.profiles[number].name in text

    def quoted_by(self, text: str) -> int | None:
        """The one agent whose description quotes this very sentence: ``Use it for "how are you?"``."""
        return self._sayings.get(bare(text)) if len(text) <= _LONGEST_SAYING else None

    def evidence(self, utterance: Utterance) -> dict[int, Evidence]:
        """The score that the words, and the shapes of the values in them, give each agent."""
        found: dict[int, Evidence] = {}
        said = utterance.words[:_MOST_WORDS]
        seen: set[str] = set()
        for place, word in enumerate(said):
            share = 1.0 if word.start < utterance.head_end else _AFTER_HEAD
            if word.text not in STOP and word.stem not in seen:
                seen.add(word.stem)
                self._point(found, [(word.stem, 1.0), *related(word)], (place,), share)
            for places, terms in _together(said, place):
                self._point(found, terms, places, share)
        for kind, weight in _SHAPE_EVIDENCE.items():
            if kind in self._by_kind and getattr(utterance, f"{kind}s"):
                for number in self._by_kind[kind]:
                    found.setdefault(number, Evidence()).score += weight
        return found

    def _point(
        self,
        found: dict[int, Evidence],
        terms: Iterable[tuple[str, float]],
        places: tuple[int, ...],
        share: float,
    ) -> None:
        """Add what one word, or one pair, says: for each agent only its strongest term counts."""
        best: dict[int, tuple[float, str]] = {}
        for term, strength in terms:
            rarity = self._rarity.get(term)
            if rarity is None:
                continue
            for number, weight in self._postings[term]:
                value = weight * strength * rarity
                if best.get(number, (0.0, ""))[0] < value:
                    best[number] = (value, term)
        for number, (value, term) in best.items():
            evidence = found.setdefault(number, Evidence())
            evidence.score += value * share
            evidence.places.update(places)
            evidence.name_stems.add(term)

    def mentions(self, utterance: Utterance) -> list[Mention]:
        """Agents named in the text outside quotes, the clearest and longest first."""
        said = [
            word for word in utterance.words[:_MOST_WORDS] if not Utterance.inside(word, utterance.quoted)
        ]
        found = []
        for place in range(len(said)):
            joined = ""
            for last in range(place, min(place + _LONGEST_NAME, len(said))):
                joined += compact(said[last].text) or said[last].text
                number = self._names.get(joined)
                if number is not None:
                    found.append(self._mention(number, said, place, last, utterance.text))
        return sorted(found, key=lambda mention: (not mention.explicit, -mention.length, mention.start))

    def _mention(self, number: int, said: list[Word], first: int, last: int, text: str) -> Mention:
        start, end = said[first].start, said[last].end
        name = self.profiles[number].name
        written = text[start:end]
        marked = written == name and (
            (not name.islower() and name[1:] != name[1:].lower()) or not name.isalpha()
        )
        before = said[first - 1].text if first else ""
        after = said[last + 1].text if last + 1 < len(said) else ""
        alone = len(said) == last - first + 1
        called = before in _CALLING or (written == name and before in _CALLING_BY_NAME and not name.islower())
        headed = first == 0 and text[end : end + 1] in (":", "!") and written.casefold() == name.casefold()
        explicit = marked or called or alone or headed or after in ("agent", "tool")
        return Mention(number, start, end, last - first + 1, explicit)


def index_of(tools: Sequence[Tool]) -> Index:
    """The index of ``tools``; the same content gives the same index without new work."""
    try:
        return _index(orjson.dumps(list(tools), default=repr, option=orjson.OPT_NON_STR_KEYS))
    except (orjson.JSONEncodeError, RecursionError):
        return _index_of_odd(tuple(raw(tool) for tool in tools))


def bare(text: str) -> str:
    """A sentence as it is compared: its words alone."""
    return " ".join(re.findall(r"[\w']+", text.casefold().replace("’", "'")))


@lru_cache(maxsize=16)
def _index(content: bytes) -> Index:
    # tool by tool, so that of many tools only changed ones are read again
    return Index([raw(tool) for tool in orjson.loads(content)])


@lru_cache(maxsize=16)
def _index_of_odd(contents: tuple[bytes, ...]) -> Index:
    return Index(contents)


def coverage(utterance: Utterance, evidence: Evidence, explained: Iterator[tuple[int, int]]) -> float:
    """The share of meaningful words that speak for the agent or became its arguments (0-1)."""
    spans = list(explained)
    known = total = 0.0
    for place, word in enumerate(utterance.words[:_MOST_WORDS]):
        if word.text in STOP or word.start >= utterance.head_end:
            continue
        weight = 0.3 if word.stem in FAINT_STEMS else 1.0
        total += weight
        if place in evidence.places or any(word.start < end and start < word.end for start, end in spans):
            known += weight
    return known / total if total else 1.0


def _together(said: list[Word], place: int) -> Iterator[tuple[tuple[int, int], Sequence[tuple[str, float]]]]:
    """The meaning of the word at ``place`` with the one after it: spelled as one word, or as a known phrase."""
    word = said[place]
    for beyond in range(place + 1, min(place + 4, len(said))):
        near = said[beyond]
        if beyond == place + 1 and (word.text not in STOP or near.text not in STOP):
            yield (place, beyond), ((stem(word.text + near.text), 1.0),)
        if near.text not in _FILLERS:
            meant = phrase(word, near)
            if meant:
                yield (place, beyond), meant
            break
