"""Filling an agent's parameters from what was typed. What is not there is missing, never made up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import orjson

from agents.contract.schema_check import fits
from agents.providers.offline import free_text
from agents.providers.offline.tool_index import Param, Profile
from agents.providers.offline.typed_values import assign, typed, whole
from agents.providers.offline.utterance import Found, Utterance
from agents.providers.offline.vocabulary import (
    BOTH_WAYS,
    CHOICE_WORDS,
    STOP,
    Word,
    compact,
    name_words,
    stem,
    word_set,
)
from envelopes.codecs.strict_json import too_deep

_NO = word_set("no without not exclude excluding disable skip dont off omit")
_ORDER = 1.5  # what opening the sentence adds to sureness
_POLITE = word_set(
    "please hey hi hello ok okay can could would will you i want to need lets let us me so now then and"
)
_SWITCHED = word_set("turn switch turned power light lights lamp set put keep leave it them")
_HELPERS = word_set("is has include with enable use allow should the in of to as by")


@dataclass(slots=True, frozen=True)
class Choice:
    """The value chosen, how sure that is (0-3), and the words that said it."""

    value: Any
    sureness: float
    words: tuple[Word, ...]


def choose(param: Param, utterance: Utterance, profile: Profile) -> Choice | None:
    """The value of ``param.choices`` that the utterance names, or means (sureness below 2), if any."""
    best: Choice | None = None
    for value in param.choices:
        found = _named(value, utterance, profile) or _meant(value, utterance, profile)
        if found is None:
            continue
        if _leads(found, utterance):
            found = Choice(found.value, found.sureness + _ORDER, found.words)
        if best is None or _rank(found) > _rank(best):
            best = found
    return best


def switch(param: Param, utterance: Utterance, profile: Profile) -> Choice | None:
    """True when a yes-or-no parameter is mentioned: true, or false after "no", "without" and the like."""
    wanted = [stem(word) for word in name_words(param.name) if word not in _HELPERS]
    if not wanted:
        return None
    words = _run(wanted, utterance.words)
    if not words:
        return None
    if all(word.stem in profile.name_stems for word in words):
        return None
    place = utterance.words.index(words[0])
    before = {word.text for word in utterance.words[max(0, place - 2) : place]}
    return Choice(not before & _NO, 2.0, words)


def _named(value: Any, utterance: Utterance, profile: Profile) -> Choice | None:
    """Every word of ``value`` is in the utterance."""
    if not isinstance(value, str):
        return _number(value, utterance)
    if value.casefold() in BOTH_WAYS:
        return _on_or_off(value, utterance)
    parts = name_words(value)
    if not parts:
        return None
    exact = _run(parts, utterance.words, exactly=True)
    words = exact or _run([stem(part) for part in parts], utterance.words)
    if not words:
        return None
    sureness = 2.0 + 0.2 * len(parts) + (0.1 if exact else 0.0)
    if all(_in_name(word, utterance, profile) for word in words):
        sureness = 0.6
    return Choice(value, sureness, words)


def _meant(value: Any, utterance: Utterance, profile: Profile) -> Choice | None:
    """The verb of ``value`` (``show`` of ``show_board``) or a word that stands for it is in the utterance."""
    if not isinstance(value, str):
        return None
    parts = name_words(value)
    if not parts or parts[0] in BOTH_WAYS:
        return None
    rest = sum(stem(part) in {word.stem for word in utterance.words} for part in parts[1:]) * 0.2
    signs = frozenset(CHOICE_WORDS.get(parts[0], "").split())
    for word in utterance.words:
        if len(parts) > 1 and word.stem == stem(parts[0]):
            return Choice(value, 1.5 + rest, (word,))
        if word.text in signs:
            weak = parts[0] == "fact"
            return Choice(value, (0.2 if weak else 1.0) + rest, (word,))
    return None


def _on_or_off(value: str, utterance: Utterance) -> Choice | None:
    for place, word in enumerate(utterance.words):
        if word.text != value.casefold():
            continue
        before = {near.text for near in utterance.words[max(0, place - 4) : place]}
        if value == "off" or before & _SWITCHED or place == len(utterance.words) - 1:
            return Choice(value, 2.2, (word,))
    return None


def _leads(choice: Choice, utterance: Utterance) -> bool:
    """True when the sentence begins with the word: "put milk on the list" adds, whatever else it names."""
    opening = next((word for word in utterance.words if word.text not in _POLITE), None)
    return bool(choice.words) and choice.words[0] is opening


def _number(value: Any, utterance: Utterance) -> Choice | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for number in utterance.numbers:
        if number.value == value:
            words = tuple(word for word in utterance.words if number.start <= word.start < number.end)
            return Choice(value, 2.0, words)
    return None


def _in_name(word: Word, utterance: Utterance, profile: Profile) -> bool:
    """True when the word only spells the agent's name: ``list`` in "my todo list"."""
    if word.stem not in profile.name_stems or len(profile.name_stems) < 2:
        return False
    place = utterance.words.index(word)
    beside = utterance.words[max(0, place - 2) : place] + utterance.words[place + 1 : place + 2]
    return any(near.stem in profile.name_stems and near.text not in STOP for near in beside) or any(
        one.stem in profile.name_stems or stem(one.text + other.text) in profile.name_stems
        for one, other in pairwise(beside)
    )


