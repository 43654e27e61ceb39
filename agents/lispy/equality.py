"""When two values are equal, and which comes first."""

from __future__ import annotations

from typing import Any

from agents.lispy.state import State
from agents.lispy.values import Pair, Symbol

_NUMBERS = frozenset({int, float})


def is_same(a: Any, b: Any) -> bool:
    """``eq?``: the very same object, or the same atom; 1 and 1.0 differ."""
    if a is b:
        return True
    kind = type(a)
    return kind is type(b) and kind in (int, float, str, Symbol) and bool(a == b)


def are_equal(state: State, a: Any, b: Any) -> bool:
    """``equal?``: by content. 1 equals 1.0; no boolean is a number, no symbol a string, no pair a list.

    Two values that share their parts are compared part by part once, so that the work stays below
    their size.
    """
    kind, other = type(a), type(b)
    if kind is not other:
        return kind in _NUMBERS and other in _NUMBERS and bool(a == b)
    if kind not in (list, Pair, dict):
        return a is b or (kind in (int, float, str, Symbol) and bool(a == b))
    return _compare(state, a, b)


def _compare(state: State, a: Any, b: Any) -> bool:
    classes: dict[int, int] = {}  # of objects found equal as far as one has looked; each points to another
    waiting = [(a, b)]
    looked = 0
    while waiting:
        a, b = waiting.pop()
        if a is b:
            continue
        looked += 1
        kind = type(a)
        if kind is not type(b):
            if kind not in _NUMBERS or type(b) not in _NUMBERS or a != b:
                return _found(state, looked, are=False)
        elif kind is list or kind is Pair or kind is dict:
            first, second = _class_of(classes, id(a)), _class_of(classes, id(b))
            if first == second:
                continue
            classes[first] = second
            if kind is Pair:
                waiting.append((a.cdr, b.cdr))
                waiting.append((a.car, b.car))
            elif len(a) != len(b):
                return _found(state, looked, are=False)
            elif kind is list:
                looked += len(a)
                waiting.extend(zip(a, b, strict=True))
            else:
                looked += len(a)
                for key, value in a.items():
                    if key not in b:
                        return _found(state, looked, are=False)
                    waiting.append((value, b[key]))
        elif kind not in (int, float, str, Symbol) or a != b:
            return _found(state, looked, are=False)
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
