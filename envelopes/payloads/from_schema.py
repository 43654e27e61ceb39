"""The form of an agent's arguments, made from the JSON Schema of its parameters, so that an agent answers XML, too."""

from __future__ import annotations

from typing import Any

import orjson

from envelopes.codecs.strict_json import too_deep
from envelopes.payloads.form import (
    DEEPEST,
    BadFormError,
    Field,
    Kind,
    MistypedPayloadError,
    PayloadForm,
    Type,
    check_form,
)

CATEGORY = "agents"
ARGUMENTS = "arguments"
"""The element that has the arguments as JSON text, where their schema says more than a form can."""
_AS_JSON = Field(ARGUMENTS, Type("str"), "The arguments as a JSON object.")
_PLAIN: dict[str, Kind] = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_SAID = frozenset(
    {"type", "description", "title", "default", "enum", "items", "properties", "required", "examples"}
)
"""Words of a schema that a form has a place for, or that change nothing."""


class _TooMuchError(Exception):
    """A schema that says more than a form can."""


def form_of_agent(tool_name: str, description: str, parameters: dict[str, Any]) -> PayloadForm | None:
    """The payload of an agent: its arguments, or one element with them as JSON; None for a name that no element can have."""
    root = tool_name.lower()
    text = " ".join(description.split())[:1000] or tool_name
    as_json = (_AS_JSON,)
    try:
        fields = _fields(parameters, 1)
    except _TooMuchError:
        fields = as_json
    for found in (fields, as_json):
        form = PayloadForm(tool_name, CATEGORY, root, text, found)
        try:
            check_form(form)
        except BadFormError:
            continue
        return form
    return None


def is_json(form: PayloadForm) -> bool:
    """True where the arguments of an agent travel as JSON text in one element."""
    return [field.doc for field in form.fields if field.name == ARGUMENTS] == [
        "The arguments as a JSON object."
    ]


def object_of(text: str) -> dict[str, Any]:
    """The arguments in such an element. Raises ``MistypedPayloadError``."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or too_deep(found):
        raise MistypedPayloadError(
            f"{ARGUMENTS} is mistyped: expected a JSON object.", do="Send it like that."
        )
    return found


def _fields(schema: dict[str, Any], level: int) -> tuple[Field, ...]:
    properties, required = schema.get("properties"), schema.get("required", [])
    if level > DEEPEST or not isinstance(properties, dict) or not isinstance(required, list):
        raise _TooMuchError
    if not set(schema) - {"additionalProperties"} <= _SAID:
        raise _TooMuchError
    return tuple(
        Field(name, _type(one, level), _text(one), required=name in required)
        for name, one in properties.items()
    )


def _type(schema: Any, level: int) -> Type:
    if not isinstance(schema, dict) or not set(schema) <= _SAID | {"additionalProperties"}:
        raise _TooMuchError
    kind = schema.get("type")
    if "enum" in schema:
        choices = schema["enum"]
        if not isinstance(choices, list) or not all(isinstance(one, str | int) for one in choices):
            raise _TooMuchError
        return Type("choice", choices=tuple(choices))
    if isinstance(kind, str) and kind in _PLAIN:
        return Type(_PLAIN[kind])
    if kind == "array":
        return Type("list", of=(_type(schema.get("items"), level + 1),))
    if kind == "object":
        return Type("object", fields=_fields(schema, level + 1))
    raise _TooMuchError


def _text(schema: Any) -> str:
    description = schema.get("description") if isinstance(schema, dict) else None
    return " ".join(description.split())[:1000] if isinstance(description, str) else ""
