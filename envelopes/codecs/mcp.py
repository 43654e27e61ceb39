"""The Model Context Protocol in both of its eras: 2026-07-28, where each request says everything, and 2025-11-25.

A request is read into an ``McpRequest``; what it asks for is of no matter here. The other functions shape answers.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from envelopes.codecs import jsonrpc
from envelopes.codecs.jsonrpc import INVALID_PARAMS, Id, RpcCall, RpcError
from envelopes.codecs.strict_json import MAX_RECORDED_DEPTH, deeper_than
from envelopes.envelope import as_uuid

MODERN = "2026-07-28"
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that begin with ``initialize``, the latest first; the shapes here are the same in all of them."""
SUPPORTED = (MODERN, *HANDSHAKES)

HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
VERSION_HEADER, METHOD_HEADER, NAME_HEADER, SESSION_HEADER = (
    "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id",
)  # fmt: skip
_PARAMETER = "Mcp-Param-"
KEY_HEADER = "Idempotency-Key"
"""Names a request that may be sent again: it is begun once (draft-ietf-httpapi-idempotency-key-header)."""
TASKS = "io.modelcontextprotocol/tasks"
POLL_MS = 1000

_META = "io.modelcontextprotocol/"
_NAMED = {
    "tools/call": "name",
    "resources/read": "uri",
    "prompts/get": "name",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that ``Mcp-Name`` repeats."""
MOST_QUESTIONS = 20
_LONGEST_KEY = 200
_ASKS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""Requests that an agent may have made of a program, and the capability that each takes."""
_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}
_LONGEST_RESULT_READ = 8 << 20


class McpRequest(msgspec.Struct, frozen=True):
    """A request or a notification, as its revision has it.

    ``client`` is what the program calls itself, unchecked; ``capabilities`` are the client's, where the request says
    them. ``progress`` is the token under which it wants to hear how far its call is.
    """

    call: RpcCall
    version: str
    client: str = ""
    capabilities: dict[str, Any] = {}
    progress: Id | None = None

    @property
    def is_modern(self) -> bool:
        """True for a request that says everything itself."""
        return self.version == MODERN

    @property
    def takes_tasks(self) -> bool:
        """True for a client that can be given a task in place of a result."""
        extensions = self.capabilities.get("extensions")
        return self.is_modern and isinstance(extensions, dict) and isinstance(extensions.get(TASKS), dict)


def read(octets: bytes, headers: Mapping[str, str] | None) -> McpRequest | None:
    """The request in ``octets``; None for an answer of the client's, which nobody asked for.

    ``headers`` are those of the HTTP request, None where the transport has none. Raises ``RpcError``.
    """
    found = jsonrpc.decode(octets)
    if not isinstance(found, RpcCall):
        return None
    try:
        return _of_its_era(found, headers)
    except RpcError as problem:
        problem.id = found.id
        raise


def _of_its_era(call: RpcCall, headers: Mapping[str, str] | None) -> McpRequest:
    meta = call.params.get("_meta", {})
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, "_meta must be an object.", do="Send it as the revision has it.")
    stated, header = meta.get(f"{_META}protocolVersion"), (headers or {}).get(VERSION_HEADER)
    progress = meta.get("progressToken")
    if progress is not None and (isinstance(progress, bool) or not isinstance(progress, str | int)):
        raise RpcError(INVALID_PARAMS, "progressToken must be a string or an integer.", do="Send another.")
    if stated is None and (header is None or header in HANDSHAKES) and call.method != "server/discover":
        if call.method == "initialize":
            return McpRequest(call, _handshake_version(call.params), _client(call.params.get("clientInfo")))
        return McpRequest(call, header or HANDSHAKES[0], progress=progress)
    if stated is not None and header is not None and stated != header:
        raise _mismatch(VERSION_HEADER, header)
    asked = stated if stated is not None else header
    if asked is not None and asked not in SUPPORTED:
        data = {"supported": list(SUPPORTED), "requested": str(asked)[:100]}
        raise RpcError(
            UNSUPPORTED_VERSION, "This revision of MCP is not served.", data=data, do=f"Ask with {MODERN}."
        )
    if asked in HANDSHAKES:
        return McpRequest(call, str(asked), progress=progress)
    capabilities = meta.get(f"{_META}clientCapabilities")
    for name, found in (("protocolVersion", stated), ("clientCapabilities", capabilities)):
        if not isinstance(found, str if name == "protocolVersion" else dict):
            raise RpcError(INVALID_PARAMS, f"_meta lacks {_META}{name}.", do="Send it with each request.")
    if headers is not None:
        _check_headers(call, headers)
    assert isinstance(capabilities, dict)
    return McpRequest(call, MODERN, _client(meta.get(f"{_META}clientInfo")), capabilities, progress)


