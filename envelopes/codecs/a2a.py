"""The A2A 1.0 codec: requests of both bindings, and errors as each has them. No I/O.

A task is a HELP and its id, a context the session of its thread, a ``messageId`` what makes a repeat harmless
(docs/wire.md, "A2A").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

import msgspec
import orjson

from envelopes.codecs import pictures
from envelopes.codecs.bounded_json import bounded_json
from envelopes.codecs.jsonrpc import is_id
from envelopes.codecs.pictures import Picture
from envelopes.codecs.privileged import refuse_privileged
from envelopes.codecs.strict_json import too_deep
from envelopes.codecs.wire import is_content_type as is_content_type_of_json
from envelopes.errors import MalformedError, ReportableError

MEDIA_TYPE = "application/a2a+json"
VERSION = "1.0"
VERSION_HEADER = "A2A-Version"
EXTENSIONS_HEADER = "A2A-Extensions"
REPLAY = "urn:rappd:a2a:replay:1"
"""Extension: stream events have ids, and ``Last-Event-ID`` goes on after one."""
EVENTS = "urn:rappd:a2a:events:1"
"""Extension: all events of a turn, thoughts and calls too, as metadata of status updates."""
SKILL = "skillId"
"""Key of a message's metadata: the one agent that is called in place of a turn."""

LONGEST_BODY = 8 << 20
MOST_PARTS = 100
LONGEST_ID = 200
_LOOK = "Look at this."
"""The sentence of a message that is a picture alone: a turn has one."""

SUBMITTED, WORKING = "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"
COMPLETED, FAILED, CANCELED = "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED"
REJECTED, AUTH_REQUIRED = "TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED"
_STATES = {SUBMITTED, WORKING, COMPLETED, FAILED, CANCELED, REJECTED, AUTH_REQUIRED}
_STATES |= {"TASK_STATE_UNSPECIFIED", "TASK_STATE_INPUT_REQUIRED"}

METHODS = frozenset(
    {
        *("SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"),
        *("GetExtendedAgentCard", "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"),
        *("ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"),
    }
)


class Shape(NamedTuple):
    """An error as each binding has it: the JSON-RPC code, the HTTP status, and the status of gRPC."""

    rpc: int
    http: int
    grpc: str


SHAPES = {
    "TASK_NOT_FOUND": Shape(-32001, 404, "NOT_FOUND"),
    "TASK_NOT_CANCELABLE": Shape(-32002, 400, "FAILED_PRECONDITION"),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": Shape(-32003, 400, "FAILED_PRECONDITION"),
    "UNSUPPORTED_OPERATION": Shape(-32004, 400, "FAILED_PRECONDITION"),
    "CONTENT_TYPE_NOT_SUPPORTED": Shape(-32005, 400, "INVALID_ARGUMENT"),
    "VERSION_NOT_SUPPORTED": Shape(-32009, 400, "FAILED_PRECONDITION"),
    "INVALID_REQUEST": Shape(-32600, 400, "INVALID_ARGUMENT"),
    "METHOD_NOT_FOUND": Shape(-32601, 404, "NOT_FOUND"),
    "INVALID_PARAMS": Shape(-32602, 400, "INVALID_ARGUMENT"),
    "PARSE_ERROR": Shape(-32700, 400, "INVALID_ARGUMENT"),
}
_GRPC = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "ABORTED",
    413: "OUT_OF_RANGE",
}
_GRPC |= {415: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 503: "UNAVAILABLE"}


class A2AError(ReportableError):
    """A request that A2A has an error of its own for; ``reason`` is its name there."""

    code = "a2a"
    status = 400
    exit_code = 2

    def __init__(self, reason: str, message: str, *, do: str = "") -> None:
        super().__init__(message, do=do)
        self.reason = reason


class RpcRequest(NamedTuple):
    """A JSON-RPC request: its id, method and parameters."""

    id: str | int
    method: str
    params: dict[str, Any]


