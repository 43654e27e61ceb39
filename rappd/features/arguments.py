"""The arguments of an operation as they were sent: checked against the parameters of its method, refused by name."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from envelopes.errors import ReportableError

_WORDS = {
    "str": ("a string", '"…"'),
    "bool": ("true or false", "true"),
    "int": ("a whole number", "1"),
    "float": ("a number", "1"),
    "array": ("a list", '["…"]'),
    "object": ("an object", "{}"),
}
_OF_WORDS = {"array": '["…"]', "object": '{"…": "…"}'}
_INTEGER_BITS = 63
"""The size of an integer of SQLite, beside its sign."""
_PLURALS = {"str": "strings", "int": "whole numbers", "object": "objects"}


class MissingArgumentError(ReportableError):
    """An argument that an operation needs, and that was not sent."""

    code = "bad_body"
    status = 400
    exit_code = 2


class UnfitArgumentError(ReportableError):
    """An argument of another type than the operation takes."""

    code = "unfit"
    status = 422
    exit_code = 2


class ArgumentReader:
    """Reads what was sent for the fields of ``fields``."""

    def __init__(self, fields: type[msgspec.Struct]) -> None:
        self._fields, self._hints = fields, typing.get_type_hints(fields)
        self._choices = {name: found for name, hint in self._hints.items() if (found := _choices(hint))}

    def read(self, given: Mapping[str, Any], *, as_text: bool) -> dict[str, Any]:
        """The arguments that were sent. Left out counts what is null, "" where words are chosen from, or unknown.

        ``as_text``: numbers and switches come as text. Raises ``MissingArgumentError``, ``UnfitArgumentError``.
        """
        present = {
            key: value
            for key, value in given.items()
            if value is not None and not (value == "" and key in self._choices)
        }
        try:
            found = msgspec.convert(present, self._fields, strict=not as_text)
        except msgspec.ValidationError as error:
            raise self._refusal(str(error)) from error
        arguments = msgspec.structs.asdict(found)
        for field, value in arguments.items():
            if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
                raise UnfitArgumentError(
                    f"{field} is too large a number", do=f'Send {{"{field}": {_WORDS["int"][1]}}}.'
                )
        return arguments

    def _refusal(self, problem: str) -> ReportableError:
        """The error for what msgspec said: the field, and what was expected."""
        at = re.search(r" - at `\$\.(\w+)(.*)`$", problem)
        field = at[1] if at else re.findall(r"`(\w+)`", problem)[0]
        if at is None or ">= 1" in problem:
            return MissingArgumentError(f"{field} is required", do=f'Send {{"{field}": "…"}}.')
        if choices := self._choices.get(field):
            listed = ", ".join(choices)
            return UnfitArgumentError(
                f"{field} is one of: {listed}", do=f'Send {{"{field}": "{choices[0]}"}}.'
            )
        inner = re.search(r"Expected `(\w+)", problem) if at[2] else None
        kind = _kind(self._hints[field])
        word, example = _WORDS[kind]
        if inner:
            word, example = f"{word} of {_PLURALS.get(inner[1], 'others')}", _OF_WORDS[kind]
        return UnfitArgumentError(f"{field} must be {word}", do=f'Send {{"{field}": {example}}}.')


def _kind(hint: Any) -> str:
    """The kind of a type, as ``_WORDS`` has it; of alternatives, of the first."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _kind(next(one for one in typing.get_args(hint) if one is not type(None)))
    return {str: "str", bool: "bool", int: "int", float: "float", list: "array"}.get(
        typing.get_origin(hint) or hint, "object"
    )


def _choices(hint: Any) -> list[str]:
    """The words of a type that is made of such alone."""
    if typing.get_origin(hint) is Literal:
        return [str(one) for one in typing.get_args(hint)]
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return []
    found = [_choices(one) for one in typing.get_args(hint) if one is not type(None)]
    return [word for words in found for word in words] if all(found) else []
