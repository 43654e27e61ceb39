"""Choosing among the values that a parameter allows, and reading yes from no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agents.providers.offline.schema import Param, Profile
from agents.providers.offline.utterance import Utterance, Word, name_words
from agents.providers.offline.vocabulary import BOTH_WAYS, CHOICE_WORDS, STOP, stem, word_set

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
    said: tuple[Word, ...]


def choose(param: Param, utterance: Utterance, profile: Profile) -> Choice | None:
    """The value of ``param.choices`` that the utterance names, or means (sureness below 2), if any."""
    best: Choice | None = None
    for value in param.choices:
        found = _named(value, utterance, profile) or _meant(value, utterance, profile)
        if found is None:
            continue
        if _leads(found, utterance):
            found = Choice(found.value, found.sureness + _ORDER, found.said)
        if best is None or _rank(found) > _rank(best):
            best = found
    return best


def switch(param: Param, utterance: Utterance, profile: Profile) -> Choice | None:
    """True when a yes-or-no parameter is mentioned: true, or false after "no", "without" and the like."""
    wanted = [stem(word) for word in name_words(param.name) if word not in _HELPERS]
    if not wanted:
        return None
    said = _run(wanted, utterance.words)
    if not said:
        return None
    if all(word.stem in profile.name_stems for word in said):
        return None
    place = utterance.words.index(said[0])
    before = {word.text for word in utterance.words[max(0, place - 2) : place]}
    return Choice(not before & _NO, 2.0, said)


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
    said = exact or _run([stem(part) for part in parts], utterance.words)
    if not said:
        return None
    sureness = 2.0 + 0.2 * len(parts) + (0.1 if exact else 0.0)
    if all(_in_name(word, utterance, profile) for word in said):
        sureness = 0.6
    return Choice(value, sureness, said)


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
    return bool(choice.said) and choice.said[0] is opening


def _number(value: Any, utterance: Utterance) -> Choice | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for number in utterance.numbers:
        if number.value == value:
            said = tuple(word for word in utterance.words if number.start <= word.start < number.end)
            return Choice(value, 2.0, said)
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


def _run(parts: Sequence[str], said: list[Word], *, exactly: bool = False) -> tuple[Word, ...]:
    """The words that spell ``parts`` next to each other, or joined in one, or else anywhere."""
    texts = [word.text if exactly else word.stem for word in said]
    for place in range(len(texts) - len(parts) + 1):
        if texts[place : place + len(parts)] == list(parts):
            return tuple(said[place : place + len(parts)])
    joined = "".join(parts)
    for place, (word, text) in enumerate(zip(said, texts, strict=True)):
        if text == joined:
            return (word,)
        after = said[place + 1] if place + 1 < len(said) else None
        if len(parts) == 1 and after is not None and word.text + after.text == joined:
            return (word, after)
    if len(parts) > 1 and all(part in texts for part in parts):
        return tuple(said[texts.index(part)] for part in parts)
    return ()


def _rank(choice: Choice) -> tuple[float, int]:
    return choice.sureness, -choice.said[0].start if choice.said else 0
