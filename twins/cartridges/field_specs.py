"""The fields a cartridge may have, and what each one is: one table a format, checked in one way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from twins.errors import BadCartridgeError

STAGES = ("egg", "hatchling", "juvenile", "adult", "elder")
"""A buddy's stages of life, in their order."""


class FieldSpec:
    """The form of a field: a test and the words for it."""

    def __init__(self, what: str, test: Callable[[Any], bool]) -> None:
        self.what = what
        self.test = test

    def or_null(self) -> FieldSpec:
        """The same, or null."""
        return FieldSpec(f"{self.what} or null", lambda value: value is None or self.test(value))


def is_number(value: Any) -> bool:
    """An int or a float; true and false are neither."""
    return type(value) in (int, float)


def is_count(value: Any) -> bool:
    """A whole number from 0 on."""
    return type(value) is int and value >= 0


TEXT = FieldSpec("text", lambda value: isinstance(value, str))
NAME = FieldSpec("a name", lambda value: isinstance(value, str) and 0 < len(value) <= 200)
NUMBER = FieldSpec("a number", is_number)
COUNT = FieldSpec("a whole number", is_count)
FLAG = FieldSpec("true or false", lambda value: isinstance(value, bool))
LIST = FieldSpec("a list", lambda value: isinstance(value, list))
OBJECT = FieldSpec("an object", lambda value: isinstance(value, dict))
TEXTS = FieldSpec(
    "an object of texts",
    lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
)
OBJECTS = FieldSpec(
    "an object of objects",
    lambda value: isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()),
)
STAGE = FieldSpec(f"one of {', '.join(STAGES)}", lambda value: value in STAGES)
DIGEST = FieldSpec(
    "64 hex digits", lambda value: bool(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value))
)


def exactly(*values: Any) -> FieldSpec:
    """One of these values, of the same type."""
    return FieldSpec(
        " or ".join(str(value) for value in values),
        lambda found: any(type(found) is type(value) and found == value for value in values),
    )


def check(
    document: Mapping[str, Any], fields: Mapping[str, FieldSpec], *, required: tuple[str, ...], name: str
) -> None:
    """Raises ``BadCartridgeError`` unless every field that is there is what ``fields`` says.

    A field is named by its keys with dots between. Keys that no field names are left alone.
    """
    for path, wanted in fields.items():
        holder: Any = document
        *folders, last = path.split(".")
        for folder in folders:
            holder = holder.get(folder) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and last in holder:
            if not wanted.test(holder[last]):
                raise BadCartridgeError(
                    f"{name} cannot be loaded: {path} is not {wanted.what}.", do="Mend it, or get it again."
                )
        elif path in required:
            raise BadCartridgeError(
                f"{name} cannot be loaded: {path} is missing.", do="Mend it, or get it again."
            )
