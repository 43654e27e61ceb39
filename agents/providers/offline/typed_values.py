"""Values with a shape of their own (addresses, days, currencies …), checking a value whole, and numbers assigned to parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any

from agents.providers.offline.tool_index import Param, Profile
from agents.providers.offline.utterance import Found, Number, Utterance
from agents.providers.offline.vocabulary import (
    CURRENCIES,
    LANGUAGES,
    MINUTES,
    STOP,
    STOP_STEMS,
    Word,
    name_words,
    stem,
    word_set,
)

_EMAIL = re.compile(r"[^\s@]{1,64}@[^\s@]{1,200}")
_TRUE = frozenset(("true", "yes", "on", "1"))
_FALSE = frozenset(("false", "no", "off", "0"))
_TOWARDS = frozenset(("to", "in", "into", "as"))
_FILE_ENDINGS = word_set(
    "py md js ts sh rs go rb pl txt csv json xml html css pdf doc docx xls xlsx png jpg jpeg gif zip log toml yaml yml"
)
_ANY_DAY = date(2000, 1, 1)  # numbers do not depend on it
_MONEY = re.compile(r"[€$£¥₹₩]")


def typed(param: Param, utterance: Utterance, profile: Profile, used: list[Found]) -> list[Found]:
    """Values in the utterance that have the shape of ``param``, likeliest first."""
    match param.kind:
        case "email":
            return utterance.emails
        case "url":
            return utterance.urls or [
                Found(f"https://{host.value}", host.start, host.end)
                for host in utterance.hosts
                if host.value[-1].isalpha() and not _is_code_file(host.value)
            ]
        case "guid":
            return utterance.guids
        case "date" | "time":
            found = utterance.dates if param.kind == "date" else utterance.times
            return found[1:2] if param.direction == "to" and len(found) > 1 else found
        case "datetime":
            return _moments(utterance)
        case "path":
            return _paths(param, utterance)
        case "glob":
            return utterance.globs
        case "host":
            return utterance.hosts
        case "language":
            return _directed(param, _listed(utterance, LANGUAGES), utterance, _codes_wanted(param))
        case "currency":
            return _currencies(param, utterance)
        case "unit":
            return _units(param, utterance)
        case "symbol":
            return [one for one in utterance.symbols if one.value.casefold() not in profile.name_stems]
        case "expression":
            return sorted(utterance.expressions, key=lambda one: one.start - one.end)
        case "code":
            free = [one for one in utterance.codes if not Utterance.inside(one, used)]
            return sorted(free, key=lambda one: not any(letter.isalpha() for letter in one.value))
        case "timezone":
            return utterance.zones
    return []


def whole(param: Param, given: Any, utterance: Utterance) -> Any:
    """``given`` as a value of ``param``, converted where that loses nothing; None when it does not fit."""
    if param.choices and param.kind != "array":
        same = [
            one for one in param.choices if one == given and isinstance(one, bool) == isinstance(given, bool)
        ]
        spelled = [one for one in param.choices if str(one).casefold() == str(given).casefold()]
        return (same or spelled or [None])[0]
    match param.kind:
        case "boolean":
            return _truth(given)
        case "integer" | "number":
            return _numeric(param, given)
        case "array":
            if isinstance(given, str):
                given = [part.strip() for part in given.split(",") if part.strip()]
            return _items(param, given, utterance) if isinstance(given, list) else None
        case "object":
            return given if isinstance(given, dict) else None
        case "unknown":
            return given
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    text = str(given).strip()
    return _text(param, text, utterance) if text else None


def _text(param: Param, text: str, utterance: Utterance) -> str | None:
    asked = Utterance(text, utterance.today)
    match param.kind:
        case "email":
            return text if _EMAIL.fullmatch(text) else None
        case "url":
            return text if re.match(r"[a-zA-Z][\w+.-]*:", text) or asked.hosts else None
        case "guid":
            return text if asked.guids else None
        case "date":
            return asked.dates[0].value if asked.dates else None
        case "time":
            return asked.times[0].value if asked.times else None
        case "datetime":
            found = _moments(asked)
            return found[0].value if found else None
        case "expression":
            return text if any(letter.isdigit() for letter in text) else None
        case "code":
            return text if " " not in text and any(letter.isdigit() for letter in text) else None
        case "currency":
            return CURRENCIES.get(text.casefold())
    return text


def _items(param: Param, given: list[Any], utterance: Utterance) -> list[Any] | None:
    if param.item is None:
        return given
    items = [whole(param.item, one, utterance) for one in given]
    return None if None in items else items


def _numeric(param: Param, given: Any) -> int | float | None:
    value = given
    if isinstance(given, str):
        found = Utterance(given, _ANY_DAY).numbers
        value = found[0].value if len(found) == 1 else None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not param.least <= value <= param.most
    ):
        return None
    if param.kind == "integer":
        return int(value) if float(value).is_integer() else None
    return value


def _truth(given: Any) -> bool | None:
    if isinstance(given, bool):
        return given
    text = str(given).casefold()
    return True if text in _TRUE else False if text in _FALSE else None


def _moments(utterance: Utterance) -> list[Found]:
    written = re.search(
        r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?", utterance.text[:4_000]
    )
    if written:
        return [Found(written.group().replace(" ", "T"), written.start(), written.end())]
    if not utterance.dates or not utterance.times:
        return []
    day, time = utterance.dates[0], utterance.times[0]
    start, end = min(day.start, time.start), max(day.end, time.end)
    return [Found(f"{day.value}T{time.value}:00", start, end)] if end - start < 60 else []


def _paths(param: Param, utterance: Utterance) -> list[Found]:
    found = [one for one in utterance.paths if one.value not in {host.value for host in utterance.hosts} or
             _is_code_file(one.value)]  # fmt: skip
    folder = bool(param.stems & {"folder", "dir", "directory", "director"})
    return sorted(found, key=lambda one: ("." in one.value.rsplit("/", 1)[-1]) == folder)


def _is_code_file(value: str) -> bool:
    """``main.py`` looks like a host name; these endings are files all the same."""
    ending = value.rsplit(".", 1)[-1].lower()
    return ending in _FILE_ENDINGS


def _listed(utterance: Utterance, table: dict[str, str]) -> list[tuple[Word, str]]:
    return [(word, table[word.text]) for word in utterance.words if word.text in table]


def _codes_wanted(param: Param) -> bool:
    return bool({"code", "iso", "639"} & (param.about | param.stems)) or (len(param.example) == 2)


def _directed(param: Param, found: list[tuple[Word, str]], utterance: Utterance, codes: bool) -> list[Found]:
    """Of several languages the one on the side that ``param`` names: from German, to French."""
    sided: list[Found] = []
    for word, code in found:
        before = _before(word.start, utterance)
        side = "from" if before == "from" else "to" if before in _TOWARDS else ""
        if param.direction and side and side != param.direction:
            continue
        if param.direction == "from" and side != "from":
            continue
        value = code if codes else utterance.text[word.start : word.end].capitalize()
        sided.append(Found(value, word.start, word.end))
    return sorted(sided, key=lambda one: _before(one.start, utterance) not in _TOWARDS)


def _currencies(param: Param, utterance: Utterance) -> list[Found]:
    found = [Found(code, word.start, word.end) for word, code in _listed(utterance, CURRENCIES)]
    found += [
        Found(CURRENCIES[m.group()], m.start(), m.end()) for m in _MONEY.finditer(utterance.text[:4_000])
    ]
    if not param.direction:
        return found
    of_amount = [one for one in found if _beside_number(one, utterance) and not _towards(one, utterance)]
    source = next(iter(of_amount), None) or next((one for one in found if not _towards(one, utterance)), None)
    if param.direction == "from":
        return [source] if source else []
    others = [one for one in found if source is None or one.value != source.value]
    return sorted(others, key=lambda one: not _towards(one, utterance))


def _units(param: Param, utterance: Utterance) -> list[Found]:
    """``10 miles to km`` and ``how many km are 10 miles``; units are an open class."""
    for number in utterance.numbers:
        start = utterance.text.find(number.unit, number.start) if number.unit else -1
        if start < 0 or number.unit.casefold() in STOP:
            continue
        source = Found(number.unit, start, start + len(number.unit))
        if param.direction != "to":
            return [source]
        return _unit_wanted(source, utterance)
    return []


def _unit_wanted(source: Found, utterance: Utterance) -> list[Found]:
    words = utterance.words
    after = [word for word in words if word.start >= source.end]
    if len(after) > 1 and after[0].text in _TOWARDS and after[1].text not in STOP:
        return [_as_written(after[1], utterance)]
    for one, two, three in zip(words, words[1:], words[2:], strict=False):
        if one.text == "how" and two.text in ("many", "much") and three.text not in STOP:
            return [_as_written(three, utterance)]
    return []


def _as_written(word: Word, utterance: Utterance) -> Found:
    return Found(utterance.text[word.start : word.end], word.start, word.end)


def _before(start: int, utterance: Utterance) -> str:
    words = utterance.text[max(0, start - 16) : start].split()
    return words[-1].casefold() if words else ""


def _towards(found: Found, utterance: Utterance) -> bool:
    return _before(found.start, utterance) in _TOWARDS


def _beside_number(found: Found, utterance: Utterance) -> bool:
    return any(
        -2 < found.start - number.end <= 1
        or 0 <= number.start - found.end <= 1
        or number.start <= found.start < number.end
        for number in utterance.numbers
    )


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
    params: list[Param], utterance: Utterance, profile: Profile, used: list[Found]
) -> Iterator[tuple[Param, int | float, Found]]:
    """Numbers for the numeric ``params`` (required ones first): by the words around a number, then in order.

    A number with no telling word goes only to a required parameter, or to one that counts something
    in an agent whose text parameters would not want the number themselves.
    """
    if not params:
        return
    free = [number for number in utterance.numbers if not Utterance.inside(number, used)]
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
    minutes = MINUTES.get(number.unit.lower())
    if wanted is None or minutes is None or number.dice:
        return None
    return round(number.value * minutes / wanted, 6)


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
