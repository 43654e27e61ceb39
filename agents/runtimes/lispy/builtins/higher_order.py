"""Procedures that apply procedures. How far one has come is a frame, so the machine can stop inside.

``RESUMES[kind](state, frame, value)`` takes what the procedure gave for the latest item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.runtimes.lispy.builtins.lists import items_of, sorted_items
from agents.runtimes.lispy.builtins.maps import map_of
from agents.runtimes.lispy.errors import wrong
from agents.runtimes.lispy.frames import (
    COMPLEMENT,
    COMPOSE,
    DICT_FILTER,
    DICT_MAP,
    FILTER,
    FOR_EACH,
    MAP,
    REDUCE,
    SORT,
)
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.printer import shortly
from agents.runtimes.lispy.values import ANY, Combined, is_procedure


def _apply(state: State, arguments: list[Any]) -> Any:
    """``(apply f a b '(c d))`` is ``(f a b c d)``."""
    procedure = _procedure("apply", arguments[0])
    last = items_of(state, "apply", arguments[-1])
    state.work(len(last))
    return state.apply(procedure, [*arguments[1:-1], *last])


def _map(state: State, arguments: list[Any]) -> Any:
    procedure = _procedure("map", arguments[0])
    lists = [items_of(state, "map", argument) for argument in arguments[1:]]
    state.stack.append([MAP, procedure, lists, 0, []])
    return _next_of_lists(state, state.stack[-1])


def _resume_map(state: State, frame: list[Any], value: Any) -> Any:
    frame[4].append(value)
    return _next_of_lists(state, frame)


def _for_each(state: State, arguments: list[Any]) -> Any:
    procedure = _procedure("for-each", arguments[0])
    lists = [items_of(state, "for-each", argument) for argument in arguments[1:]]
    state.stack.append([FOR_EACH, procedure, lists, 0])
    return _next_of_lists(state, state.stack[-1])


def _resume_for_each(state: State, frame: list[Any], value: Any) -> Any:
    return _next_of_lists(state, frame)


def _next_of_lists(state: State, frame: list[Any]) -> Any:
    """Of several lists the shortest says how often."""
    lists, index = frame[2], frame[3]
    for items in lists:
        if index >= len(items):
            state.stack.pop()
            return state.made(frame[4]) if frame[0] == MAP else None
    frame[3] = index + 1
    return state.apply(frame[1], [items[index] for items in lists])


def _filter(state: State, arguments: list[Any]) -> Any:
    procedure = _procedure("filter", arguments[0])
    state.stack.append([FILTER, procedure, items_of(state, "filter", arguments[1]), 0, []])
    return _next_to_filter(state, state.stack[-1])


def _resume_filter(state: State, frame: list[Any], value: Any) -> Any:
    if value is not None and value is not False:
        frame[4].append(frame[2][frame[3] - 1])
    return _next_to_filter(state, frame)


def _next_to_filter(state: State, frame: list[Any]) -> Any:
    items, index = frame[2], frame[3]
    if index >= len(items):
        state.stack.pop()
        return state.made(frame[4])
    frame[3] = index + 1
    return state.apply(frame[1], [items[index]])


def _reduce(state: State, arguments: list[Any]) -> Any:
    """``(reduce f list first)``; without ``first`` it starts with the list's own."""
    procedure = _procedure("reduce", arguments[0])
    items = items_of(state, "reduce", arguments[1])
    if len(arguments) == 3:
        value, start = arguments[2], 0
    elif items:
        value, start = items[0], 1
    else:
        raise wrong("reduce: the list is empty, and there is nothing to start with")
    state.stack.append([REDUCE, procedure, items, start])
    return _resume_reduce(state, state.stack[-1], value)


def _resume_reduce(state: State, frame: list[Any], value: Any) -> Any:
    _, procedure, items, index = frame
    if index >= len(items):
        state.stack.pop()
        return value
    frame[3] = index + 1
    return state.apply(procedure, [value, items[index]])


def _sort(state: State, arguments: list[Any]) -> Any:
    """``(sort list)`` or ``(sort list comes-before?)``, the two in either order; stable."""
    if len(arguments) == 1:
        return sorted_items(state, items_of(state, "sort", arguments[0]))
    given, procedure = arguments if is_procedure(arguments[1]) else arguments[::-1]
    _procedure("sort", procedure)
    items = items_of(state, "sort", given)
    state.charge(len(items))
    state.stack.append([SORT, procedure, items, [], 1, 0, 1])
    return _next_to_sort(state, state.stack[-1])


def _resume_sort(state: State, frame: list[Any], value: Any) -> Any:
    _, _, items, done, _, left, right = frame
    if value is not None and value is not False:
        done.append(items[right])
        frame[6] = right + 1
    else:
        done.append(items[left])
        frame[5] = left + 1
    return _next_to_sort(state, frame)


def _next_to_sort(state: State, frame: list[Any]) -> Any:
    """Merges runs of ``width`` from ``items`` into ``done``; asks whether the right one comes before."""
    while True:
        _, procedure, items, done, width, left, right = frame
        count = len(items)
        if width >= count:
            state.stack.pop()
            return state.made(list(items))
        _, middle, end = merging(count, len(done), width)
        if left < middle and right < end:
            return state.apply(procedure, [items[right], items[left]])
        done += items[left:middle]
        done += items[right:end]
        if end < count:
            frame[5], frame[6] = end, min(end + width, count)
        else:
            frame[2:] = [done, [], 2 * width, 0, min(2 * width, count)]


def merging(count: int, done: int, width: int) -> tuple[int, int, int]:
    """Start, middle and end of the two runs of ``width`` that are being merged."""
    start = done // (2 * width) * (2 * width)
    return start, min(start + width, count), min(start + 2 * width, count)


def _dict_map(state: State, arguments: list[Any]) -> Any:
    """``(dict-map f map)``: a map with ``(f key value)`` for each value."""
    return _over_map(state, DICT_MAP, "dict-map", arguments)


def _dict_filter(state: State, arguments: list[Any]) -> Any:
    """``(dict-filter keep? map)``: the entries for which ``(keep? key value)``."""
    return _over_map(state, DICT_FILTER, "dict-filter", arguments)


def _over_map(state: State, kind: int, name: str, arguments: list[Any]) -> Any:
    procedure, entries = _procedure(name, arguments[0]), map_of(name, arguments[1])
    state.stack.append([kind, procedure, entries, list(entries), []])
    return _next_of_map(state, state.stack[-1])


def _resume_over_map(state: State, frame: list[Any], value: Any) -> Any:
    frame[4].append(value)
    return _next_of_map(state, frame)


def _next_of_map(state: State, frame: list[Any]) -> Any:
    kind, procedure, entries, keys, done = frame
    if len(done) < len(keys):
        key = keys[len(done)]
        return state.apply(procedure, [key, entries[key]])
    state.stack.pop()
    pairs = zip(keys, done, strict=True)
    if kind == DICT_MAP:
        return state.made_map(dict(pairs))
    return state.made_map(
        {key: entries[key] for key, kept in pairs if kept is not None and kept is not False}
    )


def _partial(state: State, arguments: list[Any]) -> Combined:
    return _combined(state, "partial", arguments, arguments[:1])


def _compose(state: State, arguments: list[Any]) -> Combined:
    """``((compose f g) x)`` is ``(f (g x))``."""
    return _combined(state, "compose", arguments, arguments)


def _complement(state: State, arguments: list[Any]) -> Combined:
    return _combined(state, "complement", arguments, arguments)


def _constantly(state: State, arguments: list[Any]) -> Combined:
    return _combined(state, "constantly", arguments, [])


def _combined(state: State, kind: str, parts: list[Any], procedures: list[Any]) -> Combined:
    for procedure in procedures:
        _procedure(kind, procedure)
    state.cells += 2
    return Combined(kind, state.made(parts))


def _resume_compose(state: State, frame: list[Any], value: Any) -> Any:
    _, procedures, index = frame
    if index == 0:
        state.stack.pop()
    else:
        frame[2] = index - 1
    return state.apply(procedures[index], [value])


def _resume_complement(state: State, frame: list[Any], value: Any) -> bool:
    state.stack.pop()
    return value is None or value is False


def _procedure(name: str, value: Any) -> Any:
    if not is_procedure(value):
        raise wrong(f"{name}: not a procedure: {shortly(value)}")
    return value


BUILTINS = {
    "apply": (_apply, 2, ANY),
    "map": (_map, 2, ANY),
    "for-each": (_for_each, 2, ANY),
    "filter": (_filter, 2, 2),
    "reduce": (_reduce, 2, 3),
    "sort": (_sort, 1, 2),
    "dict-map": (_dict_map, 2, 2),
    "dict-filter": (_dict_filter, 2, 2),
    "partial": (_partial, 1, ANY),
    "compose": (_compose, 0, ANY),
    "complement": (_complement, 1, 1),
    "constantly": (_constantly, 1, 1),
}

RESUMES: dict[int, Callable[[State, list[Any], Any], Any]] = {
    MAP: _resume_map,
    FOR_EACH: _resume_for_each,
    FILTER: _resume_filter,
    REDUCE: _resume_reduce,
    SORT: _resume_sort,
    DICT_MAP: _resume_over_map,
    DICT_FILTER: _resume_over_map,
    COMPOSE: _resume_compose,
    COMPLEMENT: _resume_complement,
}
