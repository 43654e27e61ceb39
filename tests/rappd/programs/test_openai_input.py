"""Inputs of OpenAI's clients: instructions, parameters, pictures, conversations; and what bad input gets."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source

from tests.rappd.programs.test_openai_chat import chunks, complete, content, result, tool, user

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
PAGE = "https://page.example"
GUID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A daemon whose model is scripted, with one agent."""
    folder: Path = tmp_path_factory.mktemp("openai-input")
    found = RunningDaemon(
        folder / "home",
        OPENAI_BASE_URL=f"{model.url}/v1",
        OPENAI_MODEL="m",
        RAPPD_MODEL_HELP="never",
        RAPP_CORS_ORIGINS=PAGE,
    )
    found.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    yield found.start()
    found.stop()


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon without a model, with one agent."""
    found = RunningDaemon(tmp_path_factory.mktemp("openai-offline") / "home")
    found.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    yield found.start()
    found.stop()


def test_instructions_stand_behind_the_soul_and_replace_nothing(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    (daemon.home / "brainstem" / "soul.md").write_text("You are Desk, made of oak.")
    model.will()
    system = {"role": "system", "content": "You are a pirate."}
    complete(daemon, system, {"role": "developer", "content": "Speak in rhymes."}, user("hi"))
    found = model.system()
    places = [found.index(one) for one in ("made of oak", "pirate", "rhymes")]
    assert places == sorted(places)
    assert [one["role"] for one in model.asked[0]["messages"]] == ["system", "user"]


def test_parameters_reach_the_model_and_unknown_fields_are_ignored(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    model.will()
    given = {
        "temperature": 0.2,
        "max_tokens": 9,
        "stop": ["x"],
        "seed": 7,
        "response_format": {"type": "json_object"},
    }
    complete(daemon, user("hi"), **given, store=True, service_tier="auto", some_new_field={"a": 1})
    assert {key: model.asked[0].get(key) for key in given} == given
    assert "some_new_field" not in model.asked[0]


def test_a_picture_reaches_the_model(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("A cat."))
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": PNG}}]
    found = complete(daemon, {"role": "user", "content": parts})
    assert found["choices"][0]["message"]["content"] == "A cat."
    assert model.pictures() == [[PNG]]


def test_thoughts_and_agents_are_no_content(daemon: RunningDaemon, model: FakeModel) -> None:
    thinking = {"role": "assistant", "content": "<think>secret thought</think>The time is noon."}
    model.will(calls(("Clock", {})), thinking)
    found = chunks(daemon, user("time?"))
    assert content(found) == "The time is noon."
    model.will(calls(("Clock", {})), thinking)
    assert complete(daemon, user("time?"))["choices"][0]["message"]["content"] == "The time is noon."


def test_a_named_conversation_goes_on_without_its_history(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Hello Ann."), says("Ann."))
    complete(daemon, user("I am Ann."), headers={"X-Session-Id": "mine"})
    complete(daemon, user("Who am I?"), headers={"X-Session-Id": "mine"})
    assert [one["content"] for one in model.asked[1]["messages"][1:]] == [
        "I am Ann.",
        "Hello Ann.",
        "Who am I?",
    ]


def test_a_conversation_of_the_owners_goes_on_and_back(daemon: RunningDaemon, model: FakeModel) -> None:
    """The page's program names the session of ``/chat``."""
    model.will(says("Hello."), says("Still here."))
    session = daemon.chat("first on the page")["session_id"]
    found = complete(daemon, user("then here"), metadata={"session_id": session})
    assert found["rappd"]["session_id"] == session
    assert [one["content"] for one in model.asked[1]["messages"][1:]] == [
        "first on the page",
        "Hello.",
        "then here",
    ]


def test_a_user_that_is_a_guid_names_the_memory(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("ManageMemory", {"memory_type": "fact", "content": "Likes tea."})), says("Noted."))
    complete(daemon, user("remember that I like tea"), user=GUID)
    assert list(daemon.data.rglob(f"*{GUID[:8]}*")), "a memory of that person's"