class Sent(msgspec.Struct, frozen=True):
    """A message that was sent. ``skill`` is the agent that it calls, with ``args``; "" for a turn about ``text``.

    ``task`` is the task that it goes on with, ``context`` the conversation, each "" for a new one.
    """

    message_id: str
    context: str
    task: str
    text: str
    pictures: list[Picture]
    skill: str
    args: dict[str, Any]
    history: int | None
    at_once: bool


class TaskQuery(msgspec.Struct, frozen=True):
    """The tasks that a caller wants listed. ``after`` is the moment (µs since 1970) that they changed at or after."""

    context: str
    state: str
    size: int
    token: str
    history: int | None
    after: int
    artifacts: bool


def check_version(version: str) -> None:
    """Raises ``A2AError`` for any version but 1.0; a client that says none speaks 0.3."""
    if re.fullmatch(r"1\.0(?:\.[0-9]{1,9})?", version.strip()) is None:
        named = version.strip()[:20] if version.isprintable() else ""
        raise A2AError(
            "VERSION_NOT_SUPPORTED",
            f"A2A {named or '0.3'} is not spoken here; {VERSION} is.",
            do=f"Send the header {VERSION_HEADER}: {VERSION}.",
        )


def decode_rpc(raw: bytes) -> RpcRequest:
    """The JSON-RPC request in ``raw``. Raises ``A2AError``; ``rpc_id`` finds its id even so."""
    found = decode_body(raw)
    if isinstance(found, list):
        raise A2AError("INVALID_REQUEST", "Batches are not taken.", do="Send one request at a time.")
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        raise A2AError(
            "INVALID_REQUEST", "That is no JSON-RPC 2.0 request.", do='Send {"jsonrpc": "2.0", …}.'
        )
    ident, method, params = found.get("id"), found.get("method"), found.get("params", {})
    if ident is None or not is_id(ident):
        raise A2AError("INVALID_REQUEST", "id must be a string or an integer.", do="Give each request an id.")
    if not isinstance(method, str):
        raise A2AError("INVALID_REQUEST", "method must be a string.", do="Name a method of A2A 1.0.")
    if method not in METHODS:
        raise A2AError("METHOD_NOT_FOUND", "There is no such method in A2A 1.0.", do="SendMessage is one.")
    return RpcRequest(ident, method, _object(params, "params"))


def is_content_type(header: str | None) -> bool:
    """True for a Content-Type of JSON, or of A2A's own."""
    return is_content_type_of_json(header) or (header or "").partition(";")[0].strip().lower() == MEDIA_TYPE


def decode_body(raw: bytes) -> Any:
    """The JSON in a body. Raises ``A2AError``."""
    try:
        found = bounded_json(raw, most_bytes=LONGEST_BODY)
        refuse_privileged(found, listener="A2A", octets=raw)
        return found
    except ValueError as error:
        raise A2AError("PARSE_ERROR", f"The body cannot be read: {error}.", do="Send JSON.") from error


def read_sent(params: Mapping[str, Any]) -> Sent:
    """The parameters of SendMessage and SendStreamingMessage. Raises ``A2AError``."""
    message = _object(params.get("message"), "message")
    settings = _object(params.get("configuration", {}), "configuration")
    if _field(settings, "taskPushNotificationConfig") or _field(settings, "pushNotificationConfig"):
        raise no_push()
    if message.get("role", "ROLE_USER") not in ("ROLE_USER", "user", 1):
        raise _unfit("message.role must be ROLE_USER.")
    metadata = {
        **_object(params.get("metadata", {}), "metadata"),
        **_object(message.get("metadata", {}), "metadata"),
    }
    if too_deep(message):
        raise _unfit("The message is nested too deep.")
    texts, data, shown = _parts(message.get("parts"))
    skill = metadata.get(SKILL, "")
    if not isinstance(skill, str) or len(skill) > LONGEST_ID:
        raise _unfit(f"metadata.{SKILL} must be the id of a skill.")
    text = "\n\n".join(texts)
    args: dict[str, Any] = {}
    if skill:
        if shown:
            raise _unfit("A skill takes no pictures.")
        for one in data:
            args |= _object(one, "a data part of a skill's call")
    elif data:
        blocks = [f"```json\n{orjson.dumps(one).decode()}\n```" for one in data]
        text = "\n\n".join([*texts, *blocks])
    if not skill and not text.strip():
        if not shown:
            raise _unfit("The message says nothing.")
        text = _LOOK
    message_id = _ident(_field(message, "messageId"), "message.messageId")
    if not message_id:
        raise _unfit("message.messageId is required.")
    return Sent(
        message_id,
        _ident(_field(message, "contextId"), "message.contextId"),
        _ident(_field(message, "taskId"), "message.taskId"),
        text,
        shown,
        skill,
        args,
        history_length(_field(settings, "historyLength")),
        _field(settings, "returnImmediately") is True,
    )


