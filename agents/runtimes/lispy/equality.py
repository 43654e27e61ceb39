"""Equality of two values."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.values import Pair, Symbol

_NUMBERS = frozenset({int, float})
_ATOMS = frozenset({int, float, str, Symbol})
_WITH_PARTS = frozenset({list, Pair, dict})


def is_same(a: Any, b: Any) -> bool:
    """``eq?``: the very same object, or the same atom; 1 and 1.0 differ."""
    return a is b or (type(a) is type(b) and type(a) in _ATOMS and bool(a == b))


def are_equal(state: State, a: Any, b: Any) -> bool:
    """``equal?``: by content. 1 equals 1.0; no boolean is a number, no symbol a string, no pair a list.

    Two values that share their parts are compared part by part once, so that the work stays below
    their size.
    """
    if type(a) is not type(b) or type(a) not in _WITH_PARTS:
        return _are_equal_atoms(a, b)
    return _compare(state, a, b)


def _are_equal_atoms(a: Any, b: Any) -> bool:
    return is_same(a, b) or (type(a) in _NUMBERS and type(b) in _NUMBERS and bool(a == b))


def _compare(state: State, a: Any, b: Any) -> bool:
    classes: dict[int, int] = {}  # of objects found equal as far as one has looked; each points to another
    waiting = [(a, b)]
    looked = 0
    while waiting:
        a, b = waiting.pop()
        kind = type(a)
        if kind is not type(b) or kind not in _WITH_PARTS:
            if not _are_equal_atoms(a, b):
                return _found(state, looked, are=False)
            continue
        one, other = _class_of(classes, id(a)), _class_of(classes, id(b))
        if one == other:
            continue
        classes[one] = other
        looked += 1
        if kind is Pair:
            waiting += ((a.cdr, b.cdr), (a.car, b.car))
            continue
        if len(a) != len(b):
            return _found(state, looked, are=False)
        looked += len(a)
        if kind is list:
            waiting.extend(zip(a, b, strict=True))
            continue
        for key, value in a.items():
            if key not in b:
                return _found(state, looked, are=False)
            waiting.append((value, b[key]))
    return _found(state, looked, are=True)


def _found(state: State, looked: int, *, are: bool) -> bool:
    state.work(looked)
    return are


def _class_of(classes: dict[int, int], one: int) -> int:
    while one in classes:
        above = classes[one]
        if above in classes:
            classes[one] = classes[above]
        one = above
    return one
