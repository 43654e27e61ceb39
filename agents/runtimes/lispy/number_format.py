"""Numbers as text, the same in every runtime: integers of any length, floats in shortest form."""

from __future__ import annotations

import math
import re

INTEGER = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
FLOAT = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?"
)

SMALL_BITS = 256
SMALL = 1 << SMALL_BITS
"""Integers below are never held to a limit, and cost nothing beyond their step."""

# Python refuses to convert more than 4300 digits at once (or 640, where it is told so).
_PIECE = 600
_BASE = 10**_PIECE


def decimal(number: int) -> str:
    """An integer in decimal digits."""
    if -_BASE < number < _BASE:
        return str(number)
    pieces = []
    rest = abs(number)
    while rest:
        rest, piece = divmod(rest, _BASE)
        pieces.append(str(piece).zfill(_PIECE))
    return ("-" if number < 0 else "") + "".join(reversed(pieces)).lstrip("0")


def whole(digits: str) -> int:
    """The integer that decimal digits, with or without a sign, stand for."""
    if len(digits) <= _PIECE:
        return int(digits)
    sign, plain = (-1, digits[1:]) if digits[0] == "-" else (1, digits.lstrip("+"))
    start = len(plain) % _PIECE
    number = int(plain[:start] or "0")
    for place in range(start, len(plain), _PIECE):
        number = number * _BASE + int(plain[place : place + _PIECE])
    return sign * number


def most_digits(bits: int) -> int:
    """The most decimal digits that an integer of so many bits has."""
    return bits * 30103 // 100000 + 1


def number_in(text: str, max_bits: int) -> int | float | None:
    """The number written in ``text``, or None. Raises ``OverflowError`` for more than ``max_bits``."""
    if INTEGER.fullmatch(text):
        digits = text.replace("_", "")
        if len(digits.lstrip("+-0")) > most_digits(max_bits):
            raise OverflowError
        number = whole(digits)
        if number.bit_length() > max_bits:
            raise OverflowError
        return number
    if FLOAT.fullmatch(text):
        real = float(text)
        return real if math.isfinite(real) else None
    return None


def written(number: float) -> str:
    """A finite float: the fewest digits that give it back; exponents below 1e-4 and from 1e16."""
    return repr(number)
