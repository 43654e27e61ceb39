"""A machine that is no rappd pairs, says HELLO, asks, and gets what it did not wait for."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


def test_a_stranger_gets_the_public_card_and_nothing_else(node: Node) -> None:
    who = node.stranger()
    got = who.post(who.envelope("HELLO", {"capabilities": []}, to="broadcast"), certificate=False)
    assert got.status == 200
    assert got.verb == "HELLO"
    assert got.data["capabilities"] == []
    assert set(got.data) == {"capabilities", "verbs", "name", "protocol", "introduction"}
    assert got.data["introduction"]["fingerprint"] == node.fingerprint
    for verb in ("HELP", "DONE", "ERROR", "ACK", "STREAM", "CANCEL", "PLEASE"):
        got = who.post(who.envelope(verb, {"agent": "Clock"}), certificate=False)
        assert (got.status, got.verb, got.data["reason"]) == (401, "ERROR", "not_paired")


def test_a_peer_is_told_what_it_may_use_and_nothing_structural(node: Node, mine: PlainMachine) -> None:
    got = mine.post(mine.envelope("HELLO", {"capabilities": []}))
    names = got.data["capabilities"]
    assert {"Clock", "Counted", "Secret"} <= set(names)
    assert not {"Twin", "HatchEgg", "LayEgg", "LearnNew", "SwarmFactory"} & set(names)
    assert {row["name"] for row in got.data["agents"]} == set(names)
    assert set(got.data["verbs"]) == {"HELLO", "HELP", "DONE", "ERROR", "STREAM", "CANCEL", "ACK"}
    assert "from" in got.json
    assert got.json["from"] == mine.to()


def test_peer_name_stays_one_harmless_line(node: Node) -> None:
    who = node.peer("shed")
    known = who.name
    who.name = "gar\x1b[2Jage\u202e\n<b>" + "x" * 500
    assert who.post(who.envelope("HELLO", {"name": who.name, "agents": []})).verb == "HELLO"

    def row() -> Any:
        return node.owner("GET", f"/peers/{known}")[1]["peer"]

    node.daemon.wait_for(lambda: row()["called"] != known, what="its new name")
    called = row()["called"]
    assert called.isprintable()
    assert called.startswith("gar")
    assert len(called) <= 63
    assert not set(called) & set("<>[]")
    assert row()["name"] == known


def test_one_agent_is_asked_in_both_forms(mine: PlainMachine) -> None:
    got = mine.post(mine.help("Clock", {"zone": "UTC"}, _x_thread=str(uuid.uuid4())))
    assert (got.status, got.verb, got.data["result"]) == (200, "DONE", "it is UTC")
    asked = mine.envelope("HELP", {"zone": "CET"}, to=mine.to("Clock"))
    got = mine.post(asked)
    assert got.data["result"] == "it is CET"
    assert (got.json["from"], got.json["to"]) == (mine.to("Clock"), mine.id)


def test_callers_thread_returns_without_local_record(mine: PlainMachine) -> None:
    thread = str(uuid.uuid4())
    got = mine.post(mine.help(_x_thread=thread, _x_path=[mine.fingerprint[:16]])).json
    assert got["_x_thread"] == thread
    assert not {"_x_peer_thread", "_x_path", "_x_cap"} & set(got)


def test_a_brainstem_turn_has_result_and_response(mine: PlainMachine) -> None:
    got = mine.post(mine.envelope("HELP", {"prompt": "how are you"}))
    assert got.status == 200
    assert got.data["result"] == got.data["response"] == "fake-llm: how are you"


def test_turn_of_another_machine_takes_no_model_and_tells_no_provider(mine: PlainMachine) -> None:
    got = mine.post(mine.envelope("HELP", {"prompt": "how are you", "model": "no such"}))
    assert (got.status, got.data["model"]) == (200, "fake-llm")
    assert not {"provider", "seconds"} & set(got.data)


def test_late_answer_is_delivered_and_fetchable(node: Node, mine: PlainMachine) -> None:
    asked = mine.help("Counted", {"tell": "late", "seconds": 1.5}, _x_deadline=0.3)
    got = mine.post(asked)
    assert (got.status, got.verb) == (202, "ACK")
    assert mine.request("GET", f"/envelopes/{asked['id']}").status == 202
    assert mine.waits_for(asked["id"])["data"]["result"] == "counted late"
    fetched = mine.request("GET", f"/envelopes/{asked['id']}")
    assert (fetched.status, fetched.data["result"]) == (200, "counted late")
    assert node.counted().count("late") == 1


def test_only_ones_own_envelopes_can_be_fetched(node: Node, mine: PlainMachine) -> None:
    asked = mine.help("Secret")
    mine.post(asked)
    other = node.peer("other")
    for path in (
        f"/envelopes/{asked['id']}",
        f"/envelopes/{asked['id']}?from={mine.id}",
        f"/envelopes/{asked['id']}/stream",
    ):
        assert other.request("GET", path).status == 404
        assert other.request("GET", path, certificate=False).status == 401
    assert mine.request("GET", f"/envelopes/{uuid.uuid4()}").status == 404
    again = mine.request("GET", f"/envelopes/{asked['id']}", certificate=False, token=mine.token())
    assert again.data["result"] == "the secret"


def test_a_batch_is_answered_in_order_and_the_work_is_brought(node: Node, mine: PlainMachine) -> None:
    first, bad, hello, unknown = (
        mine.help("Counted", {"tell": "batched"}),
        {**mine.help(), "id": "no id"},
        mine.envelope("HELLO", {}),
        mine.envelope("PLEASE", {}),
    )
    got = mine.request("POST", "/envelopes/batch", [first, bad, hello, unknown])
    assert got.status == 200
    assert [one["verb"] for one in got.json] == ["ACK", "ERROR", "HELLO", "ERROR"]
    assert [one["id"] for one in got.json][::2] == [first["id"], hello["id"]]
    assert got.json[1]["data"]["key"] == "id"
    assert got.json[3]["data"]["reason"] == "unknown_verb"
    assert mine.waits_for(first["id"])["data"]["result"] == "counted batched"
    again = mine.request("POST", "/envelopes/batch", [first, first]).json
    assert [one["data"].get("result") for one in again] == ["counted batched"] * 2
    assert node.counted().count("batched") == 1


def test_capabilities_of_agents(mine: PlainMachine) -> None:
    got = mine.request("GET", f"/agents/{mine.to('Clock')}/capabilities")
    assert got.status == 200
    assert got.json["capabilities"] == ["Clock"]
    assert mine.request("GET", f"/agents/{mine.to()}/capabilities").json["agents"]
    assert mine.request("GET", f"/agents/{mine.to('Twin')}/capabilities").status == 404
    assert mine.request("GET", f"/agents/{mine.to()}/capabilities", certificate=False).status == 401


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"id": 5}, "id"),
        ({"id": "x"}, "id"),
        ({"from": ""}, "from"),
        ({"to": None}, "to"),
        ({"verb": "help"}, "verb"),
        ({"data": []}, "data"),
        ({"extra": 1}, "extra"),
        ({"_x_deadline": -1}, "_x_deadline"),
        ({"_x_thread": "no"}, "_x_thread"),
        ({"_x_path": ["zz"]}, "_x_path"),
        ({"_x_sig": {}}, "_x_sig"),
        ({"_x_cap": []}, "_x_cap"),
    ],
)
def test_what_is_malformed_is_told_with_its_key(mine: PlainMachine, change: Any, key: str) -> None:
    asked = {**mine.help(), **change}
    got = mine.post(asked)
    assert (got.status, got.verb) == (400, "ERROR")
    assert (got.data["code"], got.data["reason"], got.data["key"]) == (400, "malformed", key)
    if isinstance(asked["id"], str) and len(asked["id"]) == 36:
        assert got.json["id"] == asked["id"]


def test_bodies_that_are_no_envelope_at_all(mine: PlainMachine) -> None:
    asked = mine.help()
    del asked["data"]
    assert mine.post(asked).data["key"] == "data"
    for body in (b"", b"{", b"[]", b"7", b"\xff", b'{"id":1,"id":2}', b"[" * 500):
        got = mine.post(body)
        assert (got.status, got.verb, got.data["reason"]) == (400, "ERROR", "malformed")
    got = mine.post(mine.help(), headers={"Content-Type": "text/plain"})
    assert (got.status, got.data["reason"]) == (415, "media_type")
    got = mine.post(mine.help(), headers={"Content-Encoding": "gzip"})
    assert (got.status, got.data["reason"]) == (415, "media_type")


def test_verbs_that_nobody_knows_and_wrong_ends(node: Node, mine: PlainMachine) -> None:
    got = mine.post(mine.envelope("PLEASE", {}))
    assert (got.status, got.data["code"], got.data["reason"]) == (400, 400, "unknown_verb")
    assert "PLEASE" in got.data["msg"]
    got = mine.post(mine.help(sender=f"brainstem_{'0' * 16}"))
    assert (got.status, got.data["reason"]) == (403, "wrong_sender")
    got = mine.post(mine.help(to=f"brainstem_{'0' * 16}"))
    assert (got.status, got.data["reason"]) == (404, "wrong_recipient")
    for verb in ("HELP", "HELLO", "DONE"):
        got = mine.post(mine.envelope(verb, {}, sender=node.machines[0].id + "x"))
        assert (got.status, got.data["reason"]) == (403, "wrong_sender")


def test_too_large_answer_is_reported_and_chat_goes_on(mine: PlainMachine) -> None:
    got = mine.post(mine.help("Big", {"size": 3 << 20}))
    assert got.status in (200, 500)
    assert len(got.body) <= 1 << 20
    if got.verb == "ERROR":
        assert got.data["reason"] == "answer_too_large"
    assert mine.post(mine.help()).verb == "DONE"


def test_failed_agent_is_an_error_with_status_code(mine: PlainMachine) -> None:
    got = mine.post(mine.help("Big", {"size": "no number"}))
    assert (got.status, got.verb, got.data["code"]) == (500, "ERROR", 500)
    again = mine.request("GET", f"/envelopes/{got.json['id']}")
    assert (again.status, again.data["reason"]) == (500, got.data["reason"])


def test_what_was_to_everybody_is_refused_in_this_machines_name(node: Node, mine: PlainMachine) -> None:
    got = mine.post(mine.envelope("NONSENSE", {}, to="broadcast"))
    assert got.data["reason"] == "unknown_verb"
    assert got.json["from"] == f"brainstem_{node.fingerprint[:16]}"
