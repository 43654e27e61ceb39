"""Calls that a model made, read before anything is performed: names resolved, arguments repaired, checked, turned.

Only harmless repair is done, and each is named for the log: raw control characters in texts, a code fence around,
JSON inside a JSON text, one object written several times alike, half characters. What is not one JSON object goes
back to the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from agents.providers.answers.text_pieces import valid_text
from agents.providers.provider import Tool, ToolCall
from envelopes.codecs.strict_json import too_deep

CUT_OFF = (
    "The call was cut off by the limit of tokens and was not performed. Call again with shorter arguments."
)
_PREFIX = re.compile(r"^(?:functions?|tools?|default_api|multi_tool_use)[.:/]", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:<\|.*|\(\s*\)|:\d+)$", re.DOTALL)
_PUNCTUATION = re.compile(r"[\s_\-]+")
_FENCE = re.compile(r"^```[a-zA-Z]*\s*\n?(.*?)\n?```$", re.DOTALL)
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?")
_MOST_NEAR = 3


class ReadCall(msgspec.Struct, frozen=True):
    """One call as it may be performed, or why not: ``problem`` is the sentence for the model.

    ``unknown``: no agent of that name was offered. ``repairs`` are words for the log. The arguments in ``call`` always parse as one object.
    """

    call: ToolCall
    arguments: dict[str, Any]
    problem: str = ""
    repairs: tuple[str, ...] = ()
    unknown: bool = False


def read_call(
    call: ToolCall,
    tools: Sequence[Tool],
    *,
    cut: bool = False,
    exists: Callable[[str], bool] = lambda _: False,
) -> ReadCall:
    """Reads a model's call against the tools that its request offered. ``cut``: the answer was cut off.

    ``exists`` is true for the exact name of an agent that may be used though it was not offered.
    """
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") for tool in tools}
    name, repairs = resolve(call.name, schemas), []
    if name != call.name:
        repairs.append(f"name {call.name!r}")
    if cut:
        return _refused(call, name, CUT_OFF, repairs)
    if name not in schemas and schemas and not exists(name):
        return replace(_refused(call, name, _no_such(call.name, schemas), repairs), unknown=True)
    arguments = _arguments(call.arguments, repairs)
    if arguments is None:
        problem = f"The arguments of {name} are not one JSON object; it was not performed. Call it again."
        return _refused(call, name, problem, repairs)
    schema = schemas.get(name)
    if missing := _missing(arguments, schema):
        problem = f"{name} needs {', '.join(missing)}; it was not performed. Call it again with that."
        return _refused(call, name, problem, repairs, arguments)
    arguments = _turned(arguments, schema, repairs)
    sent = orjson.dumps(arguments).decode()
    return ReadCall(ToolCall(call.id, name, sent), arguments, "", tuple(repairs))


def resolve(name: str, offered: Iterable[str]) -> str:
    """The one of ``offered`` that a model means by ``name``; ``name`` itself where none or several fit."""
    names = list(offered)
    if name in names:
        return name
    bare = _PREFIX.sub("", _SUFFIX.sub("", name.strip().strip("\"'`"))).strip()
    for same in (lambda one: one == bare, lambda one: _folded(one) == _folded(bare)):
        fitting = [one for one in names if same(one)]
        if len(fitting) == 1:
            return fitting[0]
    return name


def _no_such(name: str, offered: Mapping[str, Any]) -> str:
    import difflib  # where a name was misspelt, only

    near = difflib.get_close_matches(name[:80], list(offered), _MOST_NEAR, 0.7)
    meant = f" Did you mean {', '.join(near)}?" if near else ""
    return f"Agent '{name[:80]}' not found.{meant}"


def _refused(
    call: ToolCall, name: str, problem: str, repairs: list[str], arguments: dict[str, Any] | None = None
) -> ReadCall:
    sent = orjson.dumps(arguments or {}).decode()
    return ReadCall(ToolCall(call.id, name, sent), arguments or {}, problem, tuple(repairs))


def _folded(name: str) -> str:
    return _PUNCTUATION.sub("", name).casefold()


def _arguments(text: str, repairs: list[str], depth: int = 0) -> dict[str, Any] | None:
    """The one object in ``text``; None where there is none, or more than one."""
    text = text.strip()
    if not text or text == "null":
        return {}
    found = _parsed(text, repairs)
    if isinstance(found, str) and depth == 0:
        repairs.append("JSON inside a JSON text")
        return _arguments(found, repairs, 1) if found.strip().startswith("{") else None
    if found is _NOTHING and (fence := _FENCE.match(text)) and depth == 0:
        repairs.append("code fence")
        return _arguments(fence[1], repairs, 1)
    return found if isinstance(found, dict) and not too_deep(found) else None


_NOTHING = object()


def _parsed(text: str, repairs: list[str]) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse, parse_int=_integer)
    found: Any = _NOTHING
    at, count = 0, 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            if count and value != found:
                return _NOTHING
            found, count = value, count + 1
            while at < len(text) and text[at].isspace():
                at += 1
    except (ValueError, RecursionError):
        return _NOTHING
    if count > 1:
        repairs.append(f"one object written {count} times")
    else:
        repairs.append("raw control characters or half characters")
    return _valid(found)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= 18 else float(text)


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return [_valid(one) for one in value]
    if isinstance(value, dict):
        return {valid_text(key): _valid(inner) for key, inner in value.items()}
    return value


def _missing(arguments: dict[str, Any], schema: object) -> list[str]:
    """Required parameters that a call lacks; none where the schema is no valid one."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return []
    required = schema.get("required")
    if not isinstance(required, list):
        return []
    known = [one for one in required if isinstance(one, str) and one in schema["properties"]]
    return [one for one in known if one not in arguments]


def _turned(arguments: dict[str, Any], schema: object, repairs: list[str]) -> dict[str, Any]:
    """The arguments with values turned into the type that their schema names, where that loses nothing."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return arguments
    found = {}
    for name, value in arguments.items():
        wanted = properties.get(name)
        types = wanted.get("type") if isinstance(wanted, dict) else None
        types = [types] if isinstance(types, str) else types if isinstance(types, list) else []
        found[name] = value if not types or any(_is_a(value, one) for one in types) else _as(value, types)
        if found[name] is not value:
            repairs.append(f"{name} as {'/'.join(map(str, types))}")
        elif types and not any(_is_a(value, one) for one in types):
            repairs.append(f"{name} is no {'/'.join(map(str, types))}, passed as it is")
    return found


def _is_a(value: Any, kind: object) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "null":
            return value is None
    return True


def _as(value: Any, types: list[Any]) -> Any:
    """The value as the first of ``types`` that it can be turned into; itself where it can be none."""
    if isinstance(value, str):
        text = value.strip()
        if "integer" in types and _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        if "number" in types and _NUMBER.fullmatch(text):
            return float(text) if any(letter in text for letter in ".eE") else int(text)
        if "boolean" in types and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if text[:1] in "[{" and ("array" in types or "object" in types):
            try:
                inner = orjson.loads(text)
            except orjson.JSONDecodeError:
                return value
            fits = any(_is_a(inner, one) for one in types) and not too_deep(inner)
            return inner if fits else value
    if isinstance(value, float) and value.is_integer() and "integer" in types and abs(value) < 1 << 53:
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and "string" in types:
        return str(value)
    return value
