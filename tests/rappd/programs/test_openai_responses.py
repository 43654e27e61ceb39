"""Responses with a scripted model: items, events, what is stored, and going on with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

from envelopes.envelope import Envelope
from rappd.dispatch.dispatcher import Dispatcher

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A daemon whose model is scripted, with one agent."""
    folder: Path = tmp_path_factory.mktemp("responses")
    found = RunningDaemon(
        folder / "home", OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never"
    )
    found.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    yield found.start()
    found.stop()


def create(daemon: RunningDaemon, input: Any, status: int = 200, headers: Any = None, **more: Any) -> Any:
    body = {"model": "brainstem", "input": input, **more}
    answer = daemon.post("/v1/responses", body, headers=headers or {})
    assert answer.status == status, answer.body
    return answer.json()


def events(answer: Answer) -> list[dict[str, Any]]:
    """The events, whose names and numbers have to fit, and whose end is marked."""
    found: list[dict[str, Any]] = []
    *blocks, end = answer.body.decode().strip().split("\n\n")
    assert end == "data: [DONE]"
    for block in blocks:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == len(found)
        found.append(event)
    return found


def text_of(response: dict[str, Any]) -> str:
    return "".join(
        p["text"] for item in response["output"] if item["type"] == "message" for p in item["content"]
    )


def said(model: FakeModel, number: int = -1) -> list[tuple[str, Any]]:
    """Roles and texts that a request had, without the system text."""
    return [
        (one["role"], one["content"]) for one in model.asked[number]["messages"] if one["role"] != "system"
    ]


def thread_of(daemon: RunningDaemon, title: str) -> str:
    """The conversation of that title on the list of programs' conversations, "" without."""
    with daemon.control() as ask:
        listed = ask("GET", "/programs/conversations?protocol=openai").json()["conversations"]
    return next((one["id"] for one in listed if one["title"] == title), "")


def turns_of(daemon: RunningDaemon, thread: str) -> list[dict[str, Any]]:
    with daemon.control() as ask:
        found: list[dict[str, Any]] = ask("GET", f"/conversations/{thread}").json()["turns"]
    return found


