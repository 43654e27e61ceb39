"""JSON in its one canonical form (RFC 8785): what is hashed, signed and compared."""

from __future__ import annotations

import math
import re
from typing import Any

import orjson

_EXACT = 1 << 53
_SIMPLE = frozenset({str, bool, type(None)})
_BEYOND_THE_PLANE = re.compile(rb"[\xf0-\xf4]").search
_BEHIND_SURROGATES = re.compile(rb"[\xee\xef]").search


def canonical(value: Any) -> bytes:
    """``value`` as UTF-8: keys by UTF-16 code units, numbers as binary64 in the shortest form.

    Raises ``ValueError`` for what JSON cannot say: NaN, infinities, half characters, other types.
    """
    try:
        octets = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        if _sorted_alike(octets) and _written_alike(value):
            return octets
    except orjson.JSONEncodeError:
        pass  # a wide integer, perhaps; what really is no JSON is found below, too
    pieces: list[bytes] = []
    try:
        _write(value, pieces)
    except (orjson.JSONEncodeError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return b"".join(pieces)


def _sorted_alike(octets: bytes) -> bool:
    """True when keys sorted by code points (orjson's order) are sorted by UTF-16 units, too."""
    return octets.isascii() or not (_BEYOND_THE_PLANE(octets) and _BEHIND_SURROGATES(octets))


def _written_alike(value: Any) -> bool:
    """True when orjson writes every number as the RFC does; it also takes types that are no JSON."""
    waiting = [value]
    for one in waiting:
        kind = type(one)
        if kind in _SIMPLE:
            continue
        if kind is dict:
            waiting.extend(one.values())
        elif kind is list:
            waiting.extend(one)
        elif kind is int:
            if not -_EXACT <= one <= _EXACT:
                return False
        elif kind is not float or not 1e-4 <= abs(one) < 1e16 or one.is_integer():
            return False
    return True


def _write(value: Any, pieces: list[bytes]) -> None:
    if isinstance(value, str) or value is None or value is True or value is False:
        pieces.append(orjson.dumps(value))
    elif isinstance(value, (int, float)):
        pieces.append(_number(value).encode())
    elif isinstance(value, dict):
        mark = b"{"
        for key in _in_order(value):
            pieces += (mark, orjson.dumps(key), b":")
            _write(value[key], pieces)
            mark = b","
        pieces.append(b"}" if value else b"{}")
    elif isinstance(value, (list, tuple)):
        mark = b"["
        for one in value:
            pieces.append(mark)
            _write(one, pieces)
            mark = b","
        pieces.append(b"]" if value else b"[]")
    else:
        raise ValueError(f"{type(value).__name__} is not JSON")


def _in_order(keys: dict[Any, Any]) -> list[str]:
    """By UTF-16 code units."""
    if not all(isinstance(key, str) for key in keys):
        raise ValueError("a key that is no text is not JSON")
    if all(map(str.isascii, keys)):
        return sorted(keys)
    return sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _number(value: int | float) -> str:
    """As ECMAScript prints it."""
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return str(int(value))
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("NaN and infinities are not JSON")
    if number == 0:
        return "0"
    text = repr(number)
    if "e" not in text:  # from 0.0001 up to 1e16 both print the same digits
        return text.removesuffix(".0")
    from decimal import Decimal  # most values hold no such number

    sign, digits, power = Decimal(text).normalize().as_tuple()
    text = "".join(map(str, digits))
    minus = "-" if sign else ""
    point = len(text) + int(power)  # where the decimal point stands, counted from the first digit
    if len(text) <= point <= 21:
        return minus + text + "0" * (point - len(text))
    if 0 < point <= 21:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    rest = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{rest}e{'+' if point > 0 else '-'}{abs(point - 1)}"