def test_tool_choice_reaches_the_model_with_the_programs_tools_alone(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    model.will(calls(("weather", {})))
    named = {"type": "function", "function": {"name": "weather"}}
    complete(daemon, user("hi"), tools=[tool("weather"), tool("other")], tool_choice=named)
    assert (model.tools(), model.asked[0]["tool_choice"]) == (["weather", "other"], named)
    model.will(says("no call"))
    complete(daemon, user("hi"), tools=[tool("weather")], tool_choice="none")
    assert "weather" not in model.tools()
    assert "Clock" in model.tools()


def test_without_a_model_tools_are_left_aside_with_a_notice(without_model: RunningDaemon) -> None:
    found = complete(without_model, user("what does the clock say?"), tools=[tool("bash", "command")])
    assert found["choices"][0]["message"]["content"] == "(no model) noon"
    assert "1 tool" in found["rappd"]["notice"] or "tool of the program" in found["rappd"]["notice"]
    refused = complete(without_model, user("hi"), tools=[tool("bash")], tool_choice="required", status=400)
    assert refused["error"]["code"] == "tools_need_model"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}],
                    }
                ]
            },
            "messages[0].content[0]",
        ),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0]"),
        ({"tools": "all"}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0]"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "nobody"}}}, "tool_choice"),
        ({"model": 7}, "model"),
    ],
)
def test_unfit_requests_name_the_field(
    daemon: RunningDaemon, model: FakeModel, fields: Any, named: str
) -> None:
    model.will()
    body = {"model": "brainstem", "messages": [user("hi")], **fields}
    answer = daemon.post("/v1/chat/completions", body)
    error = answer.json()["error"]
    assert (answer.status, error["param"], error["type"]) == (400, named, "invalid_request_error")
    assert not model.asked


@pytest.mark.parametrize("model_id", ["gpt-4o", "twin/nobody", "Clock", "../x", "LearnNew"])
def test_an_unknown_model_is_not_found_and_the_known_ones_are_named(
    daemon: RunningDaemon, model_id: str
) -> None:
    found = complete(daemon, user("hi"), model=model_id, status=404)
    assert "brainstem" in found["error"]["message"]
    assert daemon.get(f"/v1/models/{model_id.replace('/', '%2F')}").status == 404


def test_results_for_some_calls_alone_are_refused(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("a", {}), ("b", {})), says("Both."))
    message = complete(daemon, user("x"), tools=[tool("a"), tool("b")])["choices"][0]["message"]
    first, second = message["tool_calls"]
    assert (
        complete(daemon, user("x"), message, result(first, "1"), status=400)["error"]["code"]
        == "missing_result"
    )
    both = complete(daemon, user("x"), message, result(first, "1"), result(second, "2"))
    assert both["choices"][0]["message"]["content"] == "Both."


def test_results_of_another_user_are_not_found(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("a", {})))
    message = complete(daemon, user("x"), tools=[tool("a")])["choices"][0]["message"]
    again = [user("x"), message, result(message["tool_calls"][0], "1")]
    assert complete(daemon, *again, user=GUID, status=404)["error"]["code"] == "no_such_call"


def test_a_page_of_another_site_cannot_ask(daemon: RunningDaemon) -> None:
    body = {"model": "brainstem", "messages": [user("hi")]}
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert daemon.post("/v1/chat/completions", body, headers=headers).status == 403
        assert daemon.post("/v1/responses", {"input": "hi"}, headers=headers).status == 403


def test_a_structural_agent_is_not_offered(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("LearnNew", {"description": "x"})), says("done"))
    complete(daemon, user("learn something"))
    assert "LearnNew" not in model.tools(0)
    assert "not found" in model.results(1)["LearnNew"]


