"""Requests that no program should send: refused in the client's own shape, with nothing of it in the log."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest
from fixtures.loopback_server import FakeModel
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.programs.conftest import token


def _openai(error: Any) -> bool:
    found = error["error"]
    return found.keys() == {"message", "type", "param", "code"} and bool(found["message"])


def _ollama(error: Any) -> bool:
    return isinstance(error["error"], str)


def _rpc(error: Any) -> bool:
    return (
        error["jsonrpc"] == "2.0" and type(error["error"]["code"]) is int and bool(error["error"]["message"])
    )


def _google(error: Any) -> bool:
    return type(error["error"]["code"]) is int and error["error"]["status"].isupper()


SAID = {"role": "user", "content": "hi"}
SENT = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
VERSION = {"A2A-Version": "1.0"}
Shape = Callable[[Any], bool]
ROUTES: dict[str, tuple[Any, dict[str, str], Shape]] = {
    "/v1/chat/completions": ({"model": "brainstem", "messages": [SAID]}, {}, _openai),
    "/v1/responses": ({"model": "brainstem", "input": "hi"}, {}, _openai),
    "/ollama/api/chat": ({"model": "brainstem", "messages": [SAID], "stream": False}, {}, _ollama),
    "/ollama/api/generate": ({"model": "brainstem", "prompt": "hi", "stream": False}, {}, _ollama),
    "/mcp": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {}, _rpc),
    "/a2a": ({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": SENT}, VERSION, _rpc),
    "/a2a/message:send": (SENT, VERSION, _google),
}
JSON = "application/json"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    found = RunningDaemon(
        tmp_path_factory.mktemp("bad-requests") / "home",
        OPENAI_BASE_URL=f"{model.url}/v1",
        OPENAI_MODEL="m",
        RAPPD_MODEL_HELP="never",
    )
    found.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    yield found.start()
    found.stop()


def refused(answer: Answer, shape: Shape) -> bool:
    """True for a refusal in that shape."""
    is_one = 400 <= answer.status < 500 or (shape is _rpc and answer.status == 200)
    return is_one and answer.headers["content-type"].startswith(JSON) and shape(answer.json())


BODIES: dict[str, Callable[[bytes], tuple[bytes, dict[str, str]]]] = {
    "nothing": lambda raw: (b"", {}),
    "blanks": lambda raw: (b" \n ", {}),
    "a mark of its order": lambda raw: (b"\xef\xbb\xbf" + raw, {}),
    "not UTF-8": lambda raw: (raw.replace(b"hi", b"\xe9").replace(b"list", b"\xe9"), {}),
    "UTF-16": lambda raw: (raw.decode().encode("utf-16"), {}),
    "half of it": lambda raw: (raw[:-3], {}),
    "two of it": lambda raw: (raw + raw, {}),
    "no number": lambda raw: (raw[:-1] + b', "x": NaN}', {}),
    "half a character": lambda raw: (raw[:-1] + b', "x": "\\ud800"}', {}),
    "a batch": lambda raw: (b"[" + raw + b"]", {}),
    "deep": lambda raw: (b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}", {}),
    "null": lambda raw: (b"null", {}),
    "a form": lambda raw: (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}),
    "not packed": lambda raw: (raw, {"Content-Encoding": "gzip"}),
    "packed in part": lambda raw: (gzip.compress(raw)[: len(raw) // 2], {"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_cannot_be_read_is_refused_in_the_clients_shape(
    daemon: RunningDaemon, path: str, body: str
) -> None:
    sent, headers, shape = ROUTES[path]
    raw, more = BODIES[body](json.dumps(sent).encode())
    answer = daemon.request("POST", path, raw, {"Content-Type": JSON, **headers, **more})
    assert refused(answer, shape), answer.body
    assert "Traceback" not in daemon.log


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        {"Content-Type": "application/json; charset=x"},
    ],
)
def test_what_it_is_called_does_no_harm_on_this_machine(
    daemon: RunningDaemon, path: str, more: dict[str, str]
) -> None:
    sent, headers, _ = ROUTES[path]
    packed = {"Content-Encoding": "gzip"}
    for raw, how in ((json.dumps(sent).encode(), {}), (gzip.compress(json.dumps(sent).encode()), packed)):
        answer = daemon.request("POST", path, raw, {"Content-Type": JSON, **headers, **more, **how})
        assert (answer.status, answer.json().get("error")) == (200, None), answer.body


@pytest.mark.parametrize("path", ROUTES)
def test_other_methods_and_paths_are_refused_in_the_clients_shape(daemon: RunningDaemon, path: str) -> None:
    _, headers, shape = ROUTES[path]
    below = _google if path.startswith("/a2a") else shape
    for method in ("PUT", "PATCH", "DELETE"):
        answer = daemon.request(method, path, b"{}", headers)
        assert (answer.status, refused(answer, below)) == (405, True), answer.body
    assert daemon.request("OPTIONS", path, None, headers).status == 204
    for unknown in (f"{path}/nothing", f"{path}/..%2f..%2fx", f"{path}/%00"):
        answer = daemon.request("POST", unknown, b"{}", headers)
        assert answer.status in (404, 405), answer.body  # an id of something stands in some of these places
        assert refused(answer, below), answer.body
    assert daemon.request("HEAD", path, None, headers).status == 405
    stranger = daemon.request("POST", path, b"{}", {**headers, "Origin": "https://evil.example"})
    assert (stranger.status, refused(stranger, below)) == (403, True), stranger.body


def test_what_is_no_http_is_refused_in_json_and_not_logged(daemon: RunningDaemon) -> None:
    for path, headers in (("/v1/models", {"Content-Encoding": "br"}), ("/v1/models/" + "x" * 9000, {})):
        answer = daemon.request("POST", path, b"{}", headers)
        assert (answer.status, answer.json()["code"]) == (400, "bad_body")
    assert "Traceback" not in daemon.log


def test_elsewhere_too(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem")["text"]
    for path, (_, headers, shape) in ROUTES.items():
        below = _google if path.startswith("/a2a") else shape
        for raw, more in ((b"{", {}), (b"{}", {"Content-Encoding": "gzip"})):
            answer = elsewhere.request(
                "POST", path, raw, certificate=False, token=issued, headers={**headers, **more}
            )
            assert answer.status in (400, 415) or (answer.status == 200 and shape is _rpc), answer.json
            assert shape(answer.json), answer.json
        unknown = elsewhere.request(
            "POST", f"{path}/nothing", {}, certificate=False, token=issued, headers=headers
        )
        assert unknown.status in (404, 405), unknown.json
        assert below(unknown.json), unknown.json


IDS = (
    "null", "1.5", "1e400", "true", "{}", "[]", "9999999999999999999999", '"' + "x" * 300 + '"',
)  # fmt: skip
FRAMES = {
    "": None,
    "x": -32700,
    "null": -32600,
    "[{}]": -32600,
    "{}": -32600,
    '{"jsonrpc": "1.0", "id": 1, "method": "ping"}': -32600,
    '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}': None,
    '{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": {}}}': None,
    '{"jsonrpc": "2.0", "id": 1, "method": "notifications/initialized"}': -32601,
    '{"jsonrpc": "2.0", "id": 2, "method": 7}': -32600,
    '{"jsonrpc": "2.0", "id": 3, "method": "nothing", "params": []}': -32602,
    '{"jsonrpc": "2.0", "id": "4", "method": "nothing"}': -32601,
    '{"jsonrpc": "2.0", "id": 5, "result": {}}': None,
    '{"jsonrpc": "2.0", "id": 5, "error": "x"}': -32600,
    **{
        f'{{"jsonrpc": "2.0", "id": {id}, "method": "ping"}}': -32700 if id == "1e400" else -32600
        for id in IDS
    },
}
"""Messages, and the number of the error that each gets: None for those that are answered by nobody."""
LAST = '{"jsonrpc": "2.0", "id": "last", "method": "nothing at all"}'


def _numbers(answers: list[dict[str, Any]]) -> list[int]:
    assert all(_rpc(one) for one in answers), answers
    assert answers.pop()["id"] == "last"
    return sorted(one["error"]["code"] for one in answers)


WANTED = sorted(number for number in FRAMES.values() if number is not None)


@pytest.mark.parametrize("command", ["mcp", "acp"])
def test_lines_that_are_no_messages_are_refused_one_by_one(daemon: RunningDaemon, command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rappd", command],
        env=daemon.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write("\n".join(FRAMES).encode() + b"\n\xff\xfe\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in [*WANTED, "not UTF-8"]]
        process.stdin.write(LAST.encode() + b"\n")
        process.stdin.flush()
        answers.append(json.loads(process.stdout.readline()))
        assert _numbers(answers) == sorted([*WANTED, -32700])
        process.stdin.close()
        assert process.wait(100) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()


def test_frames_that_are_no_messages_are_refused_one_by_one(daemon: RunningDaemon) -> None:
    async def talk() -> list[dict[str, Any]]:
        url = f"ws://127.0.0.1:{daemon.port}/acp"
        async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
            for frame in FRAMES:
                await socket.send_str(frame)
            await socket.send_bytes(b"\xff\xfe")  # frames of octets are passed over
            # The blank one is no blank line here.
            answers = [await socket.receive_json(timeout=100) for _ in [*WANTED, "blank"]]
            await socket.send_str(LAST)
            return [*answers, await socket.receive_json(timeout=100)]

    assert _numbers(asyncio.run(talk())) == sorted([*WANTED, -32700])


def test_what_is_not_there_is_the_editors_fault(daemon: RunningDaemon) -> None:
    async def talk() -> list[int]:
        url = f"ws://127.0.0.1:{daemon.port}/acp"
        found = []
        async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
            for method, params in (
                ("session/set_mode", {"sessionId": "s", "modeId": "twin/nobody"}),
                ("session/load", {"sessionId": "s", "cwd": "/tmp", "mcpServers": []}),
                ("session/prompt", {"sessionId": "s", "prompt": []}),
                ("session/prompt", {"sessionId": "s", "prompt": [{"type": "image", "data": "x"}]}),
            ):
                await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
                found.append((await socket.receive_json(timeout=100))["error"]["code"])
        return found

    assert asyncio.run(talk()) == [-32002, -32002, -32602, -32602]


def test_a_second_request_of_an_id_is_refused_and_the_first_answered(daemon: RunningDaemon) -> None:
    twice = '{"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}\n' * 2
    process = subprocess.run(
        [sys.executable, "-m", "rappd", "acp"],
        env=daemon.environment,
        input=twice.encode(),
        capture_output=True,
        timeout=100,
        check=True,
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    assert [one["id"] for one in answers] == [1, 1]
    assert sorted("error" in one for one in answers) == [False, True]
