"""OpenAI's API for programs on other computers: what a token may, and what is its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.programs.conftest import ask, setting, token

CHAT, RESPONSES, MODELS = "/v1/chat/completions", "/v1/responses", "/v1/models"


def chat(text: str = "hi", model: str = "brainstem", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def test_a_token_is_the_key_and_says_what_may_be_used(node: Node, elsewhere: PlainMachine) -> None:
    key = token(node, "HELP.brainstem")["text"]
    assert [one["id"] for one in ask(elsewhere, MODELS, token=key).json["data"]] == ["brainstem"]
    answer = ask(elsewhere, CHAT, chat(), key)
    assert (answer.status, answer.json["object"]) == (200, "chat.completion")
    answers = [ask(elsewhere, CHAT, chat(model=f"twin/{one}"), key) for one in ("gardener", "nobody")]
    assert [(one.status, one.json["error"]["type"]) for one in answers] == [(403, "permission_error")] * 2


def test_without_a_token_that_counts_nothing_is_answered(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem")
    node.owner("DELETE", f"/tokens/{issued['jti']}")
    for key in ("", "sk-any", issued["text"]):
        for path, body in ((CHAT, chat()), (RESPONSES, {"input": "hi"}), (MODELS, None)):
            answer = ask(elsewhere, path, body, key)
            assert (answer.status, answer.json["error"]["type"]) == (401, "authentication_error")


def test_a_response_is_its_programs_own(node: Node, elsewhere: PlainMachine) -> None:
    mine, other = (token(node, "HELP.brainstem", name=one)["text"] for one in ("mine", "other"))
    made = ask(elsewhere, RESPONSES, {"model": "brainstem", "input": "hi"}, mine).json
    path = f"{RESPONSES}/{made['id']}"
    assert ask(elsewhere, path, token=mine).status == 200
    assert ask(elsewhere, path, token=other).status == 404
    assert node.daemon.get(path).status == 404
    going_on = {"model": "brainstem", "input": "and?", "previous_response_id": made["id"]}
    assert ask(elsewhere, RESPONSES, going_on, other).status == 404
    removed = elsewhere.request("DELETE", path, certificate=False, token=other)
    assert removed.status == 404
    assert ask(elsewhere, path, token=mine).status == 200


def test_a_token_goes_on_with_no_conversation_of_the_owners(node: Node, elsewhere: PlainMachine) -> None:
    session = node.daemon.chat("a secret of the owner's")["session_id"]
    key = token(node, "HELP.brainstem")["text"]
    found = ask(elsewhere, CHAT, chat("go on", metadata={"session_id": session}), key).json
    assert found["rappd"]["session_id"] != session
    assert found["rappd"]["session_id"].startswith("program:openai:")


def test_a_user_divides_what_is_a_tokens_own(node: Node, elsewhere: PlainMachine) -> None:
    key = token(node, "HELP.brainstem")["text"]
    made = ask(elsewhere, RESPONSES, {"model": "brainstem", "input": "hi", "user": "ann"}, key).json
    path = f"{RESPONSES}/{made['id']}"
    assert ask(elsewhere, path, token=key).status == 404
    assert ask(elsewhere, f"{path}?user=ann", token=key).status == 200


def test_a_turn_of_a_token_goes_on_with_the_results_of_its_own_tools(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="m", RAPPD_MODEL_HELP="never").start()
    issued = daemon.post("/tokens", {"name": "nas", "caps": ["HELP.brainstem"]}, control=True).json()
    key = {"Authorization": f"Bearer {issued['token']['text']}"}
    fake_model.will(calls(("weather", {})), says("Sunny."), calls(("weather", {})), says("Sunny."))
    function = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
    asked = chat("the weather?", tools=[{"type": "function", "function": function}])
    said = daemon.post(CHAT, asked, headers=key).json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "sun"}
    asked["messages"] += [said, result]
    answer = daemon.post(CHAT, asked, headers=key).json()
    assert answer["choices"][0]["message"]["content"] == "Sunny.", answer
    body = {"model": "brainstem", "input": "the weather?", "tools": [{"type": "function", **function}]}
    first = daemon.post(RESPONSES, body, headers=key).json()
    output = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "sun"}
    body = {**body, "input": [output], "previous_response_id": first["id"]}
    found = daemon.post(RESPONSES, body, headers=key).json()
    assert found["output"][0]["content"][0]["text"] == "Sunny.", found


def test_what_is_switched_off_is_not_there(node: Node, elsewhere: PlainMachine) -> None:
    setting(node, "programs.openai", "off")
    try:
        answer = node.daemon.post(CHAT, chat())
        assert (answer.status, answer.json()["error"]["code"]) == (404, "protocol_off")
        assert "rappd config set programs.openai on" in answer.json()["error"]["message"]
        assert ask(elsewhere, MODELS).status == 401
    finally:
        setting(node, "programs.openai", "on")
