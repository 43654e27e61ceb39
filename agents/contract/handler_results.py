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
from envelopes.payloads.form import CORE, MOST_STATE_BYTES

_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


class StateError(ValueError):
    """A state that cannot be kept: no JSON, or too much of it."""


def emitted_by(found: Any) -> list[dict[str, Any]]:
    """The payloads that a handler returned, in their order."""
    if found is None:
        return []
    if isinstance(found, str):
        return [{"text": found}]
    if isinstance(found, bytes | bytearray):
        return [{"text": bytes(found).decode("utf-8", "replace")}]
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        declaration = declared(type(found))
        root = (declaration.root if declaration is not None else "") or type(found).__name__.lower()
        if declaration is not None and declaration.category == CORE:
            return [{"root": root, "data": _of_core(found), "core": True}]
        return [{"root": root, "data": _plain(found)}]
    if isinstance(found, list | tuple):
        return [one for item in found for one in emitted_by(item)]
    raise TypeError(f"a handler returns payloads, text, or nothing; this one returned {type(found).__name__}")


def _of_core(found: Any) -> dict[str, Any]:
    """The value of a payload of rappd's own; one that it holds has its root with it."""
    value: dict[str, Any] = _plain(found)
    inner = getattr(found, "payload", None)
    if inner is not None:
        emitted = emitted_by(inner)
        if len(emitted) != 1:
            raise TypeError("a payload holds one payload")
        value["payload"] = emitted[0]
    return value


def state_json(state: dict[str, Any]) -> orjson.Fragment:
    """A state as JSON. Raises ``StateError``."""
    try:
        found = orjson.dumps(state, option=_STRICT)
    except TypeError as error:
        raise StateError(f"its state holds more than JSON can: {error}") from error
    if len(found) > MOST_STATE_BYTES:
        raise StateError(f"its state has {len(found)} bytes; {MOST_STATE_BYTES} are kept")
    return orjson.Fragment(found)


def _plain(value: Any) -> Any:
    """A value of a payload as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _plain(one) for name, one in pairs if one is not None}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {_as_key(key): _plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(one) for one in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _as_key(key: Any) -> str:
    plain = _plain(key)
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
