"""Session eggs by the command line and the routes: export, open, go on, and refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from rappd.sessions.replay_page import replay_page
from twins.eggs.readers.sessions import read_session


def run(desk: RunningDaemon, *words: str) -> Any:
    done = desk.cli(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def egg(desk: RunningDaemon, tmp_path: Path) -> Path:
    """A session of two questions as an egg, its signature beside it."""
    run(desk, "sessions", "open")
    run(desk, "sessions", "say", "first words")
    run(desk, "sessions", "say", "second words")
    path = tmp_path / "session.egg"
    run(desk, "sessions", "export", "--format", "egg", "--output", str(path))
    return path


def test_export_opens_as_it_was_with_a_rappid_of_its_own(
    desk: RunningDaemon, egg: Path, tmp_path: Path
) -> None:
    found = read_session(egg)
    assert (found.page, found.page_pinned, found.transcript_pinned) == (replay_page(), True, True)
    live = run(desk, "sessions", "show")["events"]
    assert [(one.event, one.kind, one.text) for one in found.events] == [
        (one["seq"], one["kind"], one["text"]) for one in live
    ]
    assert [(one.name, one.role) for one in found.participants] == [("Owner", "operator"), ("desk", "twin")]
    again = tmp_path / "again.egg"
    desk.stop()  # the record alone is enough
    done = desk.cli("egg", "pack", "--form", "session", "-o", str(again))
    assert done.returncode == 0, done.stderr
    assert read_session(again).rappid != found.rappid
    assert read_session(again).events == found.events
    told = desk.cli("sessions", "open", str(egg))
    assert "Page and transcript are what their hashes say" in told.stdout
    assert "nothing is replayed" in told.stdout + told.stderr


def test_branch_is_a_live_session_with_the_events_up_to_there(
    desk: RunningDaemon, egg: Path, tmp_path: Path
) -> None:
    found = read_session(egg)
    at = next(one.event for one in found.events if one.kind == "twin_response")
    row = run(desk, "sessions", "branch", str(egg), "--at", str(at))
    assert (row["current"], row["closed"]) == (True, False)
    events = run(desk, "sessions", "show", row["id"])["events"]
    said = [(one["kind"], one["by"], one["text"]) for one in events if one["kind"] != "branch"]
    assert said == [(one.kind, one.by, one.text) for one in found.events if one.event <= at and one.text]
    assert all(one["imported"] for one in events if one["kind"] != "branch")
    assert (events[-1]["parent_rappid"], events[-1]["branch_at_event"]) == (found.rappid, at)
    answer = run(desk, "sessions", "say", "and now?")["answer"]
    assert answer["text"] == "fake-llm: and now?"
    child = tmp_path / "child.egg"
    run(desk, "sessions", "export", "--format", "egg", "--output", str(child))
    grown = read_session(child)
    assert (grown.parent_rappid, grown.branch_at_event) == (found.rappid, at)
    wrong = desk.cli("sessions", "branch", str(egg), "--at", "99")
    assert (wrong.returncode, "Its events go from 1 to" in wrong.stderr) == (4, True)


PANEL = {
    "name": "panel", "title": "Panel",
    "driver": {"name": "Coordinator", "persona": "Lets each finish."},
    "participants": [{"name": "Ann", "role": "doubts", "persona": "You are short."}, {"name": "Bob"}],
    "steps": [{"participant": "Ann", "cue": "rain?"}, {"participant": "Bob", "cue": "after {Ann}"}],
}  # fmt: skip


def test_egg_lists_everybody_who_spoke_also_after_replay_and_branch(
    desk: RunningDaemon, tmp_path: Path
) -> None:
    folder = desk.home / "brainstem" / "workflows"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "panel.json").write_text(json.dumps(PANEL))
    run(desk, "sessions", "open")
    run(desk, "sessions", "say", "hello")
    run(desk, "workflows", "run", "panel")
    desk.wait_for(lambda: "Panel is done." in str(run(desk, "sessions", "show")), what="the panel to be done")
    paths = [tmp_path / f"{name}.egg" for name in ("first", "replayed", "branched")]
    run(desk, "sessions", "export", "--format", "egg", "--output", str(paths[0]))
    run(desk, "sessions", "branch", str(paths[0]))
    run(desk, "sessions", "export", "--format", "egg", "--output", str(paths[1]))
    run(desk, "sessions", "branch")
    run(desk, "sessions", "export", "--format", "egg", "--output", str(paths[2]))
    for path in paths:
        found = [(one.name, one.role, one.persona) for one in read_session(path).participants]
        assert found == [
            ("Owner", "operator", ""),
            ("desk", "twin", ""),
            ("Coordinator", "coordinator", "Lets each finish."),
            ("Ann", "twin", "doubts: You are short."),
            ("Bob", "twin", ""),
        ], path.name


def test_branch_carries_over_nothing_that_ends_or_runs(desk: RunningDaemon, tmp_path: Path) -> None:
    hostile = [
        {"event": n, "kind": kind, "by": "Owner", "data": {"text": kind, "workflow": {"status": "running"}}}
        for n, kind in enumerate(["session_end", "workflow", "demo_step", "branch", "operator_input"])
    ]
    egg = tmp_path / "hostile.egg"
    egg.write_text(json.dumps({"schema": "brainstem-egg/2.3-session", "transcript": hostile}))
    row = run(desk, "sessions", "branch", str(egg))
    events = run(desk, "sessions", "show", row["id"])["events"]
    assert [one["kind"] for one in events] == ["note"] * 4 + ["operator_input", "branch"]
    assert not any("workflow" in one for one in events)
    assert run(desk, "sessions", "say", "still open?")["answer"]["text"] == "fake-llm: still open?"


def test_every_verb_on_eggs_names_the_command_that_opens_it(desk: RunningDaemon, egg: Path) -> None:
    for verb in ("inspect", "plan", "hatch"):
        done = desk.cli("egg", verb, str(egg))
        assert (done.returncode, "rappd sessions open session.egg" in done.stdout) == (0, True)


@pytest.mark.parametrize("what", ["page", "transcript"])
def test_changed_egg_exits_5_everywhere_and_keeps_nothing(
    desk: RunningDaemon, egg: Path, tmp_path: Path, what: str
) -> None:
    changed = tmp_path / "changed.egg"
    old, new = ("STEP_MS = 900", "STEP_MS = 901") if what == "page" else ("first words", "worst words")
    changed.write_text(egg.read_text().replace(old, new))
    waiting = desk.home / "eggs" / ".waiting"
    shutil.rmtree(waiting, ignore_errors=True)
    for words in (
        ("sessions", "open"),
        ("sessions", "branch"),
        ("egg", "inspect"),
        ("egg", "plan"),
        ("egg", "hatch"),
    ):
        done = desk.cli(*words, str(changed))
        assert (done.returncode, "damaged" in done.stderr) == (5, True), (words, done.stderr)
    assert not waiting.exists() or list(waiting.iterdir()) == []


def test_likely_secret_stops_an_export_until_it_is_allowed(desk: RunningDaemon, tmp_path: Path) -> None:
    run(desk, "sessions", "open")
    run(desk, "sessions", "say", "my key is sk-proj-" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY" * 2)
    out = tmp_path / "secret.egg"
    words = ("sessions", "export", "--format", "egg", "--output", str(out))
    done = desk.cli(*words, "--json")
    assert (done.returncode, out.exists()) == (5, False)
    ids = {one["id"] for one in json.loads(done.stderr)["findings"]}
    assert desk.cli(*words, *(word for id in ids for word in ("--allow", id))).returncode == 0


def test_routes_of_session_eggs_need_the_operator(desk: RunningDaemon, egg: Path) -> None:
    id = desk.post("/sessions/eggs", {"path": str(egg)}, control=True).json()["egg"]["id"]
    assert desk.post("/sessions/eggs", {"path": str(egg)}).status == 403
    assert desk.get(f"/sessions/eggs/{id}").status == 403
    assert desk.post(f"/sessions/eggs/{id}/branch", {}).status == 403
    frame = desk.get(f"/sessions/eggs/{id}", control=True).json()["frame"]
    elsewhere = {"Host": f"localhost:{desk.port}"}
    shown = desk.get(frame, headers=elsewhere)
    assert shown.status == 200
    assert "sandbox allow-scripts; default-src 'none'" in shown.headers["content-security-policy"]
    assert desk.get(frame).status == 404  # not at the operator's own origin
    assert desk.get(frame.replace(frame.split("/")[3], "0" * 64), headers=elsewhere).status == 404
