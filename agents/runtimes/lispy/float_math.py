"""sin, cos, log and powers of floats from whole-number arithmetic alone.

A platform's own library may differ from another's in the last bit, and a program that moves between
runtimes must not notice. 256 fraction bits, rounded once: the result is the nearest float.
"""

from __future__ import annotations

from functools import cache

_BITS = 256
_ONE = 1 << _BITS
_TINY = 2.0**-27  # below it, sin x rounds to x and cos x to 1
_LARGEST_EXACT_POWER = 64


def sine(x: float) -> float:
    """Sin x, in radians."""
    if abs(x) < _TINY:
        return x
    quadrant, angle = _reduced(x)
    return _circular(quadrant, angle)


def cosine(x: float) -> float:
    """Cos x, in radians."""
    if abs(x) < _TINY:
        return 1.0
    quadrant, angle = _reduced(x)
    return _circular(quadrant + 1, angle)


def logarithm(x: int | float) -> float:
    """The natural logarithm of ``x`` > 0, an integer of any size or a float."""
    return _log(*x.as_integer_ratio()) / _ONE


def power(x: float, y: float) -> float:
    """``x`` to the ``y``. Raises ``ZeroDivisionError``, ``OverflowError``, ``ValueError`` (not a real number)."""
    if y == 0 or x == 1:
        return 1.0
    is_whole = y.is_integer()
    is_odd = is_whole and int(y) % 2 == 1
    if x == 0:
        if y < 0:
            raise ZeroDivisionError
        return x if is_odd else 0.0
    if x < 0 and not is_whole:
        raise ValueError
    size = _power_of(abs(x), y, is_whole)
    return -size if x < 0 and is_odd else size


def _power_of(x: float, y: float, is_whole: bool) -> float:
    top, bottom = x.as_integer_ratio()
    if is_whole and abs(y) <= _LARGEST_EXACT_POWER:
        exponent = abs(int(y))
        above, below = top**exponent, bottom**exponent
        return float(above / below if y > 0 else below / above)
    factor, divisor = y.as_integer_ratio()
    exponent = (_log(top, bottom) * factor) >> (divisor.bit_length() - 1)
    if exponent >= 1025 << _BITS:
        raise OverflowError
    if exponent <= -(1100 << _BITS):
        return 0.0
    return _exp(exponent)


def _reduced(x: float) -> tuple[int, int]:
    """The number of quarter turns in ``x`` (by 4), and the rest, in fraction bits."""
    top, bottom = x.as_integer_ratio()
    bits = _BITS + max(0, top.bit_length() - bottom.bit_length() + 1)
    turns, rest = divmod((top << bits) // bottom, _pi(bits) >> 1)
    return turns & 3, rest >> (bits - _BITS)


def _circular(quadrant: int, angle: int) -> float:
    """Sin of ``angle`` after so many quarter turns."""
    square = (angle * angle) >> _BITS
    term, count = (_ONE, 0) if quadrant & 1 else (angle, 1)
    total, sign = 0, 1
    while term:
        total += sign * term
        term = ((term * square) >> _BITS) // ((count + 1) * (count + 2))
        count += 2
        sign = -sign
    return (-total if quadrant & 2 else total) / _ONE


def _log(top: int, bottom: int) -> int:
    """ln(top / bottom) in fraction bits."""
    exponent = top.bit_length() - bottom.bit_length()
    if exponent >= 0:
        part = (top << _BITS) // (bottom << exponent)
    else:
        part = (top << (_BITS - exponent)) // bottom
    if part < _ONE:
        exponent -= 1
        part = (
            (top << _BITS) // (bottom << exponent) if exponent >= 0 else (top << (_BITS - exponent)) // bottom
        )
    return exponent * _ln2() + 2 * _artanh(((part - _ONE) << _BITS) // (part + _ONE))


def _artanh(x: int) -> int:
    square = (x * x) >> _BITS
    total, count = 0, 1
    while x:
        total += x // count
        x = (x * square) >> _BITS
        count += 2
    return total


def _exp(x: int) -> float:
    doublings, rest = divmod(x, _ln2())
    total, term, count = 0, _ONE, 1
    while term:
        total += term
        term = ((term * rest) >> _BITS) // count
        count += 1
    shift = doublings - _BITS
    return float(total << shift) if shift >= 0 else total / (1 << -shift)


@cache
def _ln2() -> int:
    return 2 * _artanh(_ONE // 3)


@cache
def _pi(bits: int) -> int:
    """π in so many fraction bits, by Machin's formula."""
    one = 1 << (bits + 16)
    return (16 * _arctan_of_inverse(5, one) - 4 * _arctan_of_inverse(239, one)) >> 16


def _arctan_of_inverse(n: int, one: int) -> int:
    term = one // n
    total, count, sign = 0, 1, 1
    while term:
        total += sign * (term // count)
        term //= n * n
        count += 2
        sign = -sign
    return total
