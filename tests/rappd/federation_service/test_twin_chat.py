"""The published twin-chat envelope at ``/chat``: what it says is heard, who it says it is from is a claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.machines import Machine

from envelopes.codecs.chat import MOST_OF_A_CLAIM

CLAIM = "rappid:@somebody/else:" + "a" * 64


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, FakeModel]]:
    model = FakeModel()
    model.start()
    machine = Machine(
        tmp_path_factory.mktemp("twin-chat") / "desk", "desk", OPENAI_BASE_URL=model.url, OPENAI_MODEL="small"
    ).start()
    yield machine, model
    machine.stop()
    model.stop()


def envelope(**fields: Any) -> dict[str, Any]:
    whole = {
        "schema": "rapp-twin-chat/1.0",
        "from_rappid": CLAIM,
        "to_rappid": "",
        "utc": "2026-01-01T00:00:00Z",
        "nonce": "n",
        "kind": "say",
        "payload": {"text": "in the envelope"},
        "facets": [],
    }
    return {**whole, **fields}


def heard(model: FakeModel) -> str:
    return str(model.asked[-1]["messages"][-1]["content"])


def recorded(machine: Machine, text: str) -> dict[str, Any]:
    return next(e for t in machine.threads() for e in t if e["data"].get("user_input") == text)


@pytest.mark.parametrize("kind", ["say", "share-fact", "share-egg", "request-fact", "ack", "something-new"])
@pytest.mark.parametrize("beside", [{}, {"user_input": None}, {"user_input": "  "}])
def test_the_payload_is_the_sentence_where_there_is_no_other(
    desk: tuple[Machine, FakeModel], kind: str, beside: dict[str, Any]
) -> None:
    machine, model = desk
    model.will(says("heard"))
    body = {**beside, "twin_chat_envelope": envelope(kind=kind, payload={"text": f" {kind} it "})}
    answer = machine.post("/chat", body)
    assert answer.status == 200, answer.body
    assert answer.json()["response"] == answer.json()["assistant_response"] == "heard"
    assert heard(model) == f"{kind} it"
    assert recorded(machine, f"{kind} it")["data"]["twin_chat_envelope"]["from_rappid"] == CLAIM


def test_a_sentence_beside_it_comes_first(desk: tuple[Machine, FakeModel]) -> None:
    machine, model = desk
    model.will(says("heard"))
    assert machine.post("/chat", {"user_input": "spoken", "twin_chat_envelope": envelope()}).status == 200
    assert heard(model) == "spoken"


@pytest.mark.parametrize("kind", ["console", " Console "])
@pytest.mark.parametrize("beside", [{}, {"user_input": "hi"}])
def test_a_console_in_the_clear_is_refused(
    desk: tuple[Machine, FakeModel], kind: str, beside: dict[str, Any]
) -> None:
    machine, model = desk
    model.will()
    refused = machine.post("/chat", {**beside, "twin_chat_envelope": envelope(kind=kind)})
    assert refused.status == 400
    assert "sealed" in refused.json()["error"]
    assert model.asked == []


@pytest.mark.parametrize(
    "unknown", [envelope(schema="rapp-twin-chat/2.0"), envelope(schema=None), "text", [1], 7, {}]
)
def test_what_is_no_such_envelope_is_left_aside(desk: tuple[Machine, FakeModel], unknown: Any) -> None:
    machine, model = desk
    model.will(says("heard"))
    assert machine.post("/chat", {"user_input": "alone", "twin_chat_envelope": unknown}).status == 200
    assert heard(model) == "alone"
    assert "twin_chat_envelope" not in recorded(machine, "alone")["data"]
    missing = machine.post("/chat", {"twin_chat_envelope": unknown})
    assert (missing.status, missing.json()["error"]) == (400, "user_input is required")


def test_odd_claims_are_cut_and_never_break_a_turn(desk: tuple[Machine, FakeModel]) -> None:
    machine, model = desk
    model.will(says("heard"))
    odd = envelope(
        from_rappid="x" * 10_000,
        to_rappid={"deep": [1]},
        nonce=5,
        payload={"text": "odd", "more": "y" * 9_000},
    )
    assert machine.post("/chat", {"twin_chat_envelope": odd}).status == 200
    kept = recorded(machine, "odd")["data"]["twin_chat_envelope"]
    assert kept["from_rappid"] == "x" * MOST_OF_A_CLAIM
    assert set(kept) == {"schema", "from_rappid", "utc", "kind", "payload"}
    assert kept["payload"] == {"text": "odd"}


def test_claimed_guid_changes_no_operator_rights(desk: tuple[Machine, FakeModel]) -> None:
    machine, model = desk
    own = json.loads((machine.home / "brainstem" / "rappid.json").read_text())["rappid"]
    for operator in (False, True):
        model.will(says("heard"))
        body = {"twin_chat_envelope": envelope(from_rappid=own, payload={"text": "let me in"})}
        assert machine.request("POST", "/chat", body, control=operator).status == 200
        assert ("LearnNew" in model.tools(0)) is operator


def test_a_stream_takes_it_too(desk: tuple[Machine, FakeModel]) -> None:
    machine, model = desk
    model.will(says("heard"))
    answer = machine.post("/chat/stream", {"twin_chat_envelope": envelope(payload={"text": "streamed"})})
    assert answer.status == 200
    assert b'"response":"heard"' in answer.body
    assert heard(model) == "streamed"


def test_two_of_ours_speak_it_with_each_other(
    desk: tuple[Machine, FakeModel], make_daemon: Callable[..., Any]
) -> None:
    """The request of ``rappd call`` to a published brainstem is one that the loopback listener takes."""
    machine, _ = desk
    other = make_daemon("other", LLM_FAKE="1").start()
    url = f"http://127.0.0.1:{other.port}"
    machine.owner("POST", "/peers", {"address": url})
    assert "fake-llm: good morning" in machine.call(url, text="good morning")["result"]
    taken = other.get("/threads?limit=10", control=True).json()["threads"]
    events = other.get(f"/threads/{taken[0]['id']}", control=True).json()["events"]
    own = json.loads((machine.home / "brainstem" / "rappid.json").read_text())["rappid"]
    assert events[0]["data"]["twin_chat_envelope"]["from_rappid"] == own
    assert events[0]["from"] != own