def _parts(found: object) -> tuple[list[str], list[Any], list[Picture]]:
    if not isinstance(found, list) or not found:
        raise _unfit("message.parts must be a list with something in it.")
    if len(found) > MOST_PARTS:
        raise _unfit(f"message.parts has more than {MOST_PARTS} parts.")
    texts: list[str] = []
    data: list[Any] = []
    shown: list[Picture] = []
    for place, part in enumerate(found):
        where = f"message.parts[{place}]"
        kinds = [kind for kind in ("text", "data", "raw", "url") if kind in _object(part, where)]
        if len(kinds) != 1:
            raise _unfit(f"{where} must have one of text, data, raw and url.")
        content, media = part[kinds[0]], _field(part, "mediaType") or ""
        if kinds == ["text"]:
            if not isinstance(content, str):
                raise _unfit(f"{where}.text must be a string.")
            texts.append(content)
        elif kinds == ["data"]:
            data.append(content)
        elif kinds == ["raw"] and isinstance(media, str) and media.startswith("image/"):
            try:
                shown.append(pictures.checked_picture(_picture(part, content, media), where))
            except MalformedError as problem:
                raise A2AError("CONTENT_TYPE_NOT_SUPPORTED", str(problem), do=problem.do) from problem
        else:
            raise A2AError(
                "CONTENT_TYPE_NOT_SUPPORTED",
                f"{where} is a file that is not taken ({media or kinds[0]}).",
                do="Send text, data, or a picture as raw with its mediaType.",
            )
    try:
        pictures.check_together(shown, "message.parts")
    except MalformedError as problem:
        raise A2AError("CONTENT_TYPE_NOT_SUPPORTED", str(problem), do=problem.do) from problem
    return texts, data, shown


def _picture(part: dict[str, Any], content: object, media: str) -> dict[str, Any]:
    plain = content.translate(_FROM_URL_ALPHABET) if isinstance(content, str) else content
    if isinstance(plain, str):
        plain += "=" * (-len(plain) % 4)  # ProtoJSON takes both alphabets, with and without padding
    return {"type": media, "data": plain, "name": part.get("filename", "")}


_FROM_URL_ALPHABET = str.maketrans("-_", "+/")


def read_query(params: Mapping[str, Any]) -> TaskQuery:
    """The parameters of ListTasks, by JSON or by a query string. Raises ``A2AError``."""
    state = _field(params, "status") or ""
    if not isinstance(state, str) or (state and state not in _STATES):
        raise _unfit("status must be a state of a task.")
    size = _number(_field(params, "pageSize"), "pageSize", 50)
    if not 1 <= size <= 100:
        raise _unfit("pageSize must be from 1 to 100.")
    token = _field(params, "pageToken") or ""
    if not isinstance(token, str) or re.fullmatch(r"(?:[0-9]{1,18}\.[0-9a-f-]{36})?", token) is None:
        raise _unfit("pageToken is none of this machine's.")
    artifacts = _field(params, "includeArtifacts")
    return TaskQuery(
        _ident(_field(params, "contextId"), "contextId"),
        "" if state == "TASK_STATE_UNSPECIFIED" else state,
        size,
        token,
        history_length(_field(params, "historyLength")),
        _moment(_field(params, "statusTimestampAfter")),
        artifacts is True or artifacts == "true",
    )


