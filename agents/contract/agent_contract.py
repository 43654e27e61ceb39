"""The form a loaded agent must have to be offered to a model (RAPP v1 §5.3), and changes a molt may make."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.errors import AgentError

LONGEST_NAME = 64
_LEGAL = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")
_ILLEGAL_RUN = re.compile(r"[^A-Za-z0-9_-]+")
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
    | {"đ": "d", "Đ": "D", "þ": "th", "Þ": "Th", "ð": "d", "ı": "i"}
)
_JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


class ContractError(AgentError):
    """A class that cannot be offered; the text is the reason."""

    code = "quarantined"


@dataclass(slots=True)
class Description:
    """One agent as its file describes it. ``parameters`` is an object schema that models accept.

    ``idempotent``, ``one_worker`` and ``task_only`` are what the agent declares; ``manifest`` holds the shown part
    of ``__manifest__``, or nothing; ``listener`` is the form of a listener's payload, from which its parameters follow.
    """

    name: str
    tool_name: str
    description: str
    parameters: dict[str, Any]
    class_name: str
    has_system_context: bool = False
    idempotent: bool = False
    one_worker: bool = False
    task_only: bool = False
    manifest: dict[str, Any] = field(default_factory=dict)
    listener: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The same as a plain object, which shares the schema."""
        found = {name: getattr(self, name) for name in self.__slots__}
        if self.listener is None:
            del found["listener"]
        return found


def safe_tool_name(name: str) -> str:
    """``name`` itself where every model takes it (``[A-Za-z0-9_-]{1,64}``), else a form like it.

    The same name always gives the same form. Accents are dropped, other runs become ``_``, long
    names keep their beginning and end in a digest, names without a legal letter are ``agent_<digest>``.
    """
    if _LEGAL.fullmatch(name):
        return name
    flat = unicodedata.normalize("NFKD", name.translate(_LETTERS))
    plain = "".join(letter for letter in flat if not unicodedata.combining(letter))
    safe = _ILLEGAL_RUN.sub("_", plain).strip("_-")
    if not safe:
        return f"agent_{_digest(name)}"
    return safe if len(safe) <= LONGEST_NAME else f"{safe[: LONGEST_NAME - 9]}_{_digest(name)}"


def distinct(tool_name: str, used: Container[str]) -> str:
    """``tool_name``, or the first of ``tool_name_2``, ``_3`` … that is not taken; never longer than 64."""
    candidate, number = tool_name, 1
    while candidate in used:
        number += 1
        suffix = f"_{number}"
        candidate = tool_name[: LONGEST_NAME - len(suffix)] + suffix
    return candidate


def check_metadata(name: str, metadata: Any) -> dict[str, Any]:
    """The tool parameters in ``metadata``, put into a form that models accept.

    Raises ``ContractError`` where metadata is no dict, or parameters are there but no object schema
    with properties, or cannot be written as JSON. ``name`` is only for the reason's wording.
    """
    if metadata is None:
        raise ContractError(f"{name} has no metadata")
    if not isinstance(metadata, dict):
        raise ContractError(f"{name}: metadata is {_kind(metadata)}, not a dict")
    parameters = metadata.get("parameters")
    if parameters is None:
        return {"type": "object", "properties": {}}
    if not isinstance(parameters, dict):
        raise ContractError(f"{name}: parameters is {_kind(parameters)}, not a dict")
    if parameters.get("type") != "object":
        found = f"is {parameters['type']!r}" if "type" in parameters else "is missing"
        raise ContractError(f"{name}: the type of parameters {found}; it must be 'object'")
    if not isinstance(parameters.get("properties"), dict):
        found = f"is {_kind(parameters['properties'])}" if "properties" in parameters else "is missing"
        raise ContractError(f"{name}: properties of parameters {found}; it must be a dict")
    return _normalised(name, parameters)


def is_molt_of(old: Description, new: Description) -> list[str]:
    """The reason why ``new`` is no additive evolution of ``old`` (RAPP v1 §11); empty when it is one.

    A molt keeps the name and every parameter with its type and choices, and requires nothing more.
    """
    reasons = [] if new.name == old.name else [f"the name changed from {old.name} to {new.name}"]
    before, after = old.parameters["properties"], new.parameters["properties"]
    for key, was in before.items():
        if key not in after:
            reasons.append(f"parameter {key} is gone")
        elif _types(was) != _types(after[key]):
            reasons.append(f"parameter {key} changed from {_shown(was)} to {_shown(after[key])}")
        elif _narrowed(was, after[key]):
            reasons.append(f"parameter {key} allows fewer values")
    demanded = [key for key in _required(new.parameters) if key not in _required(old.parameters)]
    reasons += [f"parameter {key} is now required" for key in demanded]
    return reasons


def _normalised(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    properties = {key: _property(value) for key, value in parameters["properties"].items()}
    schema = {**parameters, "properties": properties}
    if "required" in schema:
        schema["required"] = [key for key in _required(schema) if key in properties]
    try:
        found: dict[str, Any] = orjson.loads(orjson.dumps(schema))
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"{name}: parameters cannot be written as JSON ({error})") from error
    return found


def _property(value: Any) -> Any:
    """A property written as a bare word: a type if it is one, else its description."""
    if not isinstance(value, str):
        return value
    return {"type": value} if value in _JSON_TYPES else {"description": value}


def _required(schema: dict[str, Any]) -> list[str]:
    found = schema.get("required")
    return [key for key in found if isinstance(key, str)] if isinstance(found, (list, tuple)) else []


def _types(schema: Any) -> frozenset[str]:
    found = schema.get("type") if isinstance(schema, dict) else None
    return frozenset(found) if isinstance(found, list) else frozenset({str(found)})


def _shown(schema: Any) -> str:
    names = sorted(_types(schema))
    return "any type" if names == ["None"] else " or ".join(names)


def _narrowed(was: Any, now: Any) -> bool:
    if not isinstance(was, dict) or not isinstance(now, dict) or "enum" not in now:
        return False
    return "enum" not in was or any(choice not in now["enum"] for choice in was["enum"])


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
