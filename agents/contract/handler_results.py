"""Payloads that a handler returned, and the state that it leaves, as a worker sends them."""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
import orjson

from agents.listener import declared
from envelopes.payloads.form import CORE, MOST_DIGITS, MOST_STATE_BYTES, is_carried

_DEEPEST = 64
"""Levels of a payload's value, as of an envelope's data."""
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


class StateError(ValueError):
    """A state that cannot be kept: no JSON, or too much of it. ``perform_line`` is the line of its handler."""

    perform_line = 0


class ReturnedError(TypeError):
    """A value that a handler returned and no payload can hold; its text names the field. ``perform_line`` is the line of the handler."""

    perform_line = 0


def emitted_by(found: Any) -> list[dict[str, Any]]:
    """The payloads that a handler returned, in their order. Raises ``ReturnedError``."""
    return _emitted_by(found, 0)


def _emitted_by(found: Any, level: int) -> list[dict[str, Any]]:
    if found is None:
        return []
    if isinstance(found, str):
        return [{"text": _encodable(found)}]
    if isinstance(found, bytes | bytearray):
        return [{"text": bytes(found).decode("utf-8", "replace")}]
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        name = type(found).__name__
        declaration = declared(type(found))
        root = (declaration.root if declaration is not None else "") or name.lower()
        if declaration is not None and declaration.category == CORE:
            return [{"root": root, "data": _of_core(found, name), "core": True}]
        return [{"root": root, "data": _plain(found, name)}]
    if isinstance(found, list | tuple):
        if level > _DEEPEST:
            raise ReturnedError(f"a handler returned lists that are nested more than {_DEEPEST} levels deep")
        return [one for item in found for one in _emitted_by(item, level + 1)]
    raise ReturnedError(
        f"a handler returns payloads (instances of dataclasses), text, or nothing; this one returned {_kind(found)}"
    )


def _kind(found: Any) -> str:
    return f"the class {found.__name__} itself" if isinstance(found, type) else type(found).__name__


def _encodable(text: str) -> str:
    """The text with what no UTF-8 can hold replaced, as in the results of agents."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _of_core(found: Any, name: str) -> dict[str, Any]:
    """The value of a payload of rappd's own; one that it holds has its root with it."""
    inner = getattr(found, "payload", None)
    fields = [field.name for field in dataclasses.fields(found)]
    value: dict[str, Any] = {
        key: _plain(one, f"{name}.{key}")
        for key in fields
        if key != "payload" and (one := getattr(found, key)) is not None
    }
    if inner is not None:
        emitted = emitted_by(inner)
        if len(emitted) != 1:
            raise ReturnedError(f"{name}.payload holds one payload, not {len(emitted)}")
        value["payload"] = emitted[0]
    return value


def state_json(state: dict[str, Any]) -> orjson.Fragment:
    """A state as JSON. Raises ``StateError``."""
    try:
        found = orjson.dumps(state, option=_STRICT)
    except TypeError as error:
        raise StateError(f"its state holds more than JSON can: {error}") from error
    if b"null" in found and _has_no_number(state):  # as which it would come back
        raise StateError("its state holds nan or an infinity, which JSON has not")
    if len(found) > MOST_STATE_BYTES:
        raise StateError(f"its state has {len(found)} bytes; {MOST_STATE_BYTES} are kept")
    return orjson.Fragment(found)


def _has_no_number(value: Any) -> bool:
    """True for a value that holds nan or an infinity."""
    if isinstance(value, float):
        return not math.isfinite(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(map(_has_no_number, inner))


def _plain(value: Any, where: str, level: int = 1) -> Any:
    """A value of a payload as JSON has it. ``where`` is its field. Raises ``ReturnedError``."""
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, int):
        if not is_carried(value):
            raise ReturnedError(f"{where} is a whole number of more than 64 bits; a Decimal or text holds it")
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        if value.is_finite() and abs(value.adjusted()) >= MOST_DIGITS:
            raise ReturnedError(f"{where} is a number of more than {MOST_DIGITS} digits")
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat()
    if level > _DEEPEST:
        raise ReturnedError(f"{where[:200]} is nested more than {_DEEPEST} levels deep")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _plain(one, f"{where}.{name}", level + 1) for name, one in pairs if one is not None}
    if isinstance(value, dict):
        return {_as_key(key, where): _plain(one, where, level + 1) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(one, where, level + 1) for one in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(one, where, level + 1) for one in value]
    raise ReturnedError(
        f"{where[:200]} is {_kind(value)}, which no payload holds; text, numbers, dates, lists, dicts and dataclasses are held"
    )


def _as_key(key: Any, where: str) -> str:
    plain = _plain(key, where)
    return ("true" if plain else "false") if isinstance(plain, bool) else str(plain)


def text_of(emitted: list[dict[str, Any]]) -> str:
    """The answer as text: of one payload its JSON, of several each with its root."""
    if not emitted:
        return "Done."
    parts = [
        one["text"]
        if "text" in one
        else msgspec.json.encode(one["data"] if len(emitted) == 1 else {one["root"]: one["data"]}).decode()
        for one in emitted
    ]
    return "\n".join(re.sub(r"\s+\Z", "", one) for one in parts)