def history_length(found: object) -> int | None:
    """``historyLength``: None where it is not limited. Raises ``A2AError``."""
    if found is None:
        return None
    number = _number(found, "historyLength", 0)
    if number < 0:
        raise _unfit("historyLength must be 0 or more.")
    return number


def read_task_id(params: Mapping[str, Any]) -> str:
    """The ``id`` of a task in parameters. Raises ``A2AError``."""
    found = _ident(params.get("id"), "id")
    if not found:
        raise _unfit("id is required.")
    return found.lower()


def rpc_result(ident: str | int | None, result: dict[str, Any]) -> dict[str, Any]:
    """A JSON-RPC answer."""
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def rpc_error(ident: str | int | None, found: ReportableError) -> dict[str, Any]:
    """A refusal as JSON-RPC has it: our sentence and advice, A2A's code, details with our code in them."""
    shape = shape_of(found)
    error = {"code": shape.rpc, "message": found.with_advice(), "data": [_info(found)]}
    return {"jsonrpc": "2.0", "id": ident, "error": error}


def http_error(found: ReportableError) -> dict[str, Any]:
    """The same as HTTP+JSON has it (google.rpc.Status)."""
    shape = shape_of(found)
    error = {
        "code": shape.http,
        "status": shape.grpc,
        "message": found.with_advice(),
        "details": [_info(found)],
    }
    return {"error": error}


def shape_of(found: ReportableError) -> Shape:
    """The shape of an error in each binding, ours included."""
    if isinstance(found, A2AError):
        return SHAPES[found.reason]
    if found.status == 415:
        return SHAPES["CONTENT_TYPE_NOT_SUPPORTED"]
    if isinstance(found, MalformedError) or found.status in (400, 422):
        return Shape(-32602, 400, "INVALID_ARGUMENT")
    return Shape(-32603 if found.status == 500 else -32000, found.status, _GRPC.get(found.status, "INTERNAL"))


def no_push() -> A2AError:
    """The refusal of push notifications."""
    return A2AError(
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
        "Push notifications are not sent (taskPushNotificationConfig).",
        do="Stream, or ask GetTask.",
    )


def no_task() -> A2AError:
    """The refusal of a task that is not there, or not the caller's."""
    return A2AError("TASK_NOT_FOUND", "No such task of yours.", do="ListTasks names them.")


def _info(found: ReportableError) -> dict[str, Any]:
    reason = found.reason if isinstance(found, A2AError) else found.code.upper()
    domain = "a2a-protocol.org" if isinstance(found, A2AError) else "rappd"
    metadata = {"code": found.code, **({"do": found.do} if found.do else {})}
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    return {"@type": kind, "reason": reason, "domain": domain, "metadata": metadata}


def _object(found: object, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise _unfit(f"{where} must be an object.")
    return found


def _field(found: Mapping[str, Any], name: str) -> Any:
    """A field by its JSON name, or by the name that protobuf has: ProtoJSON takes both."""
    value = found.get(name)
    return value if value is not None else found.get(_name_of_protobuf(name))


@cache
def _name_of_protobuf(name: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def _ident(found: object, where: str) -> str:
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > LONGEST_ID or not found.isprintable():
        raise _unfit(f"{where} must be a text of at most {LONGEST_ID} characters.")
    return found


def _number(found: object, where: str, without: int) -> int:
    if found is None:
        return without
    if isinstance(found, str) and re.fullmatch(r"[0-9]{1,9}", found):
        return int(found)
    if isinstance(found, float) and found.is_integer() and abs(found) < 1 << 31:
        return int(found)
    if type(found) is not int or abs(found) >= 1 << 31:
        raise _unfit(f"{where} must be an integer.")
    return found


def _moment(found: object) -> int:
    if found is None:
        return 0
    try:
        if not isinstance(found, str) or len(found) > 40:
            raise ValueError
        moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", found))
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)
    except (ValueError, OverflowError) as error:
        raise _unfit("statusTimestampAfter must be a moment, as 2026-11-30T08:00:00Z.") from error


def _unfit(message: str) -> A2AError:
    return A2AError("INVALID_PARAMS", message, do="A2A 1.0 says how it is written.")
