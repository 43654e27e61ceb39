"""``/openapi.json``: the listener described from its own routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from envelopes.codecs.pictures import MOST_PICTURES
from rappd.features.operation import Download, Operation, Stream
from rappd.listeners.bodies import ok
from rappd.listeners.later_routes import handler_itself
from rappd.version import __version__

routes = web.RouteTableDef()

_REF = "#/components/schemas/{name}"
_FILE = {"schema": {"type": "string", "format": "binary"}}
_ERROR = {
    "type": "object",
    "required": ["error", "do", "code"],
    "properties": {"error": {"type": "string"}, "do": {"type": "string"}, "code": {"type": "string"}},
}
_CHAT_REQUEST = {
    "type": "object",
    "required": ["user_input"],
    "properties": {
        "user_input": {"type": "string", "minLength": 1},
        "conversation_history": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "role": {"enum": ["user", "assistant", "tool"]},
                    "content": {"type": "string"},
                },
            },
        },
        "session_id": {"description": "any truthy value; echoed, and names the thread"},
        "user_guid": {"type": "string"},
        "turn_id": {
            "type": "string",
            "format": "uuid",
            "description": "a repeat is answered from the record",
        },
        "model": {
            "type": "string",
            "description": "the model that answers this turn; `auto`, or none, is the conversation's, the twin's or everybody's",
        },
        "pictures": {
            "type": "array",
            "maxItems": MOST_PICTURES,
            "items": {
                "type": "object",
                "required": ["data"],
                "properties": {
                    "type": {"enum": ["image/png", "image/jpeg", "image/gif", "image/webp"]},
                    "data": {"type": "string", "contentEncoding": "base64"},
                    "name": {"type": "string"},
                },
            },
        },
    },
}
_CHAT_ANSWER = {
    "type": "object",
    "required": ["response", "assistant_response", "session_id", "user_guid", "agent_logs", "voice_mode", "twin_mode", "model", "requested_model"],
    "properties": {
        "response": {"type": "string"},
        "assistant_response": {"type": "string"},
        "session_id": {},
        "user_guid": {"type": "string"},
        "agent_logs": {"type": "string"},
        "voice_mode": {"type": "boolean"},
        "twin_mode": {"type": "boolean"},
        "model": {"type": "string"},
        "requested_model": {"type": "string"},
        "voice_response": {"type": "string"},
        "twin_response": {"type": "string"},
        "notice": {"type": "string"},
        "provider": {"type": "string", "description": "who answered; `no model` is none"},
        "seconds": {"type": "number"},
        "tokens": {"type": "integer"},
        "input_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"},
        "cost_usd": {"type": "number"},
        "agents_used": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": {"type": "string", "description": "what senses of the workspace add"},
}  # fmt: skip


@routes.get("/openapi.json")
async def openapi(request: web.Request) -> web.Response:
    """This description."""
    return ok(describe(request.app))


def describe(app: web.Application) -> dict[str, Any]:
    """OpenAPI 3.1 for every route of the application."""
    rows = _rows(app)
    types = [kind for one in rows for kind in (one.arguments, _answer(one))]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    known = _Schemas(dict(zip(rows, zip(schemas[::2], schemas[1::2], strict=True), strict=True)), components)
    paths: dict[str, dict[str, Any]] = {}
    for route in app.router.routes():
        if route.resource is None or route.method == "HEAD":
            continue
        path = re.sub(r"\{(\w+):[^}]*\}", r"{\1}", route.resource.canonical)
        methods = ["get", "post", "put", "delete"] if route.method == "*" else [route.method.lower()]
        for method in methods:
            paths.setdefault(path, {})[method] = _operation(
                path, method, handler_itself(route.handler), known
            )
    return {
        "openapi": "3.1.0",
        "info": {"title": "rappd", "version": __version__, "license": {"name": "MIT"}},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {
                "Error": _ERROR,
                "ChatRequest": _CHAT_REQUEST,
                "ChatAnswer": _CHAT_ANSWER,
                **components,
            },
            "securitySchemes": {"operator": {"type": "apiKey", "in": "cookie", "name": "rappd_operator"}},
        },
    }


class _Schemas(NamedTuple):
    """The schemas of each operation's arguments and answer, and of the types that they are made of."""

    of: Mapping[Operation, tuple[dict[str, Any], dict[str, Any]]]
    components: Mapping[str, Any]


def _rows(app: web.Application) -> list[Operation]:
    found = (getattr(handler_itself(route.handler), "operation", None) for route in app.router.routes())
    return [one for one in found if isinstance(one, Operation)]


def _answer(row: Operation) -> Any:
    """The type of an answer in JSON; a long operation has one, too."""
    return dict[str, Any] if row.result in (Download, Stream) else row.ending


def _describe_row(row: Operation, described: dict[str, Any], known: _Schemas) -> None:
    """Adds what the table says of an operation: its name, its arguments and its answer."""
    of_twin = (
        "_of_twin" if row.of_tenant and described.get("parameters", [{}])[0].get("name") == "twin" else ""
    )
    described["operationId"] = row.name.replace(".", "_") + of_twin
    arguments, answer = known.of[row]
    content = described["responses"]["200"]["content"]
    content["application/json"] = {"schema": answer}
    if row.is_long:
        content["text/event-stream"] = {}
    if row.result is Stream:
        described["responses"]["200"]["content"] = {"text/event-stream": {}}
    if row.result is Download:
        described["responses"]["200"]["content"] = {"application/octet-stream": _FILE}
    if row.takes_file:
        described["requestBody"] = {"required": True, "content": {"application/octet-stream": _FILE}}
    media = "multipart/form-data" if row.takes_form else "application/json"
    own = known.components[arguments["$ref"].rpartition("/")[2]]
    sent = {name: one for name, one in own["properties"].items() if name not in row.in_path}
    needed = [name for name in own["required"] if name in sent]
    if row.takes_form:
        sent, needed = {**sent, "file": _FILE["schema"]}, [*needed, "file"]
    if row.has_body or row.takes_form:
        body = {"type": "object", "properties": sent, "required": needed}
        described["requestBody"] = {"required": bool(needed), "content": {media: {"schema": body}}}
    else:
        described.setdefault("parameters", []).extend(
            {"name": name, "in": "query", "required": name in needed, "schema": one}
            for name, one in sent.items()
        )


def _operation(path: str, method: str, handler: Any, known: _Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Done", "content": {"application/json": {}}}
    slash = "_slash" if path.endswith("/") and path != "/" else ""
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{method}{path}").strip("_") + slash,
        "summary": (inspect.getdoc(handler) or "").split("\n", 1)[0],
        "responses": {
            "200": answer,
            "default": {
                "description": "Refused",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    names = re.findall(r"\{(\w+)\}", path)
    if names:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    row: Operation | None = getattr(handler, "operation", None)
    if row is not None:
        _describe_row(row, operation, known)
    if getattr(handler, "operator_only", False):
        operation["security"] = [{"operator": []}]
    if path in ("/chat", "/chat/stream"):
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ChatRequest"}}},
        }
        if path == "/chat":
            answer["content"]["application/json"] = {"schema": {"$ref": "#/components/schemas/ChatAnswer"}}
        else:
            answer["content"] = {"text/event-stream": {}}
    return operation
