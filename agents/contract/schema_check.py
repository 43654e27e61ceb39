"""Checking a value against a JSON Schema, as far as agents' parameters use it; a stranger's schema costs no time and never raises."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import orjson

_DEEPEST = 12
_LONGEST_PATTERN = 200
_LONGEST_MATCHED = 100  # characters of a value
_REPEATS = re.compile(r"[*+]|\{\d*,\d*\}")
_FORKS = re.compile(r"[?|]")
_UNTAME = re.compile(r"\)[*+?{]|\[\[|--|&&|~~|\|\|")  # a group that is repeated; what warns of sets to come

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
}


def fits(value: Any, schema: Any, depth: int = 0) -> bool:
    """True when ``schema`` allows ``value``.

    Checked: types, equality, bounds, lengths, patterns, items and properties.
    """
    if schema is False:
        return False
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return True
    if not _is_of_type(value, schema.get("type")) or not _is_chosen(value, schema):
        return False
    if isinstance(value, str):
        return _fits_text(value, schema)
    if _is_number(value):
        return _fits_number(value, schema)
    if isinstance(value, list):
        return _fits_items(value, schema, depth)
    if isinstance(value, dict):
        return _fits_properties(value, schema, depth)
    return True


def _is_of_type(value: Any, declared: Any) -> bool:
    allowed = declared if isinstance(declared, list) else [declared]
    known = [_TYPES[one] for one in allowed if isinstance(one, str) and one in _TYPES]
    return not known or any(is_one(value) for is_one in known)


def _is_chosen(value: Any, schema: dict[str, Any]) -> bool:
    if "const" in schema and not _same(value, schema["const"]):
        return False
    listed = schema.get("enum")
    return not isinstance(listed, list) or not listed or any(_same(value, one) for one in listed)


def _fits_text(value: str, schema: dict[str, Any]) -> bool:
    least, most = _limit(schema, "minLength"), _limit(schema, "maxLength")
    if (least is not None and len(value) < least) or (most is not None and len(value) > most):
        return False
    pattern = schema.get("pattern")
    return not isinstance(pattern, str) or _matches(pattern, value)


def _fits_number(value: float, schema: dict[str, Any]) -> bool:
    least, most = _limit(schema, "minimum"), _limit(schema, "maximum")
    above, below = _limit(schema, "exclusiveMinimum"), _limit(schema, "exclusiveMaximum")
    if (least is not None and value < least) or (most is not None and value > most):
        return False
    if (above is not None and value <= above) or (below is not None and value >= below):
        return False
    step = _limit(schema, "multipleOf")
    if step is None or step <= 0:
        return True
    try:
        times = value / step
    except OverflowError:
        return False
    return math.isfinite(times) and math.isclose(times, round(times), rel_tol=1e-12, abs_tol=1e-12)


def _fits_items(value: list[Any], schema: dict[str, Any], depth: int) -> bool:
    least, most = _limit(schema, "minItems"), _limit(schema, "maxItems")
    if (least is not None and len(value) < least) or (most is not None and len(value) > most):
        return False
    if schema.get("uniqueItems") is True and _repeats(value):
        return False
    first = schema.get("prefixItems")
    first = first if isinstance(first, list) else []
    kinds = [*first, *[schema.get("items")] * (len(value) - len(first))]
    return all(fits(one, kind, depth + 1) for one, kind in zip(value, kinds, strict=False))


def _fits_properties(value: dict[str, Any], schema: dict[str, Any], depth: int) -> bool:
    required = schema.get("required")
    if isinstance(required, list) and any(isinstance(one, str) and one not in value for one in required):
        return False
    known = schema.get("properties")
    known = known if isinstance(known, dict) else {}
    others = None if "patternProperties" in schema else schema.get("additionalProperties")
    return all(fits(one, known.get(name, others), depth + 1) for name, one in value.items())


def _matches(pattern: str, value: str) -> bool:
    """True when a pattern is found. One that is none, or that might take long, is not asked: strangers write them."""
    if (
        len(pattern) > _LONGEST_PATTERN
        or len(value) > _LONGEST_MATCHED
        or len(_REPEATS.findall(pattern)) > 2
        or len(_FORKS.findall(pattern)) > 4
        or _UNTAME.search(pattern)
    ):
        return True
    try:
        return re.search(pattern, value) is not None
    except (re.error, OverflowError, RecursionError):
        return True


def _repeats(value: list[Any]) -> bool:
    try:
        return len({orjson.dumps(one, option=orjson.OPT_SORT_KEYS) for one in value}) < len(value)
    except orjson.JSONEncodeError:
        return False


def _same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _limit(schema: dict[str, Any], key: str) -> float | None:
    found = schema.get(key)
    return found if _is_number(found) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