def test_other_ways_are_named_where_there_is_none(daemon: RunningDaemon) -> None:
    answer = daemon.post("/v1/messages", {"model": "brainstem", "messages": []})
    assert (answer.status, answer.json()["type"]) == (404, "error")
    assert "/v1/chat/completions" in answer.json()["error"]["message"]


def test_vectors_are_the_model_servers_or_nobodys(
    daemon: RunningDaemon, without_model: RunningDaemon
) -> None:
    answer = without_model.post("/v1/embeddings", {"model": "e", "input": "x"})
    assert (answer.status, answer.json()["error"]["code"]) == (404, "no_model_server")
    found = daemon.post("/v1/embeddings", {"model": "e", "input": "x"})
    assert found.json()["data"][0]["embedding"] == [0.5, 0.25]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_hanging_up_stops_the_model(daemon: RunningDaemon, model: FakeModel, path: str, stream: bool) -> None:
    model.will()
    model.hang = True
    model.reached.clear()
    model.hung_up.clear()
    body = {"model": "brainstem", "messages": [user("hi")], "input": "hi", "stream": stream}
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    try:
        assert model.reached.wait(100)
        connection.close()
        assert model.hung_up.wait(100)
    finally:
        model.hang = False


def test_a_page_on_the_list_may_ask_with_openais_own_library(daemon: RunningDaemon) -> None:
    preflight = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    allowed = daemon.request("OPTIONS", "/v1/chat/completions", None, preflight)
    assert allowed.status == 204
    headers = set(allowed.headers["access-control-allow-headers"].lower().split(", "))
    assert {"authorization", "content-type", "x-session-id", "x-stainless-retry-count"} <= headers


LEGAL: dict[str, dict[str, Any]] = {
    "an answer begun by the client": {"messages": [user("hi"), {"role": "assistant", "content": "Sure, "}]},
    "instructions alone": {"messages": [{"role": "developer", "content": "Say hi."}]},
    "a thousand messages": {
        "messages": [
            *(
                one
                for at in range(500)
                for one in (user(f"q{at}"), {"role": "assistant", "content": f"a{at}"})
            ),
            user("hi"),
        ]
    },
    "two hundred tools": {"tools": [tool(f"t{at}") for at in range(200)]},
    "a tool twice, and an agent's name": {"tools": [tool("weather"), tool("weather"), tool("Clock")]},
    "broken schemas": {
        "tools": [
            {"type": "function", "function": {"name": "a", "parameters": {"type": "odd", "properties": 7}}},
            {"type": "function", "function": {"name": "b"}},
            {"type": "function", "function": {"name": "c", "parameters": None}},
        ]
    },
    "calls that are nobody's": {
        "messages": [
            user("hi"),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_x", "type": "function", "function": {"name": "f", "arguments": "{no"}}
                ],
            },
            {"role": "tool", "tool_call_id": "call_x", "content": "sunny"},
            {"role": "tool", "tool_call_id": "call_y", "content": "none"},
            user("and now?"),
        ]
    },
    "the older functions": {
        "messages": [
            user("hi"),
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "x"},
            user("and now?"),
        ],
        "functions": [{"name": "f", "parameters": {}}],
        "function_call": "auto",
    },
    "fields that say nothing": {
        "n": 1,
        "logprobs": False,
        "top_logprobs": 0,
        "max_tokens": 0,
        "stop": None,
        "tools": [],
        "tool_choice": None,
        "metadata": None,
        "modalities": ["text"],
        "stream_options": {"include_usage": True},
        "service_tier": "flex",
        "store": False,
        "user": "",
    },
}
"""Requests that no rule forbids, however odd."""


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_odd_and_legal_is_answered(
    daemon: RunningDaemon, model: FakeModel, name: str, stream: bool
) -> None:
    model.will(says("Fine."))
    body = {"model": "brainstem", "messages": [user("hi")], **LEGAL[name], "stream": stream}
    answer = daemon.post("/v1/chat/completions", body)
    assert (answer.status, b"Fine." in answer.body, b'"error"' in answer.body) == (200, True, False), (
        answer.body
    )
