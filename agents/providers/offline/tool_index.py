"""Tools as keyword matching reads them: a profile of each, and an index that finds those that the words point to."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import orjson

from agents.providers.offline.utterance import Utterance, terms
from agents.providers.offline.vocabulary import (
    ABOUT,
    FAINT_STEMS,
    FROM,
    NAMED,
    OTHER_SHAPES,
    SHAPE_OF,
    STOP,
    TO,
    Word,
    compact,
    name_words,
    phrase,
    related,
    stem,
    word_set,
)
from agents.providers.provider import Tool

_LONGEST_DESCRIPTION = 2_000
_MOST_PARAMETERS = 64
_MOST_CHOICES = 200
_USUAL_DESCRIPTION = 40  # words; a longer one spreads its weight, so stuffing gains nothing
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s|\n")
_EXAMPLE = re.compile(
    r"(?:e\.g\.|such as|for example|for instance|example:|like)[\s:,]*[\"'`]?([^\s\"'`),;]+)", re.I
)

_FORMATS = {
    "email": "email", "uri": "url", "url": "url", "uri-reference": "url", "uuid": "guid", "guid": "guid",
    "date": "date", "time": "time", "date-time": "datetime", "hostname": "host", "ipv4": "host",
}  # fmt: skip


@dataclass(slots=True, frozen=True)
class Param:
    """A parameter. ``kind`` is its JSON type, or for text the shape its value has (``city`` → ``place``)."""

    name: str
    kind: str
    required: bool
    described: str
    stems: frozenset[str]
    about: frozenset[str]
    choices: tuple[Any, ...]
    has_default: bool
    default: Any
    least: float
    most: float
    example: str
    schema: dict[str, Any]
    item: Param | None = None

    @property
    def direction(self) -> str:
        """``from`` or ``to`` for one end of a pair, such as ``from_unit`` and ``target_language``."""
        spelled = set(name_words(self.name))
        return "from" if spelled & FROM else "to" if spelled & TO else ""

    @property
    def named(self) -> bool:
        """True when its value is what something is called, so only a name fits."""
        return any(word in NAMED for word in name_words(self.name))

    @property
    def topical(self) -> bool:
        """True when its value is what something is about."""
        return any(word in ABOUT for word in name_words(self.name))

    def human(self) -> str:
        """``due_date`` as a person says it: ``due date``."""
        return " ".join(name_words(self.name)) or self.name


@dataclass(slots=True, frozen=True)
class Profile:
    """A tool as it was read. ``weights`` maps each stem to how strongly the tool stands for it."""

    name: str
    compact: str
    description: str
    first_sentence: str
    name_stems: tuple[str, ...]
    lead: frozenset[str]
    weights: dict[str, float]
    params: tuple[Param, ...]

    def required(self) -> list[Param]:
        return [param for param in self.params if param.required]


def raw(tool: Tool) -> bytes:
    """A tool's content as bytes, what its profile is remembered by; empty for what is not JSON at all."""
    try:
        return orjson.dumps(tool, default=repr, option=orjson.OPT_NON_STR_KEYS)
    except (orjson.JSONEncodeError, RecursionError):
        pass  # huge integers, broken Unicode, cycles: the slower way takes all but the last
    try:
        return json.dumps(tool, default=repr, skipkeys=True).encode()
    except (ValueError, RecursionError):
        return b""


