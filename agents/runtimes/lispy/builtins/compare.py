"""Equality, order and kinds of values."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

from agents.runtimes.lispy.equality import are_equal, is_same
from agents.runtimes.lispy.errors import wrong
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.printer import shortly
from agents.runtimes.lispy.values import ANY, Pair, Symbol, is_procedure


def _equal(state: State, arguments: list[Any]) -> bool:
    if len(arguments) == 2:
        return are_equal(state, arguments[0], arguments[1])
    return all(are_equal(state, a, b) for a, b in itertools.pairwise(arguments))


def _not_equal(state: State, arguments: list[Any]) -> bool:
    return not _equal(state, arguments)


def _same(state: State, arguments: list[Any]) -> bool:
    return is_same(arguments[0], arguments[1])


def _ordered(name: str, comes_before: Callable[[Any, Any], bool]) -> Callable[[State, list[Any]], bool]:
    """True when each of the arguments, all numbers or all strings, stands so to the next."""

    def compare(state: State, arguments: list[Any]) -> bool:
        is_text = type(arguments[0]) is str
        for argument in arguments:
            if (type(argument) is str) is not is_text or (not is_text and type(argument) not in (int, float)):
                kind = "string" if is_text else "number"
                raise wrong(f"{name}: not a {kind}: {shortly(argument)}")
        if len(arguments) == 2:
            return comes_before(arguments[0], arguments[1])
        return all(comes_before(a, b) for a, b in itertools.pairwise(arguments))

    return compare


def _not(state: State, arguments: list[Any]) -> bool:
    return arguments[0] is None or arguments[0] is False


def _is_null(state: State, arguments: list[Any]) -> bool:
    value = arguments[0]
    return value is None or (type(value) is list and not value)


def _is_empty(state: State, arguments: list[Any]) -> bool:
    """nil, and a list, map or string that holds nothing."""
    value = arguments[0]
    return value is None or (type(value) in (list, dict, str) and not value)


def _identity(state: State, arguments: list[Any]) -> Any:
    return arguments[0]


def _is(*kinds: type) -> Callable[[State, list[Any]], bool]:
    return lambda state, arguments: type(arguments[0]) in kinds


BUILTINS: dict[str, tuple[Callable[[State, list[Any]], Any], int, int]] = {
    "=": (_equal, 1, ANY),
    "!=": (_not_equal, 1, ANY),
    "equal?": (_equal, 2, 2),
    "eq?": (_same, 2, 2),
    "<": (_ordered("<", operator.lt), 1, ANY),
    "<=": (_ordered("<=", operator.le), 1, ANY),
    ">": (_ordered(">", operator.gt), 1, ANY),
    ">=": (_ordered(">=", operator.ge), 1, ANY),
    "not": (_not, 1, 1),
    "null?": (_is_null, 1, 1),
    "empty?": (_is_empty, 1, 1),
    "identity": (_identity, 1, 1),
    "boolean?": (_is(bool), 1, 1),
    "number?": (_is(int, float), 1, 1),
    "integer?": (_is(int), 1, 1),
    "string?": (_is(str), 1, 1),
    "symbol?": (_is(Symbol), 1, 1),
    "list?": (_is(list), 1, 1),
    "pair?": (_is(Pair), 1, 1),
    "dict?": (_is(dict), 1, 1),
    "procedure?": (lambda state, arguments: is_procedure(arguments[0]), 1, 1),
}