def _run(parts: Sequence[str], words: list[Word], *, exactly: bool = False) -> tuple[Word, ...]:
    """The words that spell ``parts`` next to each other, or joined in one, or else anywhere."""
    texts = [word.text if exactly else word.stem for word in words]
    for place in range(len(texts) - len(parts) + 1):
        if texts[place : place + len(parts)] == list(parts):
            return tuple(words[place : place + len(parts)])
    joined = "".join(parts)
    for place, (word, text) in enumerate(zip(words, texts, strict=True)):
        if text == joined:
            return (word,)
        after = words[place + 1] if place + 1 < len(words) else None
        if len(parts) == 1 and after is not None and word.text + after.text == joined:
            return (word, after)
    if len(parts) > 1 and all(part in texts for part in parts):
        return tuple(words[texts.index(part)] for part in parts)
    return ()


def _rank(choice: Choice) -> tuple[float, int]:
    return choice.sureness, -choice.words[0].start if choice.words else 0


_NEUTRAL = frozenset(("fact", "general", "other", "any", "auto", "default", "normal", "note"))
_OBJECT = re.compile(r"\{.{0,4000}\}", re.S)
_JOINED = re.compile(r"\s*(?:,|;|&|\band\b|\bplus\b)\s*", re.I)
_ARTICLE = re.compile(r"^(?:and|some|the|an?|my|a few|a bit of)\s+", re.I)
_TAG = re.compile(r"(?<![\w&])#(\w{1,40})")
_FREE = frozenset(("text", "slot", "place"))


@dataclass(slots=True)
class Filled:
    """The arguments found, the required ones missing, and the parts of the text that were used."""

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    used: list[Found] = field(default_factory=list)


def fill(profile: Profile, utterance: Utterance) -> Filled:
    """Arguments for ``profile`` out of ``utterance``, surest first.

    The order: written as key=value, of a typed shape, after a telling preposition, the rest of the sentence.
    """
    filled = Filled()
    _Filling(profile, utterance, filled).run()
    filled.missing = [param.name for param in profile.required() if param.name not in filled.arguments]
    return filled


_CLAUSE = re.compile(r"(?:please\s+)?remember\s+that\s+", re.IGNORECASE)


