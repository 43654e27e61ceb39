"""Between JSON-like Python values and those of a program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from agents.runtimes.lispy.errors import BadValueError
from agents.runtimes.lispy.values import Builtin, Closure, Combined, Pair, Symbol, kind_of

DEEPEST = 100


def from_plain(value: Any, depth: int = 0) -> Any:
    """None, bool, int, float, str, lists, tuples and mappings as a program has them.

    Raises ``BadValueError`` for anything else, numbers that are not finite, and great depth.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _whole(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadValueError("A number must be finite.")
        return float(value)
    if depth >= DEEPEST:
        raise BadValueError(f"More than {DEEPEST} values lie inside each other.")
    if isinstance(value, Mapping):
        return {_whole(str(key)): from_plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [from_plain(item, depth + 1) for item in value]
    raise BadValueError(f"A LisPy program has nothing like a {type(value).__name__}.")


def to_plain(value: Any, depth: int = 0) -> Any:
    """A program's value as JSON has it: symbols are strings, chains of pairs lists. Raises ``BadValueError``."""
    if type(value) is Symbol:
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth >= DEEPEST:
        raise BadValueError(f"More than {DEEPEST} values lie inside each other.")
    if isinstance(value, dict):
        return {key: to_plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list):
        return [to_plain(item, depth + 1) for item in value]
    if isinstance(value, Pair):
        items = []
        while isinstance(value, Pair):
            items.append(to_plain(value.car, depth + 1))
            value = value.cdr
        if isinstance(value, list):
            return items + to_plain(value, depth + 1)
        return items if value is None else [*items, to_plain(value, depth + 1)]
    raise BadValueError(f"A {kind_of(value)} cannot leave its program.")


def check(values: Iterable[Any]) -> None:
    """Raises ``BadValueError`` unless all of them are values of the language, without a circle in them."""
    finished: set[int] = set()
    active_requests: set[int] = set()
    waiting = [(value, False) for value in values]
    while waiting:
        value, is_leaving = waiting.pop()
        if is_leaving:
            active_requests.discard(id(value))
            finished.add(id(value))
            continue
        kind = type(value)
        if kind is str or kind is Symbol:
            _whole(value)
        elif kind is float:
            if not math.isfinite(value):
                raise BadValueError("A number must be finite.")
        elif kind is list or kind is Pair or kind is dict:
            if id(value) in finished:
                continue
            if id(value) in active_requests:
                raise BadValueError("A value holds itself.")
            active_requests.add(id(value))
            waiting.append((value, True))
            if kind is dict:
                if not all(type(key) is str for key in value):
                    raise BadValueError("A map's keys must be strings.")
                for key in value:
                    _whole(key)
            parts = (value.car, value.cdr) if kind is Pair else value.values() if kind is dict else value
            waiting += [(part, False) for part in parts]
        elif value is not None and not isinstance(value, (bool, int, Builtin, Closure, Combined)):
            raise BadValueError(f"A LisPy program has nothing like a {kind.__name__}.")


def _whole(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadValueError("Text holds half a character.") from None
    return text
