"""Numbers: integers of any size and finite floats. A boolean is none."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from agents.runtimes.lispy import float_math
from agents.runtimes.lispy.errors import passed, wrong
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.number_format import SMALL
from agents.runtimes.lispy.printer import shortly
from agents.runtimes.lispy.values import ANY

Number = int | float


def number_of(state: State, name: str, value: Any) -> Number:
    """``value``, if it is a number; long ones are charged for."""
    kind = type(value)
    if kind is int:
        if not -SMALL < value < SMALL:
            bits = value.bit_length()
            if bits >= 1024:
                state.work(bits >> 2)
    elif kind is not float:
        raise wrong(f"{name}: not a number: {shortly(value)}")
    return value  # type: ignore[no-any-return]


def _checked(state: State, name: str, operation: Callable[..., Number], *numbers: Number) -> Number:
    """Returns the result of the operation, if that is a number of the language."""
    try:
        result = operation(*numbers)
    except ZeroDivisionError:
        raise wrong(f"{name}: division by zero") from None
    except OverflowError:
        raise wrong(f"{name}: the result is out of range") from None
    if type(result) is int:
        return result if -SMALL < result < SMALL else state.made_integer(result)
    return state.finite(name, result)


def _folding(
    name: str, operation: Callable[[Any, Any], Number], empty: int | None
) -> Callable[[State, list[Any]], Any]:
    """``(op a b c)`` from the left; ``(op)`` is ``empty``; ``(op a)`` of - and / starts from 0 and 1."""
    lone = {"-": 0, "/": 1}.get(name)

    def fold(state: State, arguments: list[Any]) -> Any:
        if len(arguments) == 2:
            a, b = arguments
            if type(a) is int and type(b) is int and name in "+-":
                result = operation(a, b)
                if -SMALL < result < SMALL:
                    return result
        if not arguments:
            return empty
        total = number_of(state, name, arguments[0])
        if len(arguments) == 1:
            return total if lone is None else _checked(state, name, operation, lone, total)
        for argument in arguments[1:]:
            other = number_of(state, name, argument)
            if name == "*":
                _check_product(state, total, other)
            total = _checked(state, name, operation, total, other)
        return total

    return fold


def _check_product(state: State, a: Number, b: Number) -> None:
    """Refuses a product that would be too long, before it is made."""
    if type(a) is int and type(b) is int and a and b:
        limit = state.limits.max_integer_bits
        bits = a.bit_length() + b.bit_length() - 1
        if bits > limit:
            raise passed("integer_bits", limit, bits)


def _binary(name: str, operation: Callable[[Any, Any], Number]) -> Callable[[State, list[Any]], Any]:
    def apply(state: State, arguments: list[Any]) -> Any:
        a, b = (number_of(state, name, argument) for argument in arguments)
        return _checked(state, name, operation, a, b)

    return apply


def _remainder(a: Number, b: Number) -> Number:
    """With the sign of ``a``."""
    if type(a) is int and type(b) is int:
        rest = abs(a) % abs(b)
        return -rest if a < 0 else rest
    real, divisor = float(a), float(b)
    if divisor == 0:
        raise ZeroDivisionError
    return math.fmod(real, divisor)


def _expt(state: State, arguments: list[Any]) -> Any:
    base, exponent = (number_of(state, "expt", argument) for argument in arguments)
    if type(base) is int and type(exponent) is int and exponent >= 0:
        if abs(base) > 1:
            limit = state.limits.max_integer_bits
            bits = (base.bit_length() - 1) * exponent + 1
            if bits > limit:
                raise passed("integer_bits", limit, min(bits, (1 << 53) - 1))
        else:
            exponent = exponent if exponent < 2 else 2 - exponent % 2
        return state.made_integer(base**exponent)
    try:
        return _checked(state, "expt", lambda: float_math.power(float(base), float(exponent)))
    except ValueError:
        raise wrong("expt: the result is not a real number") from None


def _abs(state: State, arguments: list[Any]) -> Any:
    return abs(number_of(state, "abs", arguments[0]))


def _extreme(name: str, is_better: Callable[[Any, Any], bool]) -> Callable[[State, list[Any]], Any]:
    def choose(state: State, arguments: list[Any]) -> Any:
        best = number_of(state, name, arguments[0])
        for argument in arguments[1:]:
            number = number_of(state, name, argument)
            if is_better(number, best):
                best = number
        return best

    return choose


def _to_integer(name: str, operation: Callable[[Any], int]) -> Callable[[State, list[Any]], Any]:
    def convert(state: State, arguments: list[Any]) -> Any:
        return state.made_integer(operation(number_of(state, name, arguments[0])))

    return convert


def _real(name: str, operation: Callable[[float], float]) -> Callable[[State, list[Any]], Any]:
    def apply(state: State, arguments: list[Any]) -> Any:
        number = number_of(state, name, arguments[0])
        return _checked(state, name, lambda: operation(float(number)))

    return apply


def _sqrt(x: float) -> float:
    if x < 0:
        raise wrong("sqrt: the result is not a real number")
    return math.sqrt(x)


def _log(state: State, arguments: list[Any]) -> Any:
    """``(log x)``, the natural one, or ``(log x base)``."""
    numbers = [number_of(state, "log", argument) for argument in arguments]
    if min(numbers) <= 0:
        raise wrong("log: not above zero")
    logs = [float_math.logarithm(number) for number in numbers]
    return logs[0] if len(logs) == 1 else _checked(state, "log", operator.truediv, *logs)


def _sign(name: str, test: Callable[[Any], bool]) -> Callable[[State, list[Any]], Any]:
    return lambda state, arguments: test(number_of(state, name, arguments[0]))


_MODULO = _binary("modulo", operator.mod)
_EXPT = (_expt, 2, 2)

BUILTINS: dict[str, tuple[Callable[[State, list[Any]], Any], int, int]] = {
    "+": (_folding("+", operator.add, 0), 0, ANY),
    "*": (_folding("*", operator.mul, 1), 0, ANY),
    "-": (_folding("-", operator.sub, None), 1, ANY),
    "/": (_folding("/", operator.truediv, None), 1, ANY),
    "//": (_binary("//", operator.floordiv), 2, 2),
    "%": (_binary("%", operator.mod), 2, 2),
    "mod": (_MODULO, 2, 2),
    "modulo": (_MODULO, 2, 2),
    "remainder": (_binary("remainder", _remainder), 2, 2),
    "expt": _EXPT,
    "pow": _EXPT,
    "abs": (_abs, 1, 1),
    "max": (_extreme("max", operator.gt), 1, ANY),
    "min": (_extreme("min", operator.lt), 1, ANY),
    "round": (_to_integer("round", round), 1, 1),
    "floor": (_to_integer("floor", math.floor), 1, 1),
    "ceil": (_to_integer("ceil", math.ceil), 1, 1),
    "sqrt": (_real("sqrt", _sqrt), 1, 1),
    "sin": (_real("sin", float_math.sine), 1, 1),
    "cos": (_real("cos", float_math.cosine), 1, 1),
    "log": (_log, 1, 2),
    "zero?": (_sign("zero?", lambda number: number == 0), 1, 1),
    "positive?": (_sign("positive?", lambda number: number > 0), 1, 1),
    "negative?": (_sign("negative?", lambda number: number < 0), 1, 1),
}
