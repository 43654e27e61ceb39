"""True when a frame from an image is one that a machine can have made."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.builtins.higher_order import merging
from agents.runtimes.lispy.frames import (
    AND,
    BODY,
    CALL,
    COMPOSE,
    COND,
    DEFINE,
    DICT_FILTER,
    DICT_MAP,
    DOTIMES,
    FIELDS,
    FILTER,
    FOR_EACH,
    IF,
    LET,
    LET_STAR,
    MAP,
    OR,
    PIPE,
    REDUCE,
    SEQUENCE,
    SET,
    SORT,
    UNLESS,
    WHEN,
)
from agents.runtimes.lispy.values import Symbol

_SPECIAL = frozenset({IF, COND, DEFINE, SET, LET, LET_STAR, AND, OR, WHEN, UNLESS, PIPE, DOTIMES})


def is_sound(frame: list[Any]) -> bool:
    """True when lengths and places in the frame go together. The types of its fields are right already."""
    kind = frame[0]
    if kind in _SPECIAL:
        form = frame[1]
        if not form or type(form[0]) is not Symbol or form[0] != FIELDS[kind][0]:
            return False
    test = _TESTS.get(kind)
    return test is None or test(*frame[1:])


def _let(form: list[Any], scope: Any, done: list[Any]) -> bool:
    return len(form) >= 2 and type(form[1]) is list and len(done) < len(form[1])


def _let_star(form: list[Any], place: int, scope: Any) -> bool:
    return len(form) >= 2 and type(form[1]) is list and 0 <= place < len(form[1])


def _dotimes(form: list[Any], scope: Any, place: int, count: int) -> bool:
    return len(form) >= 3 and (0 <= place <= count or (place == 0 and count == -1))


def _map(procedure: Any, lists: list[Any], place: int, done: list[Any]) -> bool:
    return _for_each(procedure, lists, place) and len(done) == place - 1


def _for_each(procedure: Any, lists: list[Any], place: int) -> bool:
    return (
        bool(lists)
        and all(type(items) is list for items in lists)
        and 1 <= place <= min(len(items) for items in lists)
    )


def _sort(procedure: Any, items: list[Any], done: list[Any], width: int, left: int, right: int) -> bool:
    count = len(items)
    if not 1 <= width < count or width & (width - 1):
        return False
    start, middle, end = merging(count, len(done), width)
    return start <= left < middle <= right < end and left + right - middle == len(done)


def _over_map(procedure: Any, entries: dict[str, Any], keys: list[Any], done: list[Any]) -> bool:
    return keys == list(entries) and all(type(key) is str for key in keys) and len(done) < len(keys)


_TESTS: dict[int, Any] = {
    CALL: lambda form, scope, done: len(done) < len(form),
    BODY: lambda form, place, scope: 3 <= place <= len(form),
    SEQUENCE: lambda form, place, scope: 1 <= place < len(form),
    IF: lambda form, scope: 3 <= len(form) <= 4,
    COND: lambda form, place, scope: 1 <= place < len(form),
    DEFINE: lambda form, scope: len(form) == 3 and type(form[1]) is Symbol,
    SET: lambda form, scope: len(form) == 3 and type(form[1]) is Symbol,
    LET: _let,
    LET_STAR: _let_star,
    AND: lambda form, place, scope: 2 <= place < len(form),
    OR: lambda form, place, scope: 2 <= place < len(form),
    WHEN: lambda form, scope: len(form) >= 2,
    UNLESS: lambda form, scope: len(form) >= 2,
    PIPE: lambda form, place, scope: 2 <= place < len(form),
    DOTIMES: _dotimes,
    COMPOSE: lambda procedures, place: 0 <= place < len(procedures),
    MAP: _map,
    FOR_EACH: _for_each,
    FILTER: lambda procedure, items, place, done: 1 <= place <= len(items) and len(done) < place,
    REDUCE: lambda procedure, items, place: 1 <= place <= len(items),
    SORT: _sort,
    DICT_MAP: _over_map,
    DICT_FILTER: _over_map,
}
