"""JSON in its one canonical form (RFC 8785): what is hashed, signed and compared."""

from __future__ import annotations

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
    import rfc8785  # ten times as slow, and seldom needed

    try:
        return rfc8785.dumps(_as_binary64(value))
    except (ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error


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


def _as_binary64(value: Any) -> Any:
    """Replaces integers that binary64 cannot hold: JSON has one kind of number."""
    if type(value) is int:
        return value if -_EXACT < value < _EXACT else float(value)
    if isinstance(value, dict):
        return {key: _as_binary64(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_binary64(one) for one in value]
    return value