def parsed(content: bytes) -> Any:
    """The result of ``raw`` for ``content``, as far as it is JSON; None otherwise."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass  # infinities and huge integers
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=4_096)
def profile_of(content: bytes) -> Profile | None:
    """The profile of the tool that ``raw`` gave ``content`` for, or None when it has no usable name."""
    tool = parsed(content)
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return None
    name = function.get("name")
    if not isinstance(name, str) or not name.strip() or _text(name) != name:
        return None
    description = _text(function.get("description"))[:_LONGEST_DESCRIPTION]
    first = _SENTENCE_END.split(description.strip(), maxsplit=1)[0]
    params = _params(function.get("parameters"))
    named = name_words(name)
    name_stems = tuple(dict.fromkeys(stem(word) for word in named))
    return Profile(
        name,
        compact(name) or name,
        description,
        first,
        name_stems,
        frozenset(name_stems) | frozenset(terms(first)),
        _weights(named, description, first, params),
        params,
    )


def _weights(
    named: tuple[str, ...], description: str, first: str, params: tuple[Param, ...]
) -> dict[str, float]:
    weights: dict[str, float] = {}

    def add(term: str, weight: float) -> None:
        if term in FAINT_STEMS:
            weight *= 0.35
        if weights.get(term, 0.0) < weight:
            weights[term] = weight

    for word in named:
        add(stem(word), 3.0)
    for one, other in pairwise(named):
        weights[stem(one + other)] = 3.6
    first_terms, all_terms = set(terms(first)), set(terms(description))
    spread = min(1.0, math.sqrt(_USUAL_DESCRIPTION / max(1, len(all_terms))))
    for term in all_terms:
        add(term, (1.3 if term in first_terms else 0.7) * spread)
    for param in params:
        for term in param.stems:
            add(term, 0.8)
        for term in param.about:
            add(term, 0.4)
        for choice in param.choices[:20]:
            for word in name_words(choice) if isinstance(choice, str) else ():
                add(stem(word), 1.2)
    return weights


def _params(parameters: Any) -> tuple[Param, ...]:
    schema = parameters if isinstance(parameters, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    listed = schema.get("required")
    required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    needed = set(required)
    # beyond the limit only optional parameters are left out: every required one must be known
    names = [name for place, name in enumerate(properties) if place < _MOST_PARAMETERS or name in needed]
    names += [name for name in dict.fromkeys(required) if name not in properties]
    return tuple(_param(name, properties.get(name), name in needed) for name in names)


def _param(name: str, schema: Any, required: bool, depth: int = 0) -> Param:
    schema = _flattened(schema if isinstance(schema, dict) else {})
    described = _text(schema.get("description"))[:_LONGEST_DESCRIPTION]
    choices = schema.get("enum")
    if "const" in schema:
        choices = [schema["const"]]
    kind = _kind(name, schema, described)
    item = None
    if kind == "array" and depth == 0:
        item = _param(name, schema.get("items"), False, depth + 1)
    return Param(
        name=name,
        kind=kind,
        required=required,
        described=described,
        stems=frozenset(stem(word) for word in name_words(name)),
        about=frozenset(terms(described)),
        choices=tuple(choices[:_MOST_CHOICES]) if isinstance(choices, list) and choices else (),
        has_default="default" in schema and schema["default"] is not None,
        default=schema.get("default"),
        least=_bound(schema, "minimum", "exclusiveMinimum", -math.inf),
        most=_bound(schema, "maximum", "exclusiveMaximum", math.inf),
        example=_example(schema, described),
        schema=schema,
        item=item,
    )


def _flattened(schema: dict[str, Any]) -> dict[str, Any]:
    """``anyOf``/``oneOf`` with one real branch (an optional value) read as that branch."""
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list) and "type" not in schema:
            real = [
                branch for branch in branches if isinstance(branch, dict) and branch.get("type") != "null"
            ]
            if real:
                return {**real[0], **{known: value for known, value in schema.items() if known != key}}
    return schema


def _kind(name: str, schema: dict[str, Any], described: str) -> str:
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((one for one in declared if isinstance(one, str) and one != "null"), None)
    if declared in ("integer", "number", "boolean", "array", "object"):
        return str(declared)
    if declared is None and isinstance(schema.get("properties"), dict):
        return "object"
    if declared is None and isinstance(schema.get("items"), dict):
        return "array"
    if declared not in (None, "string"):
        return "unknown"
    written = schema.get("format")
    if isinstance(written, str) and written.lower() in _FORMATS:
        return _FORMATS[written.lower()]
    named = name_words(name)
    if named and named[-1] in OTHER_SHAPES:
        return "slot"
    shapes = [SHAPE_OF[word] for word in reversed([*named, "".join(named)]) if word in SHAPE_OF]
    shape = next((one for one in shapes if one != "code"), shapes[0] if shapes else None)
    if shape is None and re.search(r"\be-?mail address", described, re.I):
        return "email"
    return shape or "slot"


def _bound(schema: dict[str, Any], inclusive: str, exclusive: str, otherwise: float) -> float:
    for key in (inclusive, exclusive):
        value = schema.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            step = 0.0 if key == inclusive else (1e-9 if otherwise < 0 else -1e-9)
            return float(value) + step
    return otherwise


def _example(schema: dict[str, Any], described: str) -> str:
    examples = schema.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], str | int | float):
        return str(examples[0])
    if isinstance(schema.get("example"), str | int | float):
        return str(schema["example"])
    found = _EXAMPLE.search(described)
    return found.group(1).rstrip(".") if found else ""


def _text(value: Any) -> str:
    """``value`` if it is text, without halves of surrogate pairs, which nothing could encode again."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


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
        words = utterance.words[:_MOST_WORDS]
        seen: set[str] = set()
        for place, word in enumerate(words):
            share = 1.0 if word.start < utterance.head_end else _AFTER_HEAD
            if word.text not in STOP and word.stem not in seen:
                seen.add(word.stem)
                self._point(found, [(word.stem, 1.0), *related(word)], (place,), share)
            for places, meant in _together(words, place):
                self._point(found, meant, places, share)
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
        words = [
            word for word in utterance.words[:_MOST_WORDS] if not Utterance.inside(word, utterance.quoted)
        ]
        found = []
        for place in range(len(words)):
            joined = ""
            for last in range(place, min(place + _LONGEST_NAME, len(words))):
                joined += compact(words[last].text) or words[last].text
                number = self._names.get(joined)
                if number is not None:
                    found.append(self._mention(number, words, place, last, utterance.text))
        return sorted(found, key=lambda mention: (not mention.explicit, -mention.length, mention.start))

    def _mention(self, number: int, words: list[Word], first: int, last: int, text: str) -> Mention:
        start, end = words[first].start, words[last].end
        name = self.profiles[number].name
        written = text[start:end]
        marked = written == name and (
            (not name.islower() and name[1:] != name[1:].lower()) or not name.isalpha()
        )
        before = words[first - 1].text if first else ""
        after = words[last + 1].text if last + 1 < len(words) else ""
        alone = len(words) == last - first + 1
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


def _together(words: list[Word], place: int) -> Iterator[tuple[tuple[int, int], Sequence[tuple[str, float]]]]:
    """The meaning of the word at ``place`` with the one after it: spelled as one word, or as a known phrase."""
    word = words[place]
    for beyond in range(place + 1, min(place + 4, len(words))):
        near = words[beyond]
        if beyond == place + 1 and (word.text not in STOP or near.text not in STOP):
            yield (place, beyond), ((stem(word.text + near.text), 1.0),)
        if near.text not in _FILLERS:
            if meant := phrase(word, near):
                yield (place, beyond), meant
            break
