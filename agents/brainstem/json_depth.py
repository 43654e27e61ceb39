"""Limits how deep JSON may be nested: deeper JSON is refused, and cannot be stored."""

from __future__ import annotations

MAX_DEPTH = 48  # a record holds 64 levels, and what is given lies a few levels down in it


def too_deep(value: object, limit: int = MAX_DEPTH) -> bool:
    """True when lists and objects lie in each other more than ``limit`` deep."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True
