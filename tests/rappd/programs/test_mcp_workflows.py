"""Workflows as tools of MCP: a call is a run in a session of its own, which a restart and a repeat find again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from envelopes.codecs import mcp
from tests.rappd.programs.conftest import desk_with_model
from tests.rappd.programs.test_mcp import TASKS, call, headers, message, names, post, result
from tests.rappd.sessions.workflows.conftest import THREE, Desk
from tests.rappd.sessions.workflows.held_model import HeldModel
from twins.trust.quarantine import QuarantineList

LETTER = {
    **THREE,
    "name": "letter",
    "title": "Letter",
    "files": {"letter": "letter.txt"},
    "steps": [{"participant": "Ann", "cue": "Answer: {file:letter}"}],
}


def test_a_workflow_is_a_tool_and_its_result_is_what_was_said(desk: Desk) -> None:
    tools = {one["name"]: one for one in result(desk, "tools/list", control=True)["tools"]}
    assert tools["workflow.three"]["inputSchema"]["properties"]["plays"]["properties"].keys() == {
        "Ann",
        "Bob",
        "Cy",
    }
    found = call(desk, "workflow.three", control=True)
    assert found["isError"] is False, found
    told = found["structuredContent"]
    assert (
        told["result"] == told["answers"]["Cy"] == "answer to three after answer to two after answer to one"
    )
    assert told["session"] in [one["id"] for one in desk.ask("GET", "/sessions")["sessions"]]
    assert "workflow.three" not in names(result(desk, "tools/list")), "without a token there are turns alone"
    refused = post(desk, "tools/call", name="workflow.three", arguments={}).json()
    assert refused["error"]["code"] == -32602


def test_what_is_wrong_with_a_call_is_told_in_words(desk: Desk, held_model: HeldModel) -> None:
    desk.write(LETTER)
    tools = {one["name"]: one for one in result(desk, "tools/list", control=True)["tools"]}
    assert tools["workflow.letter"]["inputSchema"]["properties"]["files"]["required"] == ["letter"]
    for name, arguments, told in (
        ("workflow.letter", {}, "letter"),
        ("workflow.letter", {"files": {"story": "x"}}, 'no file "story"'),
        ("workflow.three", {"plays": {"Ann": "nobody at all"}}, "nobody at all"),
        ("workflow.three", {"plays": "Ann"}, "plays"),
        ("workflow.three", {"other": 1}, "other"),
    ):
        found = call(desk, name, arguments, control=True)
        assert (found["isError"], told in found["content"][0]["text"]) == (True, True), found
    held_model.failing["one"] = 2
    found = call(desk, "workflow.three", control=True)
    assert (found["isError"], "paused at step 1" in found["content"][0]["text"]) == (True, True), found


def test_a_workflow_is_in_no_turns_tools(desk: Desk, held_model: HeldModel) -> None:
    result(desk, "tools/list", control=True)
    desk.chat("hello")
    assert not [one for one in held_model.tools() if "workflow" in one]


def test_what_is_no_tokens_and_what_was_not_approved(desk: Desk) -> None:
    issued = desk.ask("POST", "/tokens", {"name": "nas", "caps": ["*"]})["token"]["text"]
    for asked in (message("tools/list"), message("tools/call", name="workflow.three", arguments={})):
        sent = {**headers(asked), "Authorization": f"Bearer {issued}"}
        found = desk.post("/mcp", asked, headers=sent).json()
        assert "workflow.three" not in json.dumps(found.get("result")), found
    assert found["error"]["code"] == -32602
    desk.write({**THREE, "name": "brought"})
    path = desk.home / "brainstem" / "workflows" / "brought.json"
    assert "workflow.brought" in names(result(desk, "tools/list", control=True)), "positive control"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    QuarantineList(desk.home / "held.json", desk.home).hold(path, digest, "It came in an egg.", "kitchen.egg")
    assert "workflow.brought" not in names(result(desk, "tools/list", control=True))
    refused = post(desk, "tools/call", name="workflow.brought", arguments={}, control=True).json()
    assert refused["error"]["code"] == -32602


def test_a_run_ends_with_the_call_that_began_it(desk: Desk, held_model: HeldModel) -> None:
    held_model.held.add("one")
    created = post(
        desk, "tools/call", name="workflow.three", arguments={}, capabilities=TASKS, control=True
    ).json()["result"]
    held_model.wait_for("one")
    post(desk, "tasks/cancel", taskId=created["taskId"], capabilities=TASKS, control=True)
    running = lambda: [one for one in desk.ask("GET", "/workflows")["runs"] if one["status"] == "running"]  # noqa: E731
    desk.wait_for(lambda: not running(), what="the run to end")
    held_model.let_go()


def test_a_list_of_agents_for_programs_leaves_workflows_out(desk: Desk) -> None:
    desk.ask("POST", "/settings", {"name": "programs.mcp_agents", "value": "Clock"})
    assert "workflow.three" not in names(result(desk, "tools/list", control=True))
    desk.ask("POST", "/settings", {"name": "programs.mcp_agents", "value": ""})


def _asked(daemon: RunningDaemon, key: str) -> dict[str, Any]:
    asked = message("tools/call", name="workflow.three", arguments={})
    sent = {**headers(asked), mcp.KEY_HEADER: key}
    found: dict[str, Any] = daemon.post("/mcp", asked, headers=sent, control=True).json()["result"]
    return found


def test_the_same_key_is_one_run(desk: Desk, held_model: HeldModel) -> None:
    first, again = _asked(desk, "one-key"), _asked(desk, "one-key")
    assert first["content"] == again["content"]
    assert held_model.texts.count("one") == 1


@pytest.mark.own_process
def test_a_run_goes_on_after_a_kill_and_a_repeat_gets_its_result(tmp_path: Path) -> None:
    with desk_with_model(tmp_path / "desk") as (desk, held_model):
        _kill_and_ask_again(desk, held_model)


def _kill_and_ask_again(desk: Desk, held_model: HeldModel) -> None:
    held_model.held.add("two")
    created = post(
        desk, "tools/call", name="workflow.three", arguments={}, capabilities=TASKS, control=True
    ).json()["result"]
    held_model.wait_for("two")
    desk.kill()
    held_model.let_go()
    desk.start()

    def task() -> Any:
        answer = post(desk, "tasks/get", taskId=created["taskId"], capabilities=TASKS, control=True)
        found: dict[str, Any] = answer.json()["result"]
        return found if found["status"] != "working" else None

    found = desk.wait_for(task, what="the task to end")
    assert found["status"] == "completed", found
    assert json.loads(found["result"]["content"][0]["text"])["answers"].keys() == {"Ann", "Bob", "Cy"}
    assert [sum(one.startswith(word) for one in held_model.texts) for word in ("one", "two", "three")] == [
        1,
        2,
        1,
    ]
    assert len(desk.ask("GET", "/sessions")["sessions"]) == 1
