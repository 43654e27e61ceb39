"""Turns with what model servers really send: through the daemon, over raw bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from fixtures.loopback_server import LoopbackServer
from fixtures.running_daemon import RunningDaemon, agent_source

CALL = '{"name": "Note", "arguments": {"text": "one"}}'


class RawModel(LoopbackServer):
    """A model server that sends scripted bytes, each with its status; the last of them repeats."""

    def __init__(self) -> None:
        super().__init__()
        self.script: list[tuple[int, bytes, dict[str, str]]] = []
        self.asked: list[dict[str, Any]] = []

    def will(self, *answers: bytes | tuple[int, bytes, dict[str, str]]) -> None:
        """Sets the next answers; what was asked so far is forgotten."""
        self.script = [one if isinstance(one, tuple) else (200, one, {}) for one in answers]
        self.asked.clear()

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        status, octets, headers = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return web.Response(status=status, body=octets, headers=headers, content_type="text/event-stream")


def events(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"


def note(arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Note", "arguments": arguments}}]}


@pytest.fixture
def model() -> Iterator[RawModel]:
    server = RawModel()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def desk(make_daemon: Callable[..., RunningDaemon], model: RawModel) -> RunningDaemon:
    daemon = make_daemon(
        OPENAI_BASE_URL=f"{model.url}/v1",
        OPENAI_MODEL="m",
        RAPPD_RESULT_CHARACTERS="2000",
        RAPPD_MODEL_HELP="never",
    )
    daemon.drop("note_agent.py", agent_source("Note", 'return "noted " + repr(kwargs)', "Notes a text."))
    daemon.drop("long_agent.py", agent_source("Long", 'return "a" * 300_000 + "the end"', "Says much."))
    daemon.drop("slow_agent.py", agent_source("Slow", 'yield "one "; yield "two "; yield "three"', "Yields."))
    return daemon.start()


def streamed(daemon: RunningDaemon, sentence: str) -> list[dict[str, Any]]:
    answer = daemon.post("/chat/stream", {"user_input": sentence})
    return [json.loads(line[5:]) for line in answer.body.decode().split("\n") if line.startswith("data:")]


def shown(found: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in found if event["type"] == "delta")


def test_no_error_silences_the_model_and_each_is_told_in_the_servers_words(
    desk: RunningDaemon, model: RawModel
) -> None:
    wait = {"Retry-After": "50"}
    for answer, told in [
        (
            (429, b'{"error": {"message": "slow down"}}', wait),
            "“slow down”. It asks to wait 50 s. Replied without it",
        ),
        ((500, b'{"error": "more system memory (5.6 GiB)"}', {}), "choose a smaller model"),
        ((401, b'{"error": {"message": "bad key"}}', {}), "“bad key”; replied without it — check the key"),
        (
            (200, b'{"error": {"message": "model x not found"}}', {}),
            "“model x not found”; replied without it",
        ),
        ((200, b"<html>Login to the hotel</html>", {}), "a web page: that is not a model server"),
    ]:
        model.will(answer)
        assert told in desk.chat("hello")["notice"]
        provider = desk.get("/health").json()["provider"]
        assert (provider["state"], provider["refusal"] in desk.cli("status").stdout) == ("refused", True)
        model.will(events({"content": "Here."}))
        found = desk.chat("hello")
        assert (found["response"], found.get("notice")) == ("Here.", None)
    assert "refusal" not in desk.get("/health").json()["provider"]


def test_call_cut_off_or_unreadable_is_not_performed_and_goes_back(
    desk: RunningDaemon, model: RawModel
) -> None:
    for made, ending in [
        ('{"text": "pay 1', "length"),
        ('{"text": "one"}', "length"),
        ('{"text": "pay', "tool_calls"),
    ]:
        model.will(events(note(made), finish=ending), events({"content": "Sorry."}))
        found = streamed(desk, "note it")
        assert [event["ok"] for event in found if event["type"] == "result"] == [False]
        assistant, result = model.asked[1]["messages"][-2:]
        assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {}
        assert "not performed" in result["content"]
    model.will(events(note('{"text": "one\ntwo"}'), finish="tool_calls"), events({"content": "Done."}))
    assert desk.chat("note it")["agent_logs"] == "[Note] noted {'text': 'one\\ntwo'}"


def test_call_written_as_text_is_performed_only_when_it_is_the_whole_answer(
    desk: RunningDaemon, model: RawModel
) -> None:
    pieces = [{"content": letter} for letter in CALL]
    model.will(events(*pieces), events({"content": "Noted."}))
    found = streamed(desk, "note it")
    assert [event["name"] for event in found if event["type"] == "call"] == ["Note"]
    assert shown(found) == "Noted."
    model.will(events({"content": f"```json\n{CALL}\n```"}))
    found = streamed(desk, "note it")
    assert not [event for event in found if event["type"] == "call"]
    assert "does not understand its model's calls" in found[-1]["notice"]
    repeated = f"What does {CALL} mean?"
    model.will(events({"content": CALL}))
    assert not [event for event in streamed(desk, repeated) if event["type"] == "call"]


def test_text_that_was_shown_is_kept_and_nothing_else_writes_into_it(
    desk: RunningDaemon, model: RawModel
) -> None:
    model.will(
        events({"content": "Half an ans"}).replace(b'"stop"', b"null").removesuffix(b"data: [DONE]\n\n")
    )
    found = streamed(desk, "hello")
    assert shown(found) == found[-1]["response"] == "Half an ans"
    assert "broke off; the answer is not whole" in found[-1]["notice"]


def test_answers_without_text_say_why(desk: RunningDaemon, model: RawModel) -> None:
    for octets, told in [
        (events({"reasoning_content": "Let me think."}), "The model thought, but gave no answer."),
        (events({"content": ""}), "The model's answer was empty."),
        (events({}, finish="content_filter"), "The model's server withheld this answer"),
    ]:
        model.will(octets)
        assert desk.chat("hello")["response"].startswith(told)
    model.will(events({"content": "<think>Hm |||VOICE||| x</think>Hello."}))
    found = streamed(desk, "hello")
    assert (found[-1]["response"], found[-1].get("voice_response", "")) == ("Hello.", "")
    assert [event["text"] for event in found if event["type"] == "thought"] == ["Hm |||VOICE||| x"]


def test_long_result_reaches_the_model_shortened_and_the_person_whole(
    desk: RunningDaemon, model: RawModel
) -> None:
    long = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Long", "arguments": "{}"}}]}
    model.will(events(long, finish="tool_calls"), events({"content": "Much."}))
    found = streamed(desk, "say much")
    (result,) = [event["result"] for event in found if event["type"] == "result"]
    assert len(result) == 300_007
    told = model.asked[1]["messages"][-1]["content"]
    assert told.startswith("aaaa")
    assert told.endswith("athe end")
    assert "[… 298007 characters left out …]" in told
    assert len(told) < 2100
    assert len(found[-1]["agent_logs"]) < 2200
    thread = desk.get(f"/threads/{found[-1]['thread']}", control=True).json()
    (kept,) = [one["data"] for one in thread["events"] if one["verb"] == "DONE" and "agent" in one["data"]]
    assert kept["result"] == told
    assert kept["whole"] == {"characters": 300_007, "sha256": hashlib.sha256(result.encode()).hexdigest()}


def test_what_an_agent_yields_is_shown_as_it_comes(desk: RunningDaemon, model: RawModel) -> None:
    call = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Slow", "arguments": "{}"}}]}
    model.will(events(call, finish="tool_calls"), events({"content": "Done."}))
    found = streamed(desk, "go on slowly")
    kinds = [event["type"] for event in found]
    assert [event["text"] for event in found if event["type"] == "piece"] == ["one ", "two ", "three"]
    assert kinds.index("call") < kinds.index("piece") < kinds.index("result")
    assert [event["result"] for event in found if event["type"] == "result"] == ["one two three"]


def test_model_without_tools_talks_and_is_told_once(desk: RunningDaemon, model: RawModel) -> None:
    refusal = (400, b'{"error": {"message": "m does not support tools"}}', {})
    model.will(refusal, events({"content": "Hi."}))
    assert "m cannot use agents" in desk.chat("hello")["notice"]
    assert ["tools" in one for one in model.asked] == [True, False]
    model.will(events({"content": "Again."}))
    assert "notice" not in desk.chat("hello")
    assert "tools" not in model.asked[0]


def test_oldest_turns_are_left_out_when_the_context_is_full(desk: RunningDaemon, model: RawModel) -> None:
    history = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": f"{at} {'word ' * 400}"}
        for at in range(20)
    ]
    error = {
        "error": {
            "message": "the request exceeds the available context size",
            "n_ctx": 8192,
            "n_prompt_tokens": 9000,
        }
    }
    model.will((400, json.dumps(error).encode(), {}), events({"content": "Yes."}))
    answer = desk.post("/chat", {"user_input": "the question", "conversation_history": history}).json()
    assert answer["response"] == "Yes."
    assert "were left out: the context of m is full" in answer["notice"]
    first, second = model.asked
    assert second["messages"][0]["role"] == "system"
    assert second["messages"][-1]["content"] == "the question"
    assert len(second["messages"]) < len(first["messages"])


def test_a_small_model_remembers_and_its_answers_name_the_agents(
    make_daemon: Callable[..., RunningDaemon], model: RawModel
) -> None:
    daemon = make_daemon("helped", OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="tiny-135m").start()
    model.will(
        events({"content": "Boilers are nice."}), events({"content": "Noted, the boiler is serviced."})
    )
    told = daemon.chat("remember that the boiler is serviced in May")
    assert told["agents_used"] == ["ManageMemory"]
    assert "May" in told["response"], "the model's words leave out when, so the agent's stand"
    model.will(events({"content": "The boiler is serviced in 1987."}))
    asked = daemon.chat("when is the boiler serviced?")
    assert (asked["response"], asked["agents_used"]) == (
        "I remember: the boiler is serviced in May",
        ["ContextMemory"],
    )
    model.will(events({"content": "Hello."}))
    assert daemon.chat("say hello to grandmother")["agents_used"] == []
    assert daemon.get("/health").json()["provider"]["helped"] is True
    assert "helped by keyword matching" in daemon.cli("models", "list").stdout
    daemon.cli("config", "set", "models.help", "never")
    model.will(events({"content": "Boilers are nice."}))
    assert daemon.chat("remember that the attic is cold")["response"] == "Boilers are nice."
    assert "helped" not in daemon.get("/health").json()["provider"]