class _Filling:
    def __init__(self, profile: Profile, utterance: Utterance, filled: Filled) -> None:
        self.profile = profile
        self.utterance = utterance
        self.filled = filled

    def run(self) -> None:
        if not self.profile.params:
            return
        self._written_out()
        self._chosen()
        self._typed()
        self._numbers()
        self._switches()
        self._quoted()
        self._after_prepositions()
        self._arrays()
        self._rest()
        self._defaults()

    def _open(self, *kinds: str, choices: bool = False) -> list[Param]:
        """Parameters still without a value, required ones first; those with ``choices`` only on demand."""
        found = [
            param
            for param in self.profile.params
            if param.name not in self.filled.arguments
            and (not kinds or param.kind in kinds)
            and (choices or not param.choices)
        ]
        return sorted(found, key=lambda param: not param.required)

    def _set(self, param: Param, value: Any, *places: Found | Word) -> bool:
        if not fits(value, param.schema) or not _travels(param.name, value):
            return False
        self.filled.arguments[param.name] = value
        self.filled.used += [Found(None, place.start, place.end) for place in places]
        return True

    def _free(self, found: list[Found]) -> list[Found]:
        return [one for one in found if not Utterance.inside(one, self.filled.used)]

    def _written_out(self) -> None:
        """``city=Berlin``, ``due date: tomorrow``, or a JSON object."""
        text = self.utterance.text
        match = _OBJECT.search(text) if "{" in text else None
        if match:
            self._from_object(match)
        for param in self._open():
            written = _written(param, self.utterance)
            if written is None:
                continue
            value = whole(param, written.value, self.utterance)
            if value is not None:
                self._set(param, value, written)

    def _from_object(self, match: re.Match[str]) -> None:
        try:
            given = orjson.loads(match.group())
        except orjson.JSONDecodeError:
            return
        if not isinstance(given, dict) or too_deep(given):
            return
        place = Found(None, match.start(), match.end())
        known = {param.name: param for param in self.profile.params}
        for key in given.keys() & known.keys():
            value = whole(known[key], given[key], self.utterance)
            if value is not None:
                self._set(known[key], value, place)
        bodies = [param for param in self.profile.params if param.kind == "object"]
        if len(bodies) == 1 and not given.keys() & known.keys():
            self._set(bodies[0], given, place)

    def _chosen(self) -> None:
        for param in self._open(choices=True):
            if not param.choices or param.kind == "array":
                continue
            choice = choose(param, self.utterance, self.profile)
            if choice is None or (choice.sureness < 2 and not param.required):
                continue
            self._set(param, choice.value, *(choice.words if _is_spent(choice) else ()))

    def _typed(self) -> None:
        for param in self._open():
            found = self._free(typed(param, self.utterance, self.profile, self.filled.used))
            if found:
                self._set(param, found[0].value, found[0])

    def _numbers(self) -> None:
        params = self._open("integer", "number")
        for param, value, place in assign(params, self.utterance, self.profile, self.filled.used):
            self._set(param, value, place)

    def _switches(self) -> None:
        for param in self._open("boolean"):
            choice = switch(param, self.utterance, self.profile)
            if choice is not None:
                self._set(param, choice.value, *choice.words)

    def _quoted(self) -> None:
        quotes = self._free(self.utterance.quoted)
        clause = _CLAUSE.match(self.utterance.text)
        if clause and all(quote.start > clause.end() for quote in quotes):
            return  # 'remember that the word is "tulip"': the whole clause is meant
        slots = self._open("text", "slot", "place")
        for quote in list(quotes):
            before = self.utterance.text[max(0, quote.start - 30) : quote.start].casefold().rstrip(" :=")
            named = next((p for p in slots if before.endswith((p.human(), p.name.casefold()))), None)
            if named is not None and self._set(named, quote.value, quote):
                slots.remove(named)
                quotes.remove(quote)
        lists = [p for p in self._open("array") if p.required and _takes_text(p)]
        if lists and quotes:
            self._set(lists[0], [quote.value for quote in quotes], *quotes)
            return
        for quote, param in zip(quotes, slots, strict=False):
            self._set(param, quote.value, quote)

    def _after_prepositions(self) -> None:
        for param in self._open("slot", "place", "timezone", "language", "text"):
            found = free_text.after_preposition(param, self.utterance, self.profile, self.filled.used)
            if found is not None:
                self._set(param, found.value, found)

    def _arrays(self) -> None:
        for param in self._open("array"):
            kind = param.item.kind if param.item else "slot"
            found: list[Found] = []
            if kind == "email" or "attende" in param.stems or "recipient" in param.stems:
                found = self._free(self.utterance.emails)
            elif kind == "url":
                found = self._free(self.utterance.urls)
            elif kind in ("integer", "number"):
                values = [
                    n for n in self.utterance.numbers if kind == "number" or float(n.value).is_integer()
                ]
                found = self._free([Found(n.value, n.start, n.end) for n in values if not n.weak])
            elif param.stems & {"tag", "label", "hashtag"}:
                found = [Found(m[1], m.start(), m.end()) for m in _TAG.finditer(self.utterance.text[:4_000])]
            if not found and _takes_text(param) and (param.required or kind == "slot"):
                listed = free_text.listed(param, self.utterance, self.profile, self.filled.used)
                if listed is not None:
                    self._set(param, _split(listed.value), listed)
                continue
            found = [one for one in found if param.item is None or fits(one.value, param.item.schema)]
            if found:
                self._set(param, [one.value for one in found], *found)

    def _rest(self) -> None:
        """The rest of the sentence goes to one parameter: a required one, else one that may take it."""
        required = [param for param in self._open() if param.required]
        if required:
            candidates = [p for p in required if p.kind in free_text.TAKES_REST or _takes_list(p)]
            candidates.sort(key=lambda param: param.kind != "text")
        elif any(isinstance(self.filled.arguments.get(p.name), str) and p.kind in _FREE and p.required
                 for p in self.profile.params if not p.choices):  # fmt: skip
            return
        else:
            candidates = [p for p in self._open("text", "slot") if not p.named]
            candidates.sort(key=lambda param: param.kind != "text")
        for param in candidates[:1]:
            rest = free_text.remainder(param, self.utterance, self.profile, self.filled.used)
            if rest is None:
                continue
            value: Any = (
                _split(rest.value) if param.kind == "array" else whole(param, rest.value, self.utterance)
            )
            if value not in (None, "", []):
                self._set(param, value, rest)

    def _defaults(self) -> None:
        """Required parameters with a value of their own in the schema, or a choice that says nothing."""
        found_text = any(isinstance(self.filled.arguments.get(p.name), str) and p.kind == "text" and not p.choices
                         for p in self.profile.params)  # fmt: skip
        for param in self._open(choices=True):
            if not param.required:
                continue
            if param.has_default:
                value = whole(param, param.default, self.utterance)
                if value is not None:
                    self._set(param, value)
            elif len(param.choices) == 1:
                self._set(param, param.choices[0])
            elif found_text:
                neutral = [
                    one for one in param.choices if isinstance(one, str) and one.casefold() in _NEUTRAL
                ]
                if neutral:
                    self._set(param, neutral[0])


