"""Assigns the numbers in a text to parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.providers.offline.numbers import Number
from agents.providers.offline.schema import Param, Profile
from agents.providers.offline.tokens import STOP_STEMS, name_words, stem, word_set
from agents.providers.offline.utterance import Found, Utterance
from agents.providers.offline.vocabulary import MINUTES

_SIDES = frozenset(stem(word) for word in ("sides", "faces"))
_COUNTS = frozenset(
    map(
        stem,
        word_set(
            "count number num limit amount quantity n top max maximum results size length total rolls dice value times "
            "level volume percent"
        ),
    )
)
_BYTES = stem("bytes")  # no count of things: a number without that word is none
_YEARLIKE = 1_000  # from here a number that nothing explains is no count of things
_PERCENT = frozenset(stem(word) for word in ("percent", "percentage", "brightness", "volume", "%"))


def assign(
    params: list[Param], utterance: Utterance, profile: Profile, taken: list[Found]
) -> Iterator[tuple[Param, int | float, Found]]:
    """Numbers for the numeric ``params`` (required ones first): by the words around a number, then in order.

    A number with no telling word goes only to a required parameter, or to one that counts something
    in an agent whose text parameters would not want the number themselves.
    """
    if not params:
        return
    free = [number for number in utterance.numbers if not Utterance.inside(number, taken)]
    waiting = list(params)
    for fits in (_by_dice, _by_duration, _by_word):
        for number in list(free):
            for param in waiting:
                value = _fitting(param, fits(param, number))
                if value is not None:
                    yield param, value, _place(number, utterance)
                    free.remove(number)
                    waiting.remove(param)
                    break
    eats_text = any(param.kind == "text" and not param.choices for param in profile.required())
    for param in waiting:
        if not param.required and (eats_text or not param.stems & _COUNTS or _BYTES in param.stems):
            continue
        for number in free:
            unfit = number.weak or number.dice or (not param.required and number.value >= _YEARLIKE)
            value = None if unfit else _fitting(param, number.value)
            if value is not None:
                yield param, value, _place(number, utterance)
                free.remove(number)
                break


def _by_dice(param: Param, number: Number) -> float | None:
    if number.dice == "sides" or number.after in _SIDES:
        return number.value if param.stems & _SIDES else None
    if number.dice == "count":
        return number.value if param.stems & _COUNTS and not param.stems & _SIDES else None
    return None


def _by_duration(param: Param, number: Number) -> float | None:
    wanted = next(
        (MINUTES[word] for word in name_words(param.name) if len(word) > 2 and word in MINUTES), None
    )
    if wanted is None:
        wanted = next(
            (MINUTES[word] for word in ("seconds", "minutes", "hours") if stem(word) in param.about), None
        )
    said = MINUTES.get(number.unit.lower())
    if wanted is None or said is None or number.dice:
        return None
    return round(number.value * said / wanted, 6)


def _by_word(param: Param, number: Number) -> float | None:
    if number.dice:
        return None
    if number.unit == "%" and (param.stems | param.about) & _PERCENT:
        return number.value
    if stem(number.before) in param.stems and number.before not in ("a", "an", "the"):
        return number.value
    telling = number.after and number.after not in STOP_STEMS
    if telling and (number.after in param.stems or number.after in param.about):
        return number.value
    return None


def _fitting(param: Param, value: float | None) -> Any:
    if value is None:
        return None
    if param.kind == "integer":
        if not float(value).is_integer():
            return None
        value = int(value)
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    if not param.least <= value <= param.most or (param.choices and value not in param.choices):
        return None
    return value


def _place(number: Number, utterance: Utterance) -> Found:
    """The number together with the percent or the length of time it counts."""
    unit = number.unit.lower()
    if unit not in MINUTES and stem(unit) not in _PERCENT:
        return Found(None, number.start, number.end)
    start = utterance.text.find(number.unit, number.start)
    return Found(None, number.start, max(number.end, start + len(number.unit)))
