"""JSON-RPC 2.0 messages as MCP and ACP carry them: one message, read with its limits, and the bytes of an answer."""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec
import orjson

from envelopes.codecs.bounded_json import bounded_json
from envelopes.codecs.privileged import PrivilegedMessageError, refuse_privileged
from envelopes.codecs.strict_json import MAX_RECORDED_DEPTH, deeper_than
from envelopes.envelope import is_uuid
from envelopes.errors import EnvelopeError

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700, -32600, -32601, -32602, -32603,
)  # fmt: skip
MOST_BYTES = 16 << 20
_LONGEST_ID = 200
_LONGEST_METHOD = 200

Id = str | int


class RpcError(EnvelopeError):
    """A refusal as JSON-RPC says it; ``number`` is the protocol's own code, ``id`` the request's where it could be read."""

    code = "rpc_refused"
    status = 400

    def __init__(
        self,
        number: int,
        message: str,
        *,
        data: Any = None,
        id: Id | None = None,
        http: int = 400,
        do: str = "",
    ) -> None:
        """``data`` goes along as the error's data. ``http`` is the status where the transport is HTTP."""
        super().__init__(message, do=do)
        self.number, self.data, self.id, self.http = number, data, id, http


class RpcCall(msgspec.Struct, frozen=True):
    """A request, or a notification where ``id`` is None."""

    method: str
    params: dict[str, Any]
    id: Id | None = None


class RpcAnswer(msgspec.Struct, frozen=True):
    """The other side's answer to a request of ours: ``error`` is its error object, or None."""

    id: Id
    result: Any = None
    error: dict[str, Any] | None = None


def decode(octets: bytes, *, most: int = MOST_BYTES) -> RpcCall | RpcAnswer:
    """The one message in ``octets``. Raises ``RpcError`` for anything else, a batch included."""
    try:
        found = bounded_json(octets, most_bytes=most)
    except ValueError as error:
        raise RpcError(
            PARSE_ERROR, f"The message is no JSON: {_clause(error)}.", do="Send one JSON-RPC message."
        ) from error
    if isinstance(found, list):
        raise RpcError(INVALID_REQUEST, "Batches are not taken.", do="Send each message by itself.")
    if not isinstance(found, dict):
        raise RpcError(INVALID_REQUEST, "The message is no object.", do="Send one JSON-RPC message.")
    id = found.get("id")
    known = id if is_id(id) else None
    if found.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "jsonrpc must be 2.0.", id=known, do="Send JSON-RPC 2.0.")
    if "id" in found and known is None:
        raise RpcError(INVALID_REQUEST, "id must be a string or an integer.", do="Send another id.")
    if deeper_than(octets, MAX_RECORDED_DEPTH):
        raise RpcError(
            INVALID_REQUEST, f"That is nested more than {MAX_RECORDED_DEPTH} deep.", id=known, do="Send something flatter."
        )  # fmt: skip
    if "method" not in found:
        return _answer(found, known)
    method, params = found["method"], found.get("params")
    if not isinstance(method, str) or not 0 < len(method) <= _LONGEST_METHOD:
        raise RpcError(INVALID_REQUEST, "method must be a method's name.", id=known, do="Send one.")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object.", id=known, do='Send {"params": {…}}.')
    try:
        refuse_privileged(found, listener="JSON-RPC", octets=octets)
    except PrivilegedMessageError as refused:
        raise RpcError(INVALID_PARAMS, str(refused), id=known, do=refused.do) from refused
    return RpcCall(method, params, known)


def result(id: Id, found: dict[str, Any]) -> bytes:
    """A request's result."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "result": found}, default=str)


def refused(problem: RpcError, id: Id | None = None) -> bytes:
    """A request's error; its advice is part of the message, for clients show nothing else."""
    error: dict[str, Any] = {"code": problem.number, "message": problem.with_advice()}
    if problem.data is not None:
        error["data"] = problem.data
    known = problem.id if problem.id is not None else id
    return orjson.dumps({"jsonrpc": "2.0", "id": known, "error": error}, default=str)


def with_id(octets: bytes, id: Id) -> bytes:
    """An error that was told before its request was read, as that request's. Anything else is given back as it is."""
    try:
        found = orjson.loads(octets)
    except orjson.JSONDecodeError:
        return octets
    if isinstance(found, dict) and "error" in found and found.get("id") is None:
        return orjson.dumps({**found, "id": id})
    return octets


def notification(method: str, params: dict[str, Any]) -> bytes:
    """A message that nobody answers."""
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params}, default=str)


def request(id: Id, method: str, params: dict[str, Any]) -> bytes:
    """A request of ours."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, default=str)


def _answer(found: dict[str, Any], id: Id | None) -> RpcAnswer:
    error = found.get("error")
    if id is None or ("result" in found) == (error is not None) or not isinstance(error, dict | None):
        raise RpcError(INVALID_REQUEST, "The message is neither a request nor an answer.", id=id)
    return RpcAnswer(id, found.get("result"), error)


def id_in(octets: bytes, *, most: int = MOST_BYTES) -> Id | None:
    """The id of a request that is refused, where it can be read."""
    try:
        found = bounded_json(octets, most_bytes=most)
    except ValueError:
        return None
    id = found.get("id") if isinstance(found, dict) else None
    return id if is_id(id) else None


def is_id(id: object) -> TypeGuard[Id]:
    """True for what may be the id of a request: a short text, or an integer."""
    if isinstance(id, str):
        return len(id) <= _LONGEST_ID
    return isinstance(id, int) and not isinstance(id, bool) and abs(id) < 1 << 53


def _clause(error: ValueError) -> str:
    return "it cannot be read" if isinstance(error, orjson.JSONDecodeError) else str(error)


def cursor(call: RpcCall) -> tuple[int, str] | None:
    """The moment and the id at which a list goes on; None for its beginning. Raises ``RpcError``."""
    text = call.params.get("cursor")
    if text is None:
        return None
    moment, _, id = text.partition(".") if isinstance(text, str) else ("", "", "")
    if not (moment.isdecimal() and len(moment) < 19 and is_uuid(id)):
        raise _no_place()
    return int(moment), id


def refuse_cursor(call: RpcCall) -> None:
    """For a list that is told whole: raises ``RpcError`` for any cursor, since none was given out."""
    if call.params.get("cursor"):
        raise _no_place()


def _no_place() -> RpcError:
    return RpcError(INVALID_PARAMS, "cursor is no place in the list.", do="Send the nextCursor of an answer.")
