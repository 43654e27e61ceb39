"""Workflows in a session of a real daemon: run, pause, abort, interrupt, killed and taken up again."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fixtures.running_daemon import agent_source

from envelopes.envelope import Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from tests.rappd.sessions.workflows.conftest import THREE, Desk, cues
from tests.rappd.sessions.workflows.held_model import HeldModel
from tests.rappd.tether.phone_client import PhoneClient
from tests.twins.eggs.readers.conftest import Eggs
from twins.trust.quarantine import QuarantineList

TWO = "two after answer to one"
THIRD = f"three after answer to {TWO}"
MakePhone = Callable[..., Awaitable[PhoneClient]]


def test_workflow_runs_and_records_every_step(desk: Desk, model: HeldModel) -> None:
    started = desk.run()
    assert (started["status"], started["step"], started["steps"]) == ("running", 1, 3)
    events = desk.sees("done")
    kinds = [one["kind"] for one in events]
    step = ["demo_step", "operator_input", "twin_response"]
    assert kinds == ["session_start", "workflow", *step, *step, *step, "workflow"]
    asked = [one for one in events if one["kind"] == "operator_input"]
    assert [(one["by"], one["on_behalf_of"], one["to"]) for one in asked] == [
        ("Coordinator", "Owner", name) for name in ("Ann", "Bob", "Cy")
    ]
    assert cues(events) == ["one", TWO, THIRD]
    answers = [(one["by"], one["text"]) for one in events if one["kind"] == "twin_response"]
    assert answers == [("Ann", "answer to one"), ("Bob", f"answer to {TWO}"), ("Cy", f"answer to {THIRD}")]
    assert [one["text"] for one in events if one["kind"] == "workflow"] == [
        "Three starts: 3 steps.",
        "Three is done.",
    ]
    noted = [one["workflow"] for one in events if one["kind"] == "demo_step"]
    assert [(one["step"], one["participant"]) for one in noted] == [(1, "Ann"), (2, "Bob"), (3, "Cy")]
    assert "You play Ann (begins). You are short." in str(model.asked[0]["messages"])
    assert desk.ask("GET", "/workflows")["runs"] == []


def test_workflow_never_gets_structural_agents(desk: Desk, model: HeldModel) -> None:
    desk.run()
    desk.sees("done")
    tools = {name for number in range(3) for name in model.tools(number)}
    assert "ManageMemory" in tools
    assert not tools & {"LearnNew", "SwarmFactory", "Twin", "HatchEgg", "LayEgg", "AskPeer"}


def test_workflow_pauses_after_the_turn_and_resumes(desk: Desk, model: HeldModel) -> None:
    model.held.add("one")
    desk.run()
    model.wait_for("one")
    assert desk.ask("POST", "/workflows/pause", {})["run"]["status"] == "paused"
    model.let_go()
    desk.wait_for(lambda: any(one["kind"] == "twin_response" for one in desk.events()))
    assert desk.ask("GET", "/workflows")["runs"][0]["status"] == "paused"
    assert cues(desk.events()) == ["one"]
    assert desk.ask("POST", "/workflows/pause", {}, 409)["code"] == "workflow_state"
    desk.ask("POST", "/workflows/resume", {})
    assert cues(desk.sees("done")) == ["one", TWO, THIRD]


def test_pause_right_after_a_cue_stands_behind_it(
    desk: Desk, model: HeldModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = Dispatcher._perform

    async def perform_late(*turn: Any) -> Envelope:
        await asyncio.sleep(0.5)
        return await perform(*turn)

    monkeypatch.setattr(Dispatcher, "_perform", perform_late)
    model.held.add("one")
    desk.run()
    desk.ask("POST", "/workflows/pause", {})
    model.wait_for("one")
    noted = [one["workflow"]["status"] for one in desk.events() if "workflow" in one]
    assert noted[-1] == "paused", noted
    model.let_go()


def test_workflow_abort_stops_the_turn(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    desk.run()
    model.wait_for("two")
    assert desk.ask("POST", "/workflows/abort", {})["run"]["status"] == "aborted"
    events = desk.sees("aborted")
    assert [one["text"] for one in events if one.get("error")] == ["Stopped."]
    assert [one["text"] for one in events if one["kind"] == "workflow"][-1] == "Three was stopped."
    assert cues(events) == ["one", TWO]
    assert desk.ask("POST", "/workflows/resume", {}, 404)["code"] == "no_such_workflow"


def test_second_workflow_in_a_session_is_refused(desk: Desk, model: HeldModel) -> None:
    model.held.add("one")
    desk.run()
    assert desk.ask("POST", "/workflows/three/run", {}, 409)["code"] == "workflow_state"
    assert desk.ask("POST", "/workflows/none/run", {}, 404)["code"] == "no_such_workflow"


def recorded(desk: Desk, cue: str) -> None:
    """Waits until a step is in the log: its model may be asked a moment before."""
    desk.wait_for(lambda: cue in cues(desk.events()), what=f"{cue!r} to be recorded")


@pytest.mark.own_process
def test_killed_daemon_asks_the_open_step_again(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    desk.run()
    model.wait_for("two")
    recorded(desk, TWO)
    desk.kill()
    model.let_go()
    desk.start()
    events = desk.sees("done")
    assert cues(events) == ["one", TWO, TWO, THIRD]
    errors = [one for one in events if one.get("error")]
    assert [one["text"] for one in errors] == ["This was cut off before it was done."]
    assert [one["workflow"]["step"] for one in events if one["kind"] == "demo_step"] == [1, 2, 3]


@pytest.mark.own_process
def test_paused_workflow_is_paused_after_a_restart(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    desk.run()
    model.wait_for("two")
    desk.ask("POST", "/workflows/pause", {})
    desk.kill()
    model.let_go()
    desk.start()
    assert cues(desk.events()) == ["one", TWO]
    desk.ask("POST", "/workflows/resume", {})
    assert cues(desk.sees("done")) == ["one", TWO, TWO, THIRD]


@pytest.mark.own_process
def test_changed_file_does_not_go_on_after_a_restart(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    desk.run()
    model.wait_for("two")
    recorded(desk, TWO)
    desk.kill()
    model.let_go()
    desk.write({**THREE, "title": "Another"})
    desk.start()
    assert cues(desk.sees("aborted")) == ["one", TWO]


@pytest.mark.own_process
def test_workflow_that_became_foreign_does_not_go_on_after_a_restart(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    desk.run()
    model.wait_for("two")
    recorded(desk, TWO)
    desk.kill()
    model.let_go()
    path = desk.home / "brainstem" / "workflows" / "three.json"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    QuarantineList(desk.home / "held.json", desk.home).hold(path, digest, "It came in an egg.", "kitchen.egg")
    desk.start()
    assert cues(desk.sees("aborted")) == ["one", TWO]


@pytest.mark.own_process
def test_branch_of_a_session_starts_no_second_run(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    started = desk.run()
    model.wait_for("two")
    desk.ask("POST", "/sessions/current/branch", {})
    assert desk.ask("POST", "/workflows/resume", {}, 404)["code"] == "no_such_workflow"
    desk.kill()
    model.let_go()
    desk.start()
    model.wait_for("three")
    row = desk.ask("GET", f"/sessions/{started['session']}")
    assert "Branches from" in str(desk.events()) and "Branches from" not in str(row["events"])
    assert sum(text == TWO for text in model.texts) == 2


def test_interjection_preempts_and_the_step_is_asked_again(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    desk.run()
    model.wait_for("two")
    said = {"text": "what time is it", "via": "mic", "wait": True}
    desk.ask("POST", "/sessions/current/say", said)
    model.let_go()
    events = desk.sees("done")
    assert cues(events) == ["one", TWO, "what time is it", TWO, THIRD]
    (failed,) = [one for one in events if one.get("error")]
    thread = desk.ask("GET", f"/threads/{desk.ask('GET', '/sessions/current')['session']['thread']}")
    error = next(one for one in thread["events"] if one["verb"] == "ERROR")
    assert (error["id"], error["data"]["reason"]) == (failed["event_id"], "preempted")
    kinds = [one["kind"] for one in events]
    at = kinds.index("preempted")
    assert kinds[at - 1 : at + 4] == ["twin_response", "preempted", "operator_input", "twin_response", "workflow"]  # fmt: skip
    assert (events[at + 1]["via"], events[at + 2]["text"]) == ("mic", "answer to what time is it")


def test_plain_sentence_does_not_interrupt(desk: Desk, model: HeldModel) -> None:
    model.held.add("two")
    desk.run()
    model.wait_for("two")
    desk.ask("POST", "/sessions/current/say", {"text": "hello", "wait": True})
    model.let_go()
    events = desk.sees("done")
    assert cues(events) == ["one", TWO, "hello", THIRD]
    assert not any(one["kind"] == "preempted" for one in events)


def test_failing_step_pauses_with_the_reason(desk: Desk) -> None:
    desk.write({**THREE, "participants": [{"name": "Ann"}, {"name": "Bob", "plays": "nobody"}, {"name": "Cy"}]})  # fmt: skip
    refused = desk.ask("POST", "/workflows/three/run", {}, 422)
    assert refused["error"].startswith("Nobody plays Bob:")


def test_step_whose_model_fails_once_is_asked_once_more(desk: Desk, model: HeldModel) -> None:
    model.failing[TWO] = 1
    desk.run()
    events = desk.sees("done")
    assert cues(events) == ["one", TWO, TWO, THIRD]
    (failed,) = [one for one in events if one.get("error")]
    assert "out of memory (5.6 GiB)" in failed["text"]
    assert any(one["text"].startswith("Step 2 failed, and is asked once more.") for one in events)


def test_step_that_fails_twice_pauses_with_the_models_words_and_is_no_text_to_debate(
    desk: Desk, model: HeldModel
) -> None:
    model.failing[TWO] = 2
    desk.run()
    events = desk.sees("paused")
    assert cues(events) == ["one", TWO, TWO]
    assert "out of memory (5.6 GiB)" in events[-1]["text"] and "Three is paused." in events[-1]["text"]
    desk.ask("POST", "/workflows/resume", {})
    assert cues(desk.sees("done")) == ["one", TWO, TWO, TWO, THIRD]
    assert "out of memory" not in str([asked["messages"] for asked in model.asked[-1:]])


def test_step_that_no_agent_does_without_a_model_pauses(offline: Desk) -> None:
    offline.write(THREE)
    offline.run()
    events = offline.sees("paused")
    assert cues(events) == ["one", "one"]
    assert "No model answers, and no agent here does that" in events[-1]["text"]


async def test_phone_without_the_right_is_refused(desk: Desk, model: HeldModel, phone: MakePhone) -> None:
    anna = await phone(workflows=False)
    for action in ("start", "pause", "resume", "abort"):
        anna.refused.clear()
        await anna._send({"type": "workflow", "action": action, "name": "three"})
        await anna.sees(lambda: anna.refused)
        assert anna.refused[""].startswith("This phone may not run workflows.")
    model.held.add("two")
    await asyncio.to_thread(desk.run)
    await asyncio.to_thread(model.wait_for, "two")
    await anna._send({"type": "say", "event_id": new_id(), "text": "me first", "to": "", "via": "mic"})
    await anna.sees(lambda: "answer to me first" in anna.texts())
    model.let_go()
    events = await asyncio.to_thread(desk.sees, "done")
    assert not any(one["kind"] == "preempted" for one in events)


async def test_phone_with_the_right_starts_and_interrupts(
    desk: Desk, model: HeldModel, phone: MakePhone
) -> None:
    anna = await phone(workflows=True)
    model.held.add("two")
    await anna._send({"type": "workflow", "action": "start", "name": "three"})
    await asyncio.to_thread(model.wait_for, "two")
    await anna._send({"type": "say", "event_id": new_id(), "text": "me first", "to": "", "via": "mic"})
    await anna.sees(lambda: "answer to me first" in anna.texts())
    await anna._send({"type": "workflow", "action": "pause", "name": "three"})
    await asyncio.to_thread(desk.sees, "paused")
    model.let_go()
    await anna._send({"type": "workflow", "action": "resume", "name": "three"})
    events = await asyncio.to_thread(desk.sees, "done")
    assert any(one["kind"] == "preempted" for one in events)
    behalf = {one["on_behalf_of"] for one in events if one.get("by") == "Coordinator" and "on_behalf_of" in one}  # fmt: skip
    assert behalf == {"Anna"}


async def test_phone_lets_play_only_whom_it_was_told_of(
    desk: Desk, model: HeldModel, phone: MakePhone
) -> None:
    anna = await phone(workflows=True)
    for who in ("http://127.0.0.1:9/", "../../etc", "Nobody@pi"):
        anna.refused.clear()
        await anna._send({"type": "workflow", "action": "start", "name": "three", "plays": {"Ann": who}})
        await anna.sees(lambda: anna.refused)
        assert anna.refused[""].startswith("Nobody here is called")
    assert await asyncio.to_thread(desk.ask, "GET", "/workflows") and model.texts == []


async def test_run_of_a_phone_has_the_phones_rights_only(
    desk: Desk, model: HeldModel, phone: MakePhone
) -> None:
    anna = await phone(workflows=True)
    desk.ask("POST", "/devices/Anna", {"scope": "listen"})
    await anna._send({"type": "workflow", "action": "start", "name": "three"})
    await anna.sees(lambda: anna.refused)
    assert anna.refused[""] == "This phone may not ask desk — rappd devices scopes"
    desk.ask("POST", "/devices/Anna", {"scope": "talk"})
    model.held.add("one")
    await anna._send({"type": "workflow", "action": "start", "name": "three"})
    await asyncio.to_thread(model.wait_for, "one")
    desk.ask("DELETE", "/devices/Anna")
    model.let_go()
    events = await asyncio.to_thread(desk.sees, "paused")
    assert cues(events) == ["one"]
    assert "may not run workflows any more" in events[-1]["text"]


async def test_run_of_a_phone_pauses_once_its_right_is_taken_back(
    desk: Desk, model: HeldModel, phone: MakePhone
) -> None:
    anna = await phone(workflows=True)
    model.held.add("one")
    await anna._send({"type": "workflow", "action": "start", "name": "three"})
    await asyncio.to_thread(model.wait_for, "one")
    desk.ask("POST", "/devices/Anna", {"workflows": False})
    model.let_go()
    events = await asyncio.to_thread(desk.sees, "paused")
    assert cues(events) == ["one"]
    assert "may not run workflows any more" in events[-1]["text"]


def test_bad_files_are_listed_with_what_to_write(desk: Desk) -> None:
    desk.write({**THREE, "steps": [{"participant": "Dan", "cue": "x"}]})
    (row,) = [one for one in desk.ask("GET", "/workflows")["workflows"] if one["name"] == "three"]
    assert row["problem"]["error"] == 'three.json, steps[0].participant: "Dan" is no participant.'
    assert desk.ask("POST", "/workflows/three/run", {}, 422)["do"] == 'Write "Ann", "Bob", "Cy".'
    listed = desk.cli("workflows", "list")
    assert '"Dan" is no participant' in listed.stdout


@pytest.mark.parametrize("name", ["..", "%2e%2e%2fsoul", ".hidden", "a%00b"])
def test_workflow_names_lead_nowhere_else(desk: Desk, name: str) -> None:
    assert desk.request("GET", f"/workflows/{name}", control=True).status == 404


def test_workflow_file_that_is_a_link_is_not_followed(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("secret words")
    folder = desk.home / "brainstem" / "workflows"
    desk.write({**THREE, "files": {"story": "story.txt"}, "steps": [{"participant": "Ann", "cue": "{file:story}"}]})  # fmt: skip
    (folder / "story.txt").symlink_to(tmp_path / "key.txt")
    refused = desk.ask("POST", "/workflows/three/run", {}, 422)
    assert "workflows/story.txt cannot be read" in refused["error"]


async def test_connected_phone_sees_a_workflow_once_it_is_approved(desk: Desk, phone: MakePhone) -> None:
    path = desk.home / "brainstem" / "workflows" / "three.json"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    QuarantineList(desk.home / "held.json", desk.home).hold(path, digest, "It came in an egg of kitchen.", "kitchen.egg")  # fmt: skip
    anna = await phone(workflows=True)
    await anna.sees(lambda: anna.workflows)
    assert "three" not in [one["name"] for one in anna.workflows]
    await asyncio.to_thread(desk.ask, "POST", "/workflows/three/approve", {"sha256": digest})
    await anna.sees(lambda: "three" in [one["name"] for one in anna.workflows])


def test_foreign_workflow_runs_once_it_is_approved(desk: Desk) -> None:
    path = desk.home / "brainstem" / "workflows" / "three.json"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    QuarantineList(desk.home / "held.json", desk.home).hold(path, digest, "It came in an egg of kitchen.", "kitchen.egg")  # fmt: skip
    refused = desk.ask("POST", "/workflows/three/run", {}, 403)
    assert refused["error"] == "workflows/three.json is foreign: It came in an egg of kitchen."
    assert "foreign" in desk.cli("workflows", "list").stdout
    assert desk.cli("agents", "approve", "workflows/three.json").returncode == 0
    desk.run()
    desk.sees("done")


def test_one_letter_changed_on_disk_leaves_a_workflow_foreign(desk: Desk) -> None:
    path = desk.home / "brainstem" / "workflows" / "three.json"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    QuarantineList(desk.home / "held.json", desk.home).hold(path, digest, "It came in an egg of kitchen.", "kitchen.egg")  # fmt: skip
    path.write_bytes(path.read_bytes() + b"\n")
    refused = desk.ask("POST", "/workflows/three/run", {}, 403)
    assert refused["error"].startswith("workflows/three.json is foreign: It came in an egg of kitchen.")
    assert "It was changed since" in refused["error"]
    changed = hashlib.sha256(path.read_bytes()).hexdigest()
    assert desk.ask("POST", "/workflows/three/approve", {"sha256": digest}, 409)["error"]
    desk.ask("POST", "/workflows/three/approve", {"sha256": changed})
    desk.run()
    desk.sees("done")


def test_routes_are_the_operators_alone(desk: Desk) -> None:
    for method, path in (
        ("GET", "/workflows"), ("GET", "/workflows/three"), ("POST", "/workflows/three/run"),
        ("POST", "/workflows/pause"), ("POST", "/workflows/resume"), ("POST", "/workflows/abort"),
    ):  # fmt: skip
        assert desk.request(method, path, {} if method == "POST" else None).status == 403, path


def test_commands_run_pause_resume_and_abort(desk: Desk, model: HeldModel) -> None:
    model.held.add("one")
    assert "step 1 of 3 · Ann" in desk.cli("workflows", "run", "three").stdout
    model.wait_for("one")
    assert "Three: running, step 1 of 3 · Ann" in desk.cli("workflows", "list").stdout
    assert "paused" in desk.cli("workflows", "pause").stdout
    assert "running" in desk.cli("workflows", "resume").stdout
    assert desk.cli("workflows", "interrupt", "hello").returncode == 0
    model.wait_for("hello")
    assert '"status": "aborted"' in desk.cli("workflows", "abort", "--json").stdout
    assert desk.cli("workflows", "resume").returncode == 4
    shown = desk.cli("workflows", "show", "three").stdout
    assert "2. Bob\n   two after {Ann}" in shown


STORIES = (
    "The library opens on Sundays from May. Readers asked for six years. Some want the money for schools.",
    "A storm closed the harbour. Three boats wait outside. Nobody is hurt.",
)


def newsletter(desk: Desk, story: Path) -> list[dict[str, Any]]:
    assert desk.cli("workflows", "run", "debate", "--file", f"story={story}").returncode == 0
    events = desk.sees("done")
    return [one for one in events if one["kind"] == "twin_response"][-4:]


def test_debate_without_a_model_quotes_its_story(offline: Desk, tmp_path: Path) -> None:
    texts = []
    for number, story in enumerate(STORIES):
        file = tmp_path / f"{number}.txt"
        file.write_text(story)
        offline.ask("POST", "/sessions", {})
        answers = newsletter(offline, file)
        assert [one["by"] for one in answers] == ["Reporter", "Debater A", "Debater B", "Editor"]
        assert all(one["text"].startswith("(no model) ") for one in answers)
        sentences = [f"{one}." for one in story.rstrip(".").split(". ")]
        assert sentences[0] in answers[1]["text"] and sentences[-1] in answers[2]["text"]
        assert sentences[0] in answers[3]["text"] and sentences[-1] in answers[3]["text"]
        texts.append(answers[3]["text"])
    assert texts[0] != texts[1]


def test_debate_takes_the_story_of_its_folder(offline: Desk) -> None:
    folder = offline.home / "brainstem" / "workflows"
    folder.mkdir(exist_ok=True)
    (folder / "story.txt").write_text(STORIES[1])
    offline.run("debate")
    assert "A storm closed the harbour." in offline.sees("done")[-2]["text"]


def test_debate_without_a_story_asks_hacker_news_and_debates_no_failure(offline: Desk) -> None:
    (offline.home / "brainstem" / ".env").write_text("HACKER_NEWS_API=http://127.0.0.1:1/v0\n")
    offline.ask("POST", "/chat", {"user_input": "hacker news?"})  # reads the variable
    offline.run("debate")
    events = offline.sees("paused")
    tools = [one["text"] for one in events if one["kind"] == "tool_dispatch"]
    assert tools == ["HackerNews", "HackerNews"]
    assert {one["to"] for one in events if one.get("on_behalf_of")} == {"Reporter"}
    assert "HackerNews: Hacker News did not answer" in events[-1]["text"]


def test_workflow_from_an_egg_waits_for_approval(desk: Desk, tmp_path: Path) -> None:
    foreign = {**THREE, "name": "foreign", "title": "Foreign"}
    members = {
        "agent.py": agent_source("Kettle"),
        "rappid.json": json.dumps({"rappid": Eggs.rappid}),
        "workflows/foreign.json": json.dumps(foreign),
    }
    egg = Eggs(tmp_path).rapp1(members, variant="rapplication")
    done = desk.cli("egg", "hatch", egg, "--yes")
    assert done.returncode == 0, done.stderr
    (row,) = [one for one in desk.ask("GET", "/workflows")["workflows"] if one["name"] == "foreign"]
    assert row["foreign"]
    assert desk.cli("workflows", "run", "foreign").returncode == 5
    packed = desk.ask("POST", "/eggs/pack", {"into": str(tmp_path / "mine.egg")})["packed"]
    assert "workflows/foreign.json" in [one["path"] for one in packed["left_out"]]
    approved = desk.cli("agents", "approve", "workflows/foreign.json")
    assert approved.stdout.strip().endswith("workflows/foreign.json is approved.")
    assert desk.cli("workflows", "run", "foreign").returncode == 0
    desk.sees("done")


def test_workflow_in_a_twins_egg_is_listed_and_runs_once_exactly_it_is_approved(
    desk: Desk, tmp_path: Path
) -> None:
    members = {
        "rappid.json": json.dumps({"rappid": Eggs.rappid, "name": "gardener"}),
        "soul.md": "You garden.",
        "agents/kettle_agent.py": agent_source("Kettle"),
        "workflows/three.json": json.dumps({**THREE, "title": "Gardening"}),
    }
    egg = Eggs(tmp_path).rapp1(members, variant="organism")
    done = desk.cli("egg", "hatch", egg, "--yes")
    assert done.returncode == 0, done.stderr
    (row,) = [one for one in desk.ask("GET", "/workflows")["workflows"] if one["twin"]]
    assert (row["title"], row["twin"], bool(row["foreign"])) == ("Gardening", row["name"].split("/")[0], True)
    name = row["name"]
    listed = desk.cli("workflows", "list").stdout
    assert "foreign" in listed and f"It came in {row['origin']}." in " ".join(listed.split())
    refused = desk.ask("POST", f"/workflows/{quote(name, safe='')}/run", {}, 403)
    assert refused["do"] == f"Read it, then: rappd workflows approve {shlex.quote(name)}"
    assert desk.cli("workflows", "approve", name, "--json").returncode == 6
    (file,) = desk.home.glob("twins/*/workflows/three.json")
    read = desk.ask("GET", f"/workflows/{quote(name, safe='')}")
    text = file.read_text()
    file.write_text(text.replace("two after", "2 after"))
    changed = desk.ask("POST", f"/workflows/{quote(name, safe='')}/approve", {"sha256": read["sha256"]}, 409)
    assert "is not what you read" in changed["error"]
    file.write_text(text)
    assert desk.cli("workflows", "run", name).returncode == 5
    assert desk.cli("workflows", "approve", name, "--yes").returncode == 0
    assert desk.run(quote(name, safe=""))["name"] == name
    assert cues(desk.sees("done")) == ["one", TWO, THIRD]


def test_twin_plays_a_part_under_the_parts_name(desk: Desk, model: HeldModel) -> None:
    assert desk.cli("twins", "new", "gardener").returncode == 0
    desk.write({**THREE, "participants": [{"name": "Ann", "plays": "gardener"}, {"name": "Bob"}, {"name": "Cy"}]})  # fmt: skip
    started = desk.run()
    events = desk.sees("done")
    assert [one["by"] for one in events if one["kind"] == "twin_response"] == ["Ann", "Bob", "Cy"]
    recorded = desk.ask("GET", f"/threads/{started['thread']}")["events"]
    asked = [one["to"] for one in recorded if one["verb"] == "HELP"]
    assert asked[0].startswith("gardener-") and all(one.startswith("brainstem_") for one in asked[1:])
