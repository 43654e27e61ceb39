"""Workflows as skills of A2A: a task is a run in a session of its own, which a restart and a repeat find again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.rappd.programs.conftest import desk_with_model
from tests.rappd.programs.test_mcp_workflows import LETTER
from tests.rappd.sessions.workflows.conftest import THREE, Desk
from tests.rappd.sessions.workflows.held_model import HeldModel
from twins.trust.quarantine import QuarantineList

CARD = "/.well-known/agent-card.json"


def ask(desk: Desk, method: str, params: dict[str, Any], *, control: bool = True, **headers: str) -> Any:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return desk.post("/a2a", asked, headers={"A2A-Version": "1.0", **headers}, control=control).json()


def sent(skill: str, id: str, *parts: dict[str, Any], **configuration: Any) -> dict[str, Any]:
    message = {"messageId": id, "role": "ROLE_USER", "parts": [*parts] or [{"data": {}}]}
    return {"message": {**message, "metadata": {"skillId": skill}}, "configuration": configuration}


def skills(card: Any) -> dict[str, Any]:
    return {one["id"]: one for one in card["skills"]}


def test_a_workflow_is_a_skill_and_its_task_has_what_was_said(desk: Desk) -> None:
    card = desk.request("GET", CARD, control=True).json()
    assert skills(card)["workflow.three"]["tags"] == ["workflow"]
    assert "Ann, Bob, Cy speak in turn" in skills(card)["workflow.three"]["description"]
    task = ask(desk, "SendMessage", sent("workflow.three", "run"))["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    (part,) = task["artifacts"][0]["parts"]
    assert part["data"]["answers"].keys() == {"Ann", "Bob", "Cy"}
    assert part["data"]["session"] in [one["id"] for one in desk.ask("GET", "/sessions")["sessions"]]
    assert "workflow.three" not in skills(desk.get(CARD).json()), "without a token there are turns alone"
    refused = ask(desk, "SendMessage", sent("workflow.three", "no"), control=False)
    assert refused["error"]["message"].startswith('No agent "workflow.three"')


def test_the_text_of_a_message_is_the_one_file_that_is_lacking(desk: Desk, held_model: HeldModel) -> None:
    desk.write(LETTER)
    task = ask(desk, "SendMessage", sent("workflow.letter", "letter", {"text": "Dear Ann"}))["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    assert "Dear Ann" in held_model.texts[-1]
    for id, skill, part, told in (
        ("none", "workflow.letter", {"data": {}}, "letter"),
        ("nobody", "workflow.three", {"data": {"plays": {"Ann": "nobody at all"}}}, "nobody at all"),
        ("other", "workflow.three", {"data": {"other": 1}}, "other"),
    ):
        refused = ask(desk, "SendMessage", sent(skill, id, part))["result"]["task"]["status"]
        assert (refused["state"], told in json.dumps(refused["message"])) == ("TASK_STATE_FAILED", True)


def test_what_is_no_tokens_and_what_was_not_approved(desk: Desk) -> None:
    issued = desk.ask("POST", "/tokens", {"name": "nas", "caps": ["*"]})["token"]["text"]
    own = {"Authorization": f"Bearer {issued}"}
    assert "workflow.three" not in skills(desk.request("GET", CARD, headers=own).json())
    refused = ask(desk, "SendMessage", sent("workflow.three", "token"), control=False, **own)
    assert refused["error"]["message"].startswith('No agent "workflow.three"')
    desk.write({**THREE, "name": "brought"})
    path = desk.home / "brainstem" / "workflows" / "brought.json"
    assert "workflow.brought" in skills(desk.request("GET", CARD, control=True).json()), "positive control"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    QuarantineList(desk.home / "held.json", desk.home).hold(path, digest, "It came in an egg.", "kitchen.egg")
    assert "workflow.brought" not in skills(desk.request("GET", CARD, control=True).json())
    assert "error" in ask(desk, "SendMessage", sent("workflow.brought", "held"))


def test_a_run_ends_with_its_task(desk: Desk, held_model: HeldModel) -> None:
    held_model.held.add("one")
    begun = ask(desk, "SendMessage", sent("workflow.three", "cancelled", returnImmediately=True))
    held_model.wait_for("one")
    ended = ask(desk, "CancelTask", {"id": begun["result"]["task"]["id"]})["result"]
    assert ended["status"]["state"] == "TASK_STATE_CANCELED"
    running = lambda: [one for one in desk.ask("GET", "/workflows")["runs"] if one["status"] == "running"]  # noqa: E731
    desk.wait_for(lambda: not running(), what="the run to end")
    held_model.let_go()


@pytest.mark.own_process
def test_a_run_goes_on_after_a_kill_for_who_asks_after_it(tmp_path: Path) -> None:
    with desk_with_model(tmp_path / "desk") as (desk, held_model):
        held_model.held.add("two")
        begun = ask(desk, "SendMessage", sent("workflow.three", "run", returnImmediately=True))["result"]
        held_model.wait_for("two")
        desk.kill()
        held_model.held.add("three")
        desk.start()
        context = {"contextId": begun["task"]["contextId"]}
        (listed,) = ask(desk, "ListTasks", context)["result"]["tasks"]
        assert (listed["id"], listed["status"]["state"]) == (begun["task"]["id"], "TASK_STATE_WORKING")
        held_model.let_go()

        def task() -> Any:
            found = ask(desk, "GetTask", {"id": begun["task"]["id"]})["result"]
            return found if found["status"]["state"] != "TASK_STATE_WORKING" else None

        found = desk.wait_for(task, what="the task to end")
        assert found["status"]["state"] == "TASK_STATE_COMPLETED", found
        assert found["artifacts"][0]["parts"][0]["data"]["answers"].keys() == {"Ann", "Bob", "Cy"}
        again = ask(desk, "SendMessage", sent("workflow.three", "run"))["result"]["task"]
        assert (again["id"], again["artifacts"]) == (found["id"], found["artifacts"])
        assert len(desk.ask("GET", "/sessions")["sessions"]) == 1
