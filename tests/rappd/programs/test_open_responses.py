"""The checks by which Open Responses tells a server, in our own words: each answer and event fits the published models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.client_programs import run_python
from fixtures.loopback_server import FakeModel, Message, calls, says
from fixtures.running_daemon import RunningDaemon

HEART = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    },
}
CALLS = calls(("get_weather", {"place": "Rome"}))
CHECK = """
import json, typing
import openresponses_types as published
kinds = {}
for name in dir(published):
    if name.endswith("StreamingEvent"):
        kind = getattr(published, name).model_fields["type"].annotation
        kinds[(typing.get_args(kind) or [one.value for one in kind])[0]] = getattr(published, name)
found = json.loads(ANSWERS)
for one in found:
    model = kinds[one["type"]] if "type" in one else published.ResponseResource
    model.model_validate_json(json.dumps(one))
print("whole", len(found))
"""


def said(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


ASKS: dict[str, tuple[Any, Message]] = {
    "text": ([said("user", "Greet me in three words.")], says("Good morning, friend.")),
    "system": ([said("system", "Talk as a pirate."), said("user", "Greet me.")], says("Ahoy.")),
    "tool": ([said("user", "How is the weather in Rome?")], CALLS),
    "picture": (
        [
            said(
                "user",
                [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": HEART},
                ],
            )
        ],
        says("A heart."),
    ),
    "several turns": (
        [said("user", "I am Ann."), said("assistant", "Hello Ann."), said("user", "Who am I?")],
        says("Ann."),
    ),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningDaemon, FakeModel]]:
    model = FakeModel()
    model.start()
    home = tmp_path_factory.mktemp("open-responses") / "home"
    daemon = RunningDaemon(
        home, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never"
    )
    yield daemon.start(), model
    daemon.stop()
    model.stop()


def _ask(daemon: RunningDaemon, name: str, **more: Any) -> bytes:
    tools = {"tools": [WEATHER]} if name == "tool" else {}
    answer = daemon.post("/v1/responses", {"model": "brainstem", "input": ASKS[name][0], **tools, **more})
    assert answer.status == 200, answer.body
    return answer.body


def _fit(found: list[dict[str, Any]]) -> None:
    ran = run_python("open-responses", f"ANSWERS = {json.dumps(found)!r}\n{CHECK}")
    assert ran.stdout == f"whole {len(found)}\n", ran.stderr[-3000:]


def test_answers_fit_the_published_model(both: tuple[RunningDaemon, FakeModel]) -> None:
    daemon, model = both
    found = {}
    for name, (_, scripted) in ASKS.items():
        model.will(scripted)
        found[name] = json.loads(_ask(daemon, name))
    first = found["several turns"]["id"]
    model.will(says("Ann, as you said."))
    body = {"model": "brainstem", "input": "And again?", "previous_response_id": first}
    found["continued"] = daemon.post("/v1/responses", body).json()
    assert model.asked[0]["messages"][-2]["content"] == "Ann."
    for name, one in found.items():
        assert one["status"] == "completed", name
        assert one["output"][-1]["type"] == ("function_call" if name == "tool" else "message"), name
    _fit(list(found.values()))


def test_events_fit_the_published_models(both: tuple[RunningDaemon, FakeModel]) -> None:
    daemon, model = both
    found = []
    for name, (_, scripted) in ASKS.items():
        model.will(scripted)
        lines = [
            one[6:] for one in _ask(daemon, name, stream=True).decode().splitlines() if one[:6] == "data: "
        ]
        assert lines.pop() == "[DONE]"
        events = [json.loads(one) for one in lines]
        kinds = [one["type"] for one in events]
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
        assert [one["sequence_number"] for one in events] == sorted(
            {one["sequence_number"] for one in events}
        )
        if name == "tool":
            arguments = "response.function_call_arguments"
            assert {f"{arguments}.delta", f"{arguments}.done"} <= set(kinds)
            items = [one["item"]["type"] for one in events if "item" in one]
            assert items == ["function_call", "function_call"]
        found += [*events, events[-1]["response"]]
    _fit(found)
