"""Lists and pairs. Where a list is wanted, nil and a chain of pairs that ends in one of them will do."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.errors import wrong
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.printer import shortly
from agents.runtimes.lispy.values import ANY, Pair


def items_of(state: State, name: str, value: Any) -> list[Any]:
    """The items of a list, which must not be changed; a chain of pairs costs a step a pair."""
    if type(value) is list:
        return value
    if value is None:
        return []
    if type(value) is not Pair:
        raise wrong(f"{name}: not a list: {shortly(value)}")
    items = []
    link: Any = value
    while type(link) is Pair:
        state.charge(1)
        items.append(link.car)
        link = link.cdr
    if type(link) is list:
        items += link
    elif link is not None:
        raise wrong(f"{name}: not a proper list: {shortly(value)}")
    state.fits(len(items))
    return items


def sorted_items(state: State, items: list[Any]) -> list[Any]:
    """A new list of numbers, or of strings, in ascending order."""
    state.charge(len(items))
    kinds = {type(item) for item in items}
    if not (kinds <= {int, float} or kinds == {str}):
        raise wrong("sort: without a procedure that compares, only numbers or only strings are sorted")
    return state.made(sorted(items))


def count_of(name: str, value: Any) -> int:
    """A whole number that is not negative."""
    if type(value) is not int or value < 0:
        raise wrong(f"{name}: not a count: {shortly(value)}")
    return value


def _list(state: State, arguments: list[Any]) -> Any:
    return state.made(arguments)


def _cons(state: State, arguments: list[Any]) -> Any:
    return state.made_pair(arguments[0], arguments[1])


def _car(state: State, arguments: list[Any]) -> Any:
    value = arguments[0]
    if type(value) is Pair:
        return value.car
    if type(value) is list and value:
        return value[0]
    raise wrong(f"car: not a pair: {shortly(value)}")


def _cdr(state: State, arguments: list[Any]) -> Any:
    value = arguments[0]
    if type(value) is Pair:
        return value.cdr
    if type(value) is list and value:
        state.work(len(value))
        return state.made(value[1:])
    raise wrong(f"cdr: not a pair: {shortly(value)}")


def _is_empty_list(value: Any) -> bool:
    return value is None or (type(value) is list and not value)


def _first(state: State, arguments: list[Any]) -> Any:
    """Like ``car``, but nil of an empty list."""
    return None if _is_empty_list(arguments[0]) else _car(state, arguments)


def _rest(state: State, arguments: list[Any]) -> Any:
    """Like ``cdr``, but an empty list of an empty list."""
    return state.made([]) if _is_empty_list(arguments[0]) else _cdr(state, arguments)


def _last(state: State, arguments: list[Any]) -> Any:
    items = items_of(state, "last", arguments[0])
    return items[-1] if items else None


def _nth(state: State, arguments: list[Any]) -> Any:
    """``(nth list index)``: negative counts from the end; nil where there is no such item."""
    items, index = items_of(state, "nth", arguments[0]), arguments[1]
    if type(index) is not int:
        raise wrong(f"nth: not an index: {shortly(index)}")
    return items[index] if -len(items) <= index < len(items) else None


def _length(state: State, arguments: list[Any]) -> Any:
    value = arguments[0]
    return len(value) if type(value) in (str, dict) else len(items_of(state, "length", value))


def append(state: State, arguments: list[Any]) -> Any:
    """The items of all arguments; a step for each."""
    joined: list[Any] = []
    for argument in arguments:
        items = items_of(state, "append", argument)
        state.fits(len(joined) + len(items))
        state.charge(len(items))
        joined += items
    return state.made(joined)


def _reverse(state: State, arguments: list[Any]) -> Any:
    items = items_of(state, "reverse", arguments[0])
    state.charge(len(items))
    return state.made(items[::-1])


def _range(state: State, arguments: list[Any]) -> Any:
    """``(range end)``, ``(range start end)``, ``(range start end step)``: whole numbers, the end left out."""
    for argument in arguments:
        if type(argument) is not int:
            raise wrong(f"range: not an integer: {shortly(argument)}")
    start, end = (0, arguments[0]) if len(arguments) == 1 else arguments[:2]
    step = arguments[2] if len(arguments) == 3 else 1
    if step == 0:
        raise wrong("range: the step is 0")
    count = max(0, -((start - end) // step)) if step > 0 else max(0, -((end - start) // -step))
    state.fits(count)
    state.charge(count)
    return state.made(list(range(start, end, step)))


def _take(state: State, arguments: list[Any]) -> Any:
    first = items_of(state, "take", arguments[0])[: count_of("take", arguments[1])]
    state.charge(len(first))
    return state.made(first)


def _drop(state: State, arguments: list[Any]) -> Any:
    left = items_of(state, "drop", arguments[0])[count_of("drop", arguments[1]) :]
    state.charge(len(left))
    return state.made(left)


def _zip(state: State, arguments: list[Any]) -> Any:
    """Lists of the first items, of the second ones, and so on, as long as the shortest."""
    lists = [items_of(state, "zip", argument) for argument in arguments]
    count = min(map(len, lists), default=0)
    state.charge(count)
    state.work(count * len(lists))
    return state.made([state.made([items[index] for items in lists]) for index in range(count)])


def _flatten(state: State, arguments: list[Any]) -> Any:
    """The items of nested lists, in order; counts a step for each item that is no list."""
    flat: list[Any] = []
    waiting = items_of(state, "flatten", arguments[0])[::-1]
    looked = 0
    while waiting:
        value = waiting.pop()
        looked += 1
        if looked % 64 == 0:
            state.charge(1)
        if type(value) in (list, Pair):
            inner = items_of(state, "flatten", value)
            state.fits(len(waiting) + len(inner))
            waiting += inner[::-1]
        else:
            state.charge(1)
            flat.append(value)
            state.fits(len(flat))
    return state.made(flat)


BUILTINS = {
    "list": (_list, 0, ANY),
    "cons": (_cons, 2, 2),
    "car": (_car, 1, 1),
    "cdr": (_cdr, 1, 1),
    "first": (_first, 1, 1),
    "rest": (_rest, 1, 1),
    "last": (_last, 1, 1),
    "nth": (_nth, 2, 2),
    "length": (_length, 1, 1),
    "append": (append, 0, ANY),
    "reverse": (_reverse, 1, 1),
    "range": (_range, 1, 3),
    "take": (_take, 2, 2),
    "drop": (_drop, 2, 2),
    "zip": (_zip, 1, ANY),
    "flatten": (_flatten, 1, 1),
}
