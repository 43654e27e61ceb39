"""Comparing an answer with its golden shape: which keys it must have, and of which JSON type.

A shape file is ``{"endpoint", "keys": {path: {"type", "required"}}}``. A path is written with dots;
``[]`` after a name stands for every item of that list. A key below another is required only where
that other one is there. Keys that the shape does not name are additions, and pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "rappd" / "golden"


def shape(name: str) -> dict[str, Any]:
    """The shape file of that name."""
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return found


def differences(keys: dict[str, dict[str, Any]], answer: Any) -> list[str]:
    """What is wrong with ``answer``, in words; [] when nothing is."""
    if not isinstance(answer, dict):
        return [f"the answer is {type_of(answer)}, not object"]
    found = []
    for path, wanted in keys.items():
        for place, present, value in _reached(answer, path):
            if not present:
                if wanted["required"]:
                    found.append(f"{place} is missing")
            elif wanted["type"] not in ("any", type_of(value)):
                found.append(f"{place} is {type_of(value)}, not {wanted['type']}")
    return found


def type_of(value: Any) -> str:
    """The JSON type's name."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (int | float, "number"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    raise TypeError(type(value))


def _reached(answer: Any, path: str) -> Iterator[tuple[str, bool, Any]]:
    """(where, whether it is there, value) for every place that ``path`` stands for."""
    places: list[tuple[str, bool, Any]] = [("", True, answer)]
    steps = path.replace("[]", ".[]").split(".")
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        following: list[tuple[str, bool, Any]] = []
        for where, _, value in places:
            if step == "[]":
                items = value if isinstance(value, list) else []
                following += [(f"{where}[{i}]", True, item) for i, item in enumerate(items)]
            elif isinstance(value, dict) and step in value:
                following.append((f"{where}.{step}".lstrip("."), True, value[step]))
            elif last and isinstance(value, dict):
                following.append((f"{where}.{step}".lstrip("."), False, None))
        places = following
    yield from places
