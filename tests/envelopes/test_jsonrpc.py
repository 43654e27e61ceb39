"""JSON-RPC messages: one at a time, each refused with the protocol's own number, whatever they hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envelopes.codecs import jsonrpc
from envelopes.codecs.jsonrpc import RpcAnswer, RpcCall, RpcError


def _message(**more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **more}).encode()


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (_message(id=1, method="ping"), RpcCall("ping", {}, 1)),
        (_message(id="a", method="x", params={"k": 1}), RpcCall("x", {"k": 1}, "a")),
        (_message(method="notifications/initialized", params=None), RpcCall("notifications/initialized", {})),
        (_message(id=7, result={"ok": True}), RpcAnswer(7, {"ok": True})),
        (_message(id=7, error={"code": -1, "message": "no"}), RpcAnswer(7, None, {"code": -1, "message": "no"})),
    ],
)  # fmt: skip
def test_a_message_is_read(octets: bytes, expected: RpcCall | RpcAnswer) -> None:
    assert jsonrpc.decode(octets) == expected


@pytest.mark.parametrize(
    ("octets", "number", "id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b"[" * 5000 + b"]" * 5000, -32700, None),
        (b"[]", -32600, None),
        (b"[" + _message(id=1, method="ping") + b"]", -32600, None),
        (b"17", -32600, None),
        (b'{"id": 1, "method": "ping"}', -32600, 1),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600, 1),
        (_message(id=None, method="ping"), -32600, None),
        (_message(id=True, method="ping"), -32600, None),
        (_message(id=1.5, method="ping"), -32600, None),
        (_message(id={}, method="ping"), -32600, None),
        (_message(id="x" * 201, method="ping"), -32600, None),
        (_message(id=2, method=""), -32600, 2),
        (_message(id=2, method=["ping"]), -32600, 2),
        (_message(id=2, method="m" * 201), -32600, 2),
        (_message(id=2, method="ping", params=[1]), -32602, 2),
        (_message(id=2, method="ping", params="x"), -32602, 2),
        (_message(id=2), -32600, 2),
        (_message(id=2, result=1, error={"code": 1}), -32600, 2),
        (_message(id=2, error="no"), -32600, 2),
        (_message(result=1), -32600, None),
        (_message(id=3, method="x", params=json.loads('{"a":' * 60 + "1" + "}" * 60)), -32600, 3),
    ],
)
def test_anything_else_is_refused_with_its_number_and_id(octets: bytes, number: int, id: object) -> None:
    with pytest.raises(RpcError) as refused:
        jsonrpc.decode(octets)
    assert (refused.value.number, refused.value.id) == (number, id)


def test_too_much_is_refused_unread() -> None:
    with pytest.raises(RpcError) as refused:
        jsonrpc.decode(_message(id=1, method="ping", params={"a": "x" * 2000}), most=1000)
    assert refused.value.number == -32700


def test_what_goes_out_is_json_rpc() -> None:
    problem = RpcError(-32602, "No such task.", data={"uri": "x"}, do="Ask anew.")
    assert json.loads(jsonrpc.refused(problem, 5)) == {
        "jsonrpc": "2.0",
        "id": 5,
        "error": {"code": -32602, "message": "No such task. Ask anew.", "data": {"uri": "x"}},
    }
    assert json.loads(jsonrpc.result(5, {})) == {"jsonrpc": "2.0", "id": 5, "result": {}}
    assert json.loads(jsonrpc.notification("n", {"a": 1})) == {
        "jsonrpc": "2.0",
        "method": "n",
        "params": {"a": 1},
    }
    assert json.loads(jsonrpc.request(1, "r", {})) == {"jsonrpc": "2.0", "id": 1, "method": "r", "params": {}}