def _check_headers(call: RpcCall, headers: Mapping[str, str]) -> None:
    if VERSION_HEADER not in headers:
        raise _mismatch(VERSION_HEADER, None)
    if (found := headers.get(METHOD_HEADER)) is None or found.strip() != call.method:
        raise _mismatch(METHOD_HEADER, found)
    parameter = call.params.get(_NAMED.get(call.method, ""))
    if isinstance(parameter, str) and _plain((headers.get(NAME_HEADER) or "").strip()) != parameter:
        raise _mismatch(NAME_HEADER, headers.get(NAME_HEADER))


def check_parameters(
    headers: Mapping[str, str], schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> None:
    """Raises ``RpcError`` where a header does not repeat an argument that the tool wants repeated (``x-mcp-header``)."""
    properties = schema.get("properties")
    for name, row in properties.items() if isinstance(properties, dict) else ():
        suffix = row.get("x-mcp-header") if isinstance(row, dict) else None
        found, value = headers.get(f"{_PARAMETER}{suffix}"), arguments.get(name)
        if not isinstance(suffix, str) or (found is None and value is None):
            continue
        said = value if isinstance(value, str) else orjson.dumps(value).decode()
        if found is None or value is None or _plain(found.strip()) != said:
            raise _mismatch(f"{_PARAMETER}{suffix}", found)


def headers_of(call: RpcCall) -> dict[str, str]:
    """The headers that go with a request over HTTP: a bridge from another transport sets them."""
    meta = call.params.get("_meta")
    stated = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if not isinstance(stated, str) or not stated.isascii() or not stated.isprintable():
        return {}
    found = {VERSION_HEADER: stated, METHOD_HEADER: _fit(call.method)}
    parameter = call.params.get(_NAMED.get(call.method, ""))
    return {**found, NAME_HEADER: _fit(parameter)} if isinstance(parameter, str) else found


def _fit(text: str) -> str:
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _plain(header: str) -> str:
    if not (header.startswith("=?base64?") and header.endswith("?=")):
        return header
    try:
        return base64.b64decode(header[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return header


def _mismatch(name: str, found: str | None) -> RpcError:
    what = f"{name} is missing." if found is None else f"{name} says something else than the request."
    return RpcError(HEADER_MISMATCH, what, do="Send what the body has.")


def _handshake_version(params: dict[str, Any]) -> str:
    asked = params.get("protocolVersion")
    if not isinstance(asked, str):
        raise RpcError(INVALID_PARAMS, "protocolVersion must be a revision.", do=f"Send {HANDSHAKES[0]}.")
    return asked if asked in HANDSHAKES else HANDSHAKES[0]


def _client(info: object) -> str:
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else ""


def missing_capability(required: dict[str, Any]) -> RpcError:
    """The refusal of a request that takes a capability of the client's which it did not state."""
    return RpcError(
        MISSING_CAPABILITY, "Your program lacks what this takes.", data={"requiredCapabilities": required}
    )


def text_parameter(call: RpcCall, name: str) -> str:
    """A parameter that must be there, as text. Raises ``RpcError``."""
    found = call.params.get(name)
    if not isinstance(found, str) or not found:
        raise RpcError(INVALID_PARAMS, f"{name} must be a text.", id=call.id, do="Send it.")
    return found


def tool_arguments(call: RpcCall) -> dict[str, Any]:
    """The arguments of a ``tools/call``. Raises ``RpcError``."""
    found = call.params.get("arguments")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise RpcError(
            INVALID_PARAMS, "arguments must be an object.", id=call.id, do='Send {"arguments": {…}}.'
        )
    return found


def result(
    request: McpRequest, found: dict[str, Any], server: Mapping[str, str], *, cached: bool = False
) -> bytes:
    """The answer to ``request`` in the form of its revision. ``cached``: a list, which clients may keep."""
    assert request.call.id is not None
    if request.is_modern:
        found = {"resultType": "complete", **found}
        if cached:
            found = {**found, "ttlMs": 0, "cacheScope": "private"}
        found["_meta"] = {**found.get("_meta", {}), f"{_META}serverInfo": dict(server)}
    return jsonrpc.result(request.call.id, found)


def welcome(
    request: McpRequest, capabilities: dict[str, Any], server: Mapping[str, str], instructions: str
) -> dict[str, Any]:
    """The result of ``server/discover``, or of ``initialize``. ``capabilities``: those of the newer era."""
    if request.is_modern:
        return {
            "supportedVersions": list(SUPPORTED),
            "capabilities": capabilities,
            "instructions": instructions,
        }
    known = {name: found for name, found in capabilities.items() if name != "extensions"}
    return {
        "protocolVersion": request.version,
        "capabilities": known,
        "serverInfo": dict(server),
        "instructions": instructions,
    }


def tool(
    name: str, description: str, parameters: dict[str, Any], *, idempotent: bool = False, title: str = ""
) -> dict[str, Any]:
    """A row of ``tools/list``."""
    schema = parameters if parameters.get("type") == "object" else {**parameters, "type": "object"}
    found: dict[str, Any] = {"name": name, "description": description or name, "inputSchema": schema}
    if title:
        found["title"] = title
    found["annotations"] = {"idempotentHint": idempotent}
    return found


def call_result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    """The result of a tool from an agent's text: that text; a JSON object also as ``structuredContent``.

    An object that is a result of the protocol's own (``content`` with blocks of its kinds) is passed on as it is.
    """
    found = _json_object(text)
    if found is not None and _is_content(found.get("content")):
        passed: dict[str, Any] = {
            "content": found["content"],
            "isError": is_error or found.get("isError") is True,
        }
        if isinstance(found.get("structuredContent"), dict):
            passed["structuredContent"] = found["structuredContent"]
        return passed
    answer: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if found is not None and not is_error:
        answer["structuredContent"] = found
    return answer


class Questions(msgspec.Struct, frozen=True):
    """Requests to a program that an agent answered with, by key: it is called again with what they come to.

    ``state`` is the agent's own, and comes back to it.
    """

    requests: dict[str, dict[str, Any]]
    state: str = ""


def questions_in(text: str) -> Questions | None:
    """The questions that an agent's text is: a JSON object with ``inputRequests`` of the protocol's kinds."""
    found = _json_object(text) if '"inputRequests"' in text else None
    asked = found.get("inputRequests") if found is not None else None
    if found is None or not isinstance(asked, dict) or not 0 < len(asked) <= MOST_QUESTIONS:
        return None
    state = found.get("requestState", "")
    if not isinstance(state, str) or not all(_is_question(key, one) for key, one in asked.items()):
        return None
    return Questions(asked, state)


def _is_question(key: str, found: object) -> bool:
    return (
        len(key) <= _LONGEST_KEY
        and isinstance(found, dict)
        and isinstance(found.get("method"), str)
        and found["method"] in _ASKS
        and isinstance(found.get("params", {}), dict)
    )


def answers_in(call: RpcCall) -> dict[str, dict[str, Any]] | None:
    """The answers to questions that a request brings, None for one that brings none. Raises ``RpcError``."""
    if "inputResponses" not in call.params:
        return None
    found = call.params["inputResponses"]
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise RpcError(
            INVALID_PARAMS, "inputResponses must be objects by key.", id=call.id, do="Send them so."
        )
    return found


def input_required(request: McpRequest, questions: Questions, state: str) -> dict[str, Any]:
    """The result that asks, with what the client is able to answer. Raises ``RpcError`` where that is nothing."""
    asked = answerable(request, questions.requests)
    found: dict[str, Any] = {"resultType": "input_required", "inputRequests": asked}
    return {**found, "requestState": state} if state else found


def answerable(request: McpRequest, asked: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The entries of ``asked`` for which the client states the capability. Raises ``RpcError`` where there are none."""
    found = {key: one for key, one in asked.items() if _ASKS[one["method"]] in request.capabilities}
    if not found:
        raise missing_capability({_ASKS[one["method"]]: {} for one in asked.values()})
    return found


def _json_object(text: str) -> dict[str, Any] | None:
    if text.lstrip()[:1] != "{" or len(text) > _LONGEST_RESULT_READ:
        return None
    octets = text.encode("utf-8", "replace")
    if deeper_than(octets, MAX_RECORDED_DEPTH):
        return None
    try:
        found = orjson.loads(octets)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _is_content(found: object) -> bool:
    return isinstance(found, list) and bool(found) and all(map(_is_block, found))


def _is_block(found: object) -> bool:
    kind = found.get("type") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(kind, str) or kind not in _BLOCKS:
        return False
    if kind == "resource":
        inside = found.get("resource")
        return (
            isinstance(inside, dict)
            and isinstance(inside.get("uri"), str)
            and isinstance(inside.get("text", inside.get("blob")), str)
        )
    return all(isinstance(found.get(key), str) for key in _BLOCKS[kind])


def progress(token: Id, number: int, event: Mapping[str, Any]) -> bytes | None:
    """A turn's event as ``notifications/progress``; None for those that say nothing of how far it is.

    ``number`` grows with each event. (A phase has its own count, which may begin anew; the protocol's must not.)
    """
    kind = event.get("type")
    if kind == "call":
        message = f"{event.get('name')} is asked."
    elif kind == "result":
        message = f"{event.get('name')} {'answered' if event.get('ok') else 'failed'}."
    elif kind == "piece" or kind == "notice":
        message = str(event.get("text", ""))
    elif kind == "waiting":
        message = f"Nothing from {event.get('for')} for {event.get('seconds')} s."
    elif kind == "progress":
        message = f"{event.get('phase')}: {event.get('done')} of {event.get('whole')}"
    else:
        return None
    found = {"progressToken": token, "progress": number, "message": message}
    return jsonrpc.notification("notifications/progress", found)


def subscribed(id: Id, wanted: dict[str, Any]) -> bytes:
    """The first message of a stream of notices; ``wanted`` is what of it is served."""
    return _of_subscription(id, "notifications/subscriptions/acknowledged", {"notifications": wanted})


def tools_changed(subscription: Id | None) -> bytes:
    """Word that the list of tools is another; ``subscription`` is the id of the request that listens, in the newer era."""
    if subscription is None:
        return jsonrpc.notification("notifications/tools/list_changed", {})
    return _of_subscription(subscription, "notifications/tools/list_changed", {})


def _of_subscription(id: Id, method: str, params: dict[str, Any]) -> bytes:
    return jsonrpc.notification(method, {**params, "_meta": {f"{_META}subscriptionId": id}})


def subscription_over(request: McpRequest) -> dict[str, Any]:
    """The result that ends a stream of notices."""
    return {"_meta": {f"{_META}subscriptionId": request.call.id}}


def task_id(milliseconds: int, drawn: bytes) -> str:
    """An id for a task: a UUID of version 7, which carries its moment. ``drawn``: ten random bytes."""
    return as_uuid(f"{milliseconds:012x}{drawn.hex()}", "7")


def created_at(id: str) -> int | None:
    """The moment, in microseconds since 1970, that the id of a task carries; None for another id."""
    return int(id[:8] + id[9:13], 16) * 1000 if _TASK_ID.fullmatch(id) else None


_TASK_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Task(msgspec.Struct, frozen=True):
    """A call that goes on by itself. ``created`` and ``updated`` are microseconds since 1970.

    ``outcome`` is the tool's result once it is there; ``problem`` an error of the protocol's in its place; ``asked``
    what it waits for.
    """

    id: str
    status: str
    created: int
    updated: int
    outcome: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None
    asked: dict[str, Any] | None = None
    kept_ms: int | None = None

    def as_created(self) -> dict[str, Any]:
        """The result of the call that became a task."""
        return {"resultType": "task", **self._shared()}

    def in_detail(self) -> dict[str, Any]:
        """The result of ``tasks/get``."""
        found = {"resultType": "complete", **self._shared()}
        if self.outcome is not None:
            found["result"] = self.outcome
        if self.problem is not None:
            found["error"] = self.problem
        if self.asked is not None:
            found["inputRequests"] = self.asked
        return found

    def _shared(self) -> dict[str, Any]:
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _moment(self.created),
            "lastUpdatedAt": _moment(self.updated),
            "ttlMs": self.kept_ms,
            "pollIntervalMs": POLL_MS,
        }


def _moment(microseconds: int) -> str:
    return (
        datetime.fromtimestamp(microseconds / 1e6, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
