"""Responses over a ``kill -9`` of the daemon: one answer or one honest error, never two performances."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon

pytestmark = pytest.mark.own_process

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


class HalfSaid(FakeModel):
    """Says the beginning of an answer, and then nothing while ``hang`` is set."""

    async def _stream(
        self, request: web.Request, model: str, message: dict[str, Any], usage: dict[str, int]
    ) -> web.StreamResponse:
        if not self.hang_after:
            return await super()._stream(request, model, message, usage)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        chunk = {"choices": [{"index": 0, "delta": {"content": "The beginning, "}}]}
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await asyncio.Event().wait()
        return response

    def __init__(self) -> None:
        super().__init__()
        self.hang_after = False


@pytest.fixture
def model() -> Any:
    server = HalfSaid()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon], model: HalfSaid) -> RunningDaemon:
    made = make_daemon(OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never")
    return made.start()


def test_killed_before_the_answer_and_asked_again(daemon: RunningDaemon, model: HalfSaid) -> None:
    model.hang = True
    body = {"model": "brainstem", "input": "do it once"}
    asking = threading.Thread(target=_ask, args=(daemon, body))
    asking.start()
    assert model.reached.wait(100)
    daemon.kill()
    asking.join(100)
    model.hang = False
    daemon.start()
    again = [daemon.post("/v1/responses", body, headers={"x-stainless-retry-count": "1"}) for _ in range(2)]
    assert [one.status for one in again] == [500, 500]
    assert again[0].json()["error"]["code"] == "interrupted"
    assert len(model.asked) == 1


def test_killed_in_mid_stream_the_response_says_so(daemon: RunningDaemon, model: HalfSaid) -> None:
    model.hang_after = True
    model.will(says("never"))
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    body = json.dumps({"model": "brainstem", "input": "a long story", "stream": True})
    connection.request("POST", "/v1/responses", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    created = _event(response)
    while _event(response)["type"] != "response.output_text.delta":
        pass
    daemon.kill()
    model.hang_after = False
    daemon.start()
    path = f"/v1/responses/{created['response']['id']}"
    found = daemon.get(path).json()
    assert (found["status"], found["error"]["code"]) == ("failed", "interrupted")
    last, end = daemon.get(f"{path}?stream=true").body.decode().strip().split("\n\n")[-2:]
    assert last.startswith("event: response.failed")
    assert end == "data: [DONE]"
    assert len(model.asked) == 1


def test_who_goes_on_reading_after_a_restart_hears_the_end(daemon: RunningDaemon, model: HalfSaid) -> None:
    """The record makes fewer events than were streamed, of which the reader may have had more."""
    model.will(says("In many pieces."))
    whole = daemon.post("/v1/responses", {"model": "brainstem", "input": "hi"}).json()["id"]
    model.hang = True
    model.reached.clear()
    body = {"model": "brainstem", "input": "do it once", "background": True}
    cut = daemon.post("/v1/responses", body).json()["id"]
    assert model.reached.wait(100)
    daemon.kill()
    model.hang = False
    daemon.start()
    for id, end in ((whole, "response.completed"), (cut, "response.failed")):
        told = daemon.get(f"/v1/responses/{id}?stream=true&starting_after=40").body.decode()
        events = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: {")]
        assert [(one["type"], one["sequence_number"]) for one in events] == [(end, 41)]


def test_a_turn_waits_for_its_results_over_a_kill(daemon: RunningDaemon, model: HalfSaid) -> None:
    model.will(calls(("weather", {})), says("Sunny."))
    first = daemon.post("/v1/responses", {"model": "brainstem", "input": "w?", "tools": [WEATHER]}).json()
    daemon.kill()
    daemon.start()
    output = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "sun"}
    body = {"model": "brainstem", "input": [output], "previous_response_id": first["id"], "tools": [WEATHER]}
    found = [daemon.post("/v1/responses", body).json() for _ in range(2)]
    assert [one["output"][0]["content"][0]["text"] for one in found] == ["Sunny.", "Sunny."]
    assert [one["content"] for one in model.asked[1]["messages"] if one["role"] == "tool"] == ["sun"]
    assert len(model.asked) == 2


def _ask(daemon: RunningDaemon, body: dict[str, Any]) -> None:
    try:
        daemon.post("/v1/responses", body)
    except (OSError, http.client.HTTPException):
        return


def _event(response: http.client.HTTPResponse) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while (line := response.readline().strip()) or not found:
        if line.startswith(b"data: {"):
            found = json.loads(line[6:])
    return found


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_a_stop_ends_the_stream_with_an_error_event(
    daemon: RunningDaemon, model: HalfSaid, path: str
) -> None:
    model.hang_after = True
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    body = {"model": "brainstem", "input": "a story", "messages": [{"role": "user", "content": "a story"}]}
    connection.request(
        "POST", path, json.dumps({**body, "stream": True}), {"Content-Type": "application/json"}
    )
    response = connection.getresponse()
    while b"The beginning" not in response.readline():
        pass
    daemon.stop()
    last = [line for line in response.read().splitlines() if line.startswith(b"data: {")][-1]
    found = json.loads(last[6:])
    error = found["error"] if path == "/v1/chat/completions" else found["response"]["error"]
    assert error["code"] in ("stopping", "stopped"), found