def _written(param: Param, utterance: Utterance) -> Found | None:
    """The value written out for ``param``; after a colon only where the value has a shape of its own."""
    for key, sign, found in utterance.pairs:
        # "note: buy stamps" is a sentence, not a pair
        if key == compact(param.name) and (sign == "=" or param.kind not in ("text", "slot", "array")):
            return found
    return None


def _travels(name: str, value: Any) -> bool:
    """True when the argument survives being written as JSON: no infinities, no integers beyond 64 bits."""
    try:
        return bool(orjson.loads(orjson.dumps({name: value})) == {name: value})
    except orjson.JSONEncodeError:
        return False


def _split(text: str) -> list[str]:
    parts = [_ARTICLE.sub("", part.strip(" .?!\"'")) for part in _JOINED.split(text)]
    return [part for part in parts if part]


def _takes_text(param: Param) -> bool:
    return param.item is None or (
        param.item.kind in ("slot", "text", "place", "code") and not param.item.choices
    )


def _takes_list(param: Param) -> bool:
    return param.kind == "array" and _takes_text(param)


def _is_spent(choice: Choice) -> bool:
    """A value that was named is no part of the free text; a word that only hinted at it is."""
    return choice.sureness >= 1.0 and not _hints(choice)


def _hints(choice: Choice) -> bool:
    return choice.sureness < 2 and choice.value in ("preference", "task", "insight", "fact")
