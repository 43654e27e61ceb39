"""The cloud tier's wire (RAPP v1 §18.2): its request and answer shapes around an ordinary turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import Answer, RunningDaemon

PATH = "/api/businessinsightbot_function"
ADA = "11111111-2222-4333-8444-555555555555"
BOB = "99999999-8888-4777-8666-555555555555"
DEFAULT = "c0p110t0-aaaa-bbbb-cccc-123456789abc"
KEYS = {"assistant_response", "response", "voice_response", "agent_logs", "user_guid"}


class Desk(NamedTuple):
    daemon: RunningDaemon
    model: FakeModel

    def ask(self, **body: Any) -> dict[str, Any]:
        answer = self.daemon.post(PATH, body)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    model = FakeModel()
    model.start()
    home = tmp_path_factory.mktemp("tier2") / "home"
    daemon = RunningDaemon(home, OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", VOICE_MODE="on")
    try:
        daemon.start()
        yield Desk(daemon, model)
    finally:
        daemon.stop()
        model.stop()


@pytest.fixture
def desk(shared_desk: Desk) -> Desk:
    shared_desk.model.will()
    return shared_desk


def test_an_answer_has_the_five_texts_of_that_wire(desk: Desk) -> None:
    desk.model.will(calls(("ContextMemory", {})), says("Long.|||VOICE|||Short.|||TWIN|||Aside."))
    answer = desk.ask(user_input="hello", user_guid=ADA, session_id="ignored", odd=1)
    assert set(answer) == KEYS
    assert all(isinstance(text, str) for text in answer.values())
    assert answer["assistant_response"] == answer["response"] == "Long."
    assert answer["voice_response"] == "Short."
    assert answer["agent_logs"].startswith("[ContextMemory] ")
    assert answer["user_guid"] == ADA


def test_without_a_guid_the_caller_is_the_default_one(desk: Desk) -> None:
    assert desk.ask(user_input="hello")["user_guid"] == DEFAULT
    assert desk.ask(user_input="hello", user_guid="")["user_guid"] == DEFAULT
    assert desk.ask(user_input="hello", user_guid=None)["user_guid"] == DEFAULT


@pytest.mark.parametrize(
    ("given", "asked"), [(5, "5"), (True, "True"), (["a"], "['a']"), ("  x  ", "x"), (0, "0")]
)
def test_any_input_is_taken_as_text(desk: Desk, given: Any, asked: str) -> None:
    desk.ask(user_input=given)
    assert desk.model.asked[-1]["messages"][-1] == {"role": "user", "content": asked}


@pytest.mark.parametrize(
    "history", [None, "x", 5, {"role": "user"}, [5, None, {"role": "user"}, {"role": 1, "content": "x"}]]
)
def test_a_history_that_is_none_is_left_out(desk: Desk, history: Any) -> None:
    desk.ask(user_input="hello", conversation_history=history)
    assert [message["role"] for message in desk.model.asked[-1]["messages"]] == ["system", "user"]


def test_history_goes_before_the_question(desk: Desk) -> None:
    history = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]
    desk.ask(user_input="hello", conversation_history=history)
    assert desk.model.asked[-1]["messages"][1:] == [*history, {"role": "user", "content": "hello"}]


def test_a_guid_alone_says_who_is_there(desk: Desk) -> None:
    answer = desk.ask(user_input=f" {ADA} ")
    assert set(answer) == KEYS
    assert answer["user_guid"] == ADA
    assert answer["response"] == answer["assistant_response"] != ""
    assert desk.ask(user_input=ADA, user_guid=BOB)["user_guid"] == BOB
    assert desk.model.asked == [], "no model is asked for that"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{", "Invalid JSON in request body"),
        (b"\xff", "Invalid JSON in request body"),
        (b"", "Missing JSON payload in request body"),
        (b"{}", "Missing JSON payload in request body"),
        (b"[1]", "Missing JSON payload in request body"),
    ],
)
def test_a_body_that_is_none_gets_plain_text(desk: Desk, body: bytes, text: str) -> None:
    answer = desk.daemon.post(PATH, body)
    assert (answer.status, answer.body.decode()) == (400, text)
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    "body", [{"user_input": ""}, {"user_input": "  "}, {"user_input": None}, {"user_guid": ADA}]
)
def test_blank_input_gets_a_json_refusal(desk: Desk, body: dict[str, Any]) -> None:
    answer = desk.daemon.post(PATH, body)
    assert answer.status == 400
    assert answer.json()["error"] == "Missing or empty user_input in JSON payload"


@pytest.mark.parametrize("guid", ["../../escape", "/etc/passwd", 5, True, {"a": 1}, "x" * 10_000])
def test_a_guid_that_is_none_is_echoed_and_becomes_no_path(desk: Desk, guid: Any) -> None:
    desk.model.will(calls(("ManageMemory", {"memory_type": "fact", "content": "kept"})), says("done"))
    answer = desk.ask(user_input="remember", user_guid=guid)
    assert answer["user_guid"] == str(guid)
    data = desk.daemon.home / "brainstem" / ".brainstem_data"
    assert {path.name for path in (data / "memory").glob("*")} <= {ADA, BOB}
    assert not list(desk.daemon.home.rglob("escape*"))
    assert (data / "shared_memories" / "memory.json").is_file()


def test_each_callers_memory_is_their_own(desk: Desk) -> None:
    for guid, content in ((ADA, "Ada likes tea."), (BOB, "Bob likes rye.")):
        desk.model.will(calls(("ManageMemory", {"memory_type": "fact", "content": content})), says("kept"))
        desk.ask(user_input="remember", user_guid=guid)
    desk.ask(user_input="what do I like?", user_guid=ADA)
    assert "Ada likes tea." in desk.model.system()
    assert "Bob likes rye." not in desk.model.system()
    desk.daemon.chat("and on the other wire?", user_guid=BOB)
    assert "Bob likes rye." in desk.model.system()
    assert "Ada likes tea." not in desk.model.system()


def test_deeply_nested_history_is_refused_not_fallen_over(desk: Desk) -> None:
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    body = {"user_input": "hello", "conversation_history": [{"role": "user", "content": "x", "more": deep}]}
    answer: Answer = desk.daemon.post(PATH, json.dumps(body).encode())
    assert answer.status in (200, 400)
    answer.json()
    assert desk.ask(user_input="hello")["response"] == "done"


@pytest.mark.parametrize("query", ["", "?deep=true"])
def test_its_health_tells_status_time_and_checks(desk: Desk, query: str) -> None:
    found = desk.daemon.get(f"/api/health{query}").json()
    assert {"status", "timestamp", "version", "checks", "response_time_ms"} <= set(found)
    assert found["status"] == "healthy"
    assert datetime.fromisoformat(found["timestamp"]).tzinfo is not None
    assert found["checks"]["agents"] == len(desk.daemon.agent_names())
    assert ("records" in found["checks"]) == bool(query)
