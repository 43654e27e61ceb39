"""Chat completions with a scripted model: answers, streams, the program's own tools, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source


def tool(name: str, *needs: str) -> dict[str, Any]:
    """A tool of the program's, with text parameters."""
    schema = {
        "type": "object",
        "properties": {one: {"type": "string"} for one in needs},
        "required": [*needs],
    }
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": schema}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def result(call: dict[str, Any], text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A daemon whose model is scripted, with one agent."""
    folder: Path = tmp_path_factory.mktemp("openai")
    found = RunningDaemon(
        folder / "home", OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never"
    )
    found.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    yield found.start()
    found.stop()


def complete(daemon: RunningDaemon, *messages: dict[str, Any], status: int = 200, **more: Any) -> Any:
    headers = more.pop("headers", {})
    body = {"model": "brainstem", "messages": [*messages], **more}
    answer = daemon.post("/v1/chat/completions", body, headers=headers)
    assert answer.status == status, answer.body
    return answer.json()


def chunks(daemon: RunningDaemon, *messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, without the end mark, which has to be there."""
    body = {"model": "brainstem", "messages": [*messages], "stream": True, **more}
    lines = daemon.post("/v1/chat/completions", body).body.decode().split("\n\n")
    said = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert said.pop() == "[DONE]"
    return [json.loads(one) for one in said]


def content(found: list[dict[str, Any]]) -> str:
    return "".join(c["delta"].get("content") or "" for one in found for c in one["choices"])


def test_an_answer_has_text_tokens_and_its_conversation(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Hello."))
    found = complete(daemon, user("hi"))
    choice = found["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hello.", "stop")
    assert found["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert found["model"] == "brainstem"
    assert found["rappd"]["session_id"].startswith("program:openai:")


def test_a_stream_has_the_same_text_in_pieces_and_tokens_where_they_are_asked_for(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    model.will(says("Hello you."))
    model.pieces = ["Hello ", "you."]
    found = chunks(daemon, user("hi"), stream_options={"include_usage": True})
    model.pieces = []
    assert content(found) == "Hello you."
    assert found[-1]["choices"] == []
    assert found[-1]["usage"]["total_tokens"] == 10
    assert found[-2]["choices"][0]["finish_reason"] == "stop"


def test_a_call_of_the_programs_tool_comes_back_and_its_result_goes_to_the_model(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    model.will(calls(("weather", {"place": "Rome"})), says("Sunny in Rome."))
    asked = [user("weather in Rome?")]
    first = complete(daemon, *asked, tools=[tool("weather", "place")])
    assert {"Clock", "weather"} <= set(model.tools(0))
    choice = first["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    call = choice["message"]["tool_calls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "weather",
        {"place": "Rome"},
    )
    second = complete(
        daemon, *asked, choice["message"], result(call, "sun"), tools=[tool("weather", "place")]
    )
    assert second["choices"][0]["message"]["content"] == "Sunny in Rome."
    assert [one["content"] for one in model.asked[1]["messages"] if one["role"] == "tool"] == ["sun"]
    assert second["rappd"]["session_id"] == first["rappd"]["session_id"]


def test_agents_that_ran_before_the_call_are_in_the_conversation_that_goes_on(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    """The program never saw them."""
    model.will(
        calls(("Clock", {})), calls(("weather", {"place": "Rome"}), text="Let me look."), says("Both known.")
    )
    asked = [user("time and weather?")]
    message = complete(daemon, *asked, tools=[tool("weather", "place")])["choices"][0]["message"]
    assert [one["function"]["name"] for one in message["tool_calls"]] == ["weather"]
    complete(
        daemon, *asked, message, result(message["tool_calls"][0], "sun"), tools=[tool("weather", "place")]
    )
    roles = [(one["role"], one.get("content")) for one in model.asked[2]["messages"][1:]]
    assert roles == [
        ("user", "time and weather?"),
        ("assistant", ""),
        ("tool", "noon"),
        ("assistant", "Let me look."),
        ("tool", "sun"),
    ]


def test_a_tool_with_an_agents_name_is_told_apart(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("Clock_2", {})), says("done"))
    asked = [user("which time?")]
    message = complete(daemon, *asked, tools=[tool("Clock")])["choices"][0]["message"]
    assert {"Clock", "Clock_2"} <= set(model.tools(0))
    call = message["tool_calls"][0]
    assert call["function"]["name"] == "Clock"
    complete(daemon, *asked, message, result(call, "one"), tools=[tool("Clock")])
    sent = model.asked[1]["messages"]
    assert [c["function"]["name"] for one in sent for c in one.get("tool_calls", ())] == ["Clock_2"]


def test_results_that_come_twice_get_the_recorded_answer(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("weather", {"place": "Rome"})), says("once"), says("twice"))
    message = complete(daemon, user("w?"), tools=[tool("weather")])["choices"][0]["message"]
    again = [user("w?"), message, result(message["tool_calls"][0], "sun")]
    texts = [complete(daemon, *again)["choices"][0]["message"]["content"] for _ in range(2)]
    assert texts == ["once", "once"]
    assert len(model.asked) == 2


def test_results_for_a_call_that_nobody_made_are_not_found(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will()
    call = {"id": f"call_{'ab' * 16}c0", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    asked = [user("w?"), {"role": "assistant", "tool_calls": [call]}, result(call, "sun")]
    found = complete(daemon, *asked, status=404)
    assert found["error"]["code"] == "no_such_call"
    assert not model.asked


def test_a_model_that_is_gone_when_the_results_come_is_no_reason_to_lose_them(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    model.will(calls(("weather", {"place": "Rome"})))
    message = complete(daemon, user("w?"), tools=[tool("weather")])["choices"][0]["message"]
    model.status = 500
    try:
        found = complete(daemon, user("w?"), message, result(message["tool_calls"][0], "sunny"))
    finally:
        model.status = 200
    assert "sunny" in found["choices"][0]["message"]["content"]
    assert found["rappd"]["notice"]