def test_a_response_is_whole(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Hello there, you."))
    found = create(daemon, "hi", instructions="Be brief.", metadata={"a": "b"})
    assert found["status"] == "completed"
    assert text_of(found) == "Hello there, you."
    assert found["usage"]["total_tokens"] == 10
    assert (found["instructions"], found["metadata"], found["store"]) == ("Be brief.", {"a": "b"}, True)
    assert "Be brief." in model.system()
    assert model.system().index("Be brief.") > 0, "behind the soul"


def test_a_stream_has_named_numbered_events(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Hello you."))
    model.pieces = ["Hello ", "you."]
    body = {"model": "brainstem", "input": "hi", "stream": True}
    found = events(daemon.post("/v1/responses", body))
    model.pieces = []
    assert [one["type"].removeprefix("response.") for one in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert text_of(found[-1]["response"]) == "Hello you."


@pytest.mark.parametrize("query", ["", "?stream=true"])
def test_a_response_that_ends_as_it_is_asked_for_is_found(
    daemon: RunningDaemon, model: FakeModel, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """The turn ends between a look into the record, which has no answer yet, and one at what is under way."""
    model.will(says("never"))
    model.hang = True
    id = create(daemon, "think", background=True)["id"]
    recorded = Dispatcher.recorded

    async def before_its_end(self: Dispatcher, sender: str, turn: str) -> Envelope | None:
        found = await recorded(self, sender, turn)
        if (running := self.running(sender, turn)) is not None:
            running.cancel()
            await running.over_within(None)
        return found

    monkeypatch.setattr(Dispatcher, "recorded", before_its_end)
    answer = daemon.get(f"/v1/responses/{id}{query}")
    model.hang = False
    assert answer.status == 200, answer.body
    if query:
        assert events(answer)[-1]["type"] == "response.failed"
    else:
        assert answer.json()["status"] == "cancelled"


def test_a_call_comes_as_an_item_and_goes_on_by_the_previous_response(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    model.will(calls(("Clock", {})), calls(("weather", {"place": "Rome"})), says("Sunny at noon."))
    first = create(daemon, "weather and time?", tools=[WEATHER])
    call = first["output"][0]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == (
        "function_call",
        "weather",
        {"place": "Rome"},
    )
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"}
    second = create(daemon, [output], previous_response_id=first["id"], tools=[WEATHER])
    assert text_of(second) == "Sunny at noon."
    assert said(model, 2) == [
        ("user", "weather and time?"),
        ("assistant", ""),
        ("tool", "noon"),
        ("assistant", ""),
        ("tool", "sun"),
    ]


def test_a_streamed_call_has_its_own_events(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("weather", {"place": "Rome"})))
    body = {"model": "brainstem", "input": "w?", "stream": True, "tools": [WEATHER]}
    found = events(daemon.post("/v1/responses", body))
    kinds = [one["type"].removeprefix("response.") for one in found[2:]]
    assert kinds == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert found[-1]["response"]["output"][0]["status"] == "completed"


def test_the_previous_response_is_the_conversation_so_far(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Hello Ann."), says("Ann."), says("Bob."))
    first = create(daemon, "I am Ann.")
    second = create(daemon, "Who am I?", previous_response_id=first["id"])
    create(daemon, "Say Bob.", previous_response_id=first["id"])
    assert said(model, 1) == [("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]
    assert said(model, 2)[-1] == ("user", "Say Bob."), "another course of the same conversation"
    assert len(said(model, 2)) == 3
    assert second["rappd"]["session_id"] == first["rappd"]["session_id"]


def test_a_stored_response_is_found_and_taken_off(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Kept."))
    made = create(daemon, "keep this sentence")
    path = f"/v1/responses/{made['id']}"
    shown = daemon.get(path).json()
    assert (shown["id"], text_of(shown), shown["status"]) == (made["id"], "Kept.", "completed")
    thread = thread_of(daemon, "keep this sentence")
    removed = {"id": made["id"], "object": "response.deleted", "deleted": True}
    assert daemon.request("DELETE", path).json() == removed
    assert daemon.get(path).status == 404
    create(daemon, "and?", previous_response_id=made["id"], status=404)
    assert not thread_of(daemon, "keep this sentence")
    assert turns_of(daemon, thread)[0]["text"] == "Kept.", "the record has it"


def test_what_is_not_to_be_stored_cannot_be_fetched(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Gone."))
    made = create(daemon, "do not keep", store=False)
    assert daemon.get(f"/v1/responses/{made['id']}").status == 404


def test_a_repeat_by_its_key_gets_the_one_answer(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("one"), says("two"))
    found = [create(daemon, "hi", headers={"Idempotency-Key": "k-1"}) for _ in range(2)]
    assert [text_of(one) for one in found] == ["one", "one"]
    assert found[0]["id"] == found[1]["id"]
    assert len(model.asked) == 1


def test_a_library_that_says_it_repeats_gets_the_one_answer(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("one"), says("two"), says("three"))
    first = create(daemon, "again and again")
    repeated = create(daemon, "again and again", headers={"x-stainless-retry-count": "1"})
    anew = create(daemon, "again and again", headers={"x-stainless-retry-count": "0"})
    assert [text_of(one) for one in (first, repeated, anew)] == ["one", "one", "two"]


def test_an_item_that_is_only_referred_to_is_found(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Hello Ann."), says("Ann."))
    first = create(daemon, "I am Ann.")
    item = {"type": "item_reference", "id": first["output"][0]["id"]}
    create(daemon, [{"role": "user", "content": "I am Ann."}, item, {"role": "user", "content": "Who am I?"}])
    assert said(model) == [("user", "I am Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]


def test_work_behind_is_looked_at_until_it_is_done(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("Done behind."))
    made = create(daemon, "slowly", background=True)
    assert made["status"] == "in_progress"
    path = f"/v1/responses/{made['id']}"
    daemon.wait_for(lambda: daemon.get(path).json()["status"] == "completed")
    again = events(daemon.get(f"{path}?stream=true"))
    assert text_of(again[-1]["response"]) == "Done behind."


def test_calls_whose_results_never_came_are_left_out(daemon: RunningDaemon, model: FakeModel) -> None:
    """A model server would refuse them."""
    model.will(calls(("weather", {"place": "Rome"}), text="Let me look."), says("Fine."))
    first = create(daemon, "w?", tools=[WEATHER])
    create(daemon, "never mind", previous_response_id=first["id"])
    assert said(model) == [("user", "w?"), ("assistant", "Let me look."), ("user", "never mind")]
    assert not any(one.get("tool_calls") for one in model.asked[1]["messages"])


def test_results_with_a_sentence_behind_them_follow_their_calls(
    daemon: RunningDaemon, model: FakeModel
) -> None:
    """A result without its call is refused by model servers."""
    model.will(calls(("weather", {"place": "Rome"})), says("Sunny, so no."), says("Yes."))
    first = create(daemon, "an umbrella for Rome?", tools=[WEATHER])
    id = first["output"][0]["call_id"]
    results = [{"type": "function_call_output", "call_id": id, "output": "sun"}]
    more = [*results, {"role": "user", "content": "do I need it?"}]
    second = create(daemon, more, previous_response_id=first["id"], tools=[WEATHER])
    create(daemon, "Sure?", previous_response_id=second["id"])
    for number in (1, 2):
        messages = [one for one in model.asked[number]["messages"] if one["role"] != "system"]
        assert [one["role"] for one in messages][:4] == ["user", "assistant", "tool", "user"]
        assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] == id
        assert messages[3]["content"] == "do I need it?"
    turns = turns_of(daemon, thread_of(daemon, "an umbrella for Rome?"))
    assert turns[1]["user"] == "weather: sun\n\ndo I need it?"
    foreign = [{**results[0], "call_id": f"{id[:-1]}9"}, more[1]]
    assert create(daemon, foreign, 404, previous_response_id=first["id"])["error"]["code"] == "no_such_call"


def test_a_conversation_is_listed_while_a_turn_of_it_is_left(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("One."), says("Two."))
    first = create(daemon, "keep what is left")
    second = create(daemon, "and this", previous_response_id=first["id"])
    assert daemon.request("DELETE", f"/v1/responses/{second['id']}").status == 200
    assert thread_of(daemon, "keep what is left")
    assert daemon.request("DELETE", f"/v1/responses/{first['id']}").status == 200
    assert not thread_of(daemon, "keep what is left")


def test_what_is_under_way_is_cancelled_before_it_is_deleted(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(says("never"))
    model.hang = True
    model.reached.clear()
    made = create(daemon, "slowly", background=True)
    path = f"/v1/responses/{made['id']}"
    try:
        assert model.reached.wait(100)
        assert daemon.request("DELETE", path).status == 409
        assert daemon.post(f"{path}/cancel").json()["status"] == "cancelled"
    finally:
        model.hang = False
    assert daemon.get(path).json()["status"] == "cancelled"
    assert daemon.request("DELETE", path).status == 200


def test_both_sides_of_a_call_stand_in_the_record(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("weather", {"place": "Oslo"})), says("Rainy."))
    first = create(daemon, "weather in Oslo?", tools=[WEATHER])
    output = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "rain"}
    create(daemon, [output], previous_response_id=first["id"])
    turns = turns_of(daemon, thread_of(daemon, "weather in Oslo?"))
    assert [(one["user"], one["text"]) for one in turns] == [
        ("weather in Oslo?", '→ weather {"place":"Oslo"}'),
        ("weather: rain", "Rainy."),
    ]


def test_a_repeat_after_a_refusal_is_begun_anew(daemon: RunningDaemon, model: FakeModel) -> None:
    """Such as one that its program did not wait for."""
    model.will()
    model.hang = True
    model.reached.clear()
    made = create(daemon, "patience", background=True)
    assert model.reached.wait(100)
    assert daemon.post(f"/v1/responses/{made['id']}/cancel").json()["status"] == "cancelled"
    model.hang = False
    model.will(says("here"))
    again = create(daemon, "patience", background=True, headers={"x-stainless-retry-count": "1"})
    assert again["id"] != made["id"]
    daemon.wait_for(lambda: daemon.get(f"/v1/responses/{again['id']}").json()["status"] == "completed")
