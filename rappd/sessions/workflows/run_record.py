"""A run as the record of its session tells it: what is written down, and what is read back after a restart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import orjson

from envelopes.envelope import DONE, HELP, NOTE
from rappd.sessions.workflows.definition import Participant, Workflow
from rappd.sessions.workflows.run_state import Status
from rappd.store.records import Event

WORKFLOW, DEMO_STEP, PREEMPTED = "workflow", "demo_step", "preempted"
"""Kinds of NOTEs."""
OPERATOR = ""
"""The starter of a run who is at this computer; others are device ids."""
_NO_MODEL = "(no model) "


@dataclass(slots=True)
class RunRecord:
    """The last run of a session, as its record tells it. ``step`` is the first one that is not answered."""

    id: str
    name: str
    session: str
    sha256: str
    starter: str
    files: dict[str, str]
    plays: dict[str, str] = field(default_factory=dict)
    """Players by participants, where another was chosen than the file names."""
    status: Status = Status.RUNNING
    step: int = 1
    noted_step: int = 0
    answers: dict[str, str] = field(default_factory=dict)


class RunPosition(TypedDict):
    """The step at which a run stands, and its status."""

    id: str
    name: str
    title: str
    step: int
    steps: int
    participant: str
    status: str


def position(run: RunRecord, workflow: Workflow) -> RunPosition:
    """The ``workflow`` field of NOTEs and HELPs: where the run stands."""
    step = min(run.step, len(workflow.steps))
    return {
        "id": run.id, "name": run.name, "title": workflow.title, "step": step, "steps": len(workflow.steps),
        "participant": workflow.steps[step - 1].participant, "status": run.status.value,
    }  # fmt: skip


def lost(run: RunRecord) -> RunPosition:
    """The same for a run whose file is not what it was: it is aborted."""
    return {
        "id": run.id, "name": run.name, "title": run.name, "step": run.step, "steps": 0, "participant": "",
        "status": Status.ABORTED.value,
    }  # fmt: skip


def beginning(run: RunRecord) -> dict[str, Any]:
    """The fields of the first NOTE beside those."""
    return {
        "session": run.session,
        "sha256": run.sha256,
        "starter": run.starter,
        "files": run.files,
        "plays": run.plays,
    }


def cast_of(workflow: Workflow) -> list[dict[str, str]]:
    """Participants of a workflow with role and persona, as exports of the session list them without the workflow's file."""
    driver = {"name": workflow.driver.name, "role": "coordinator", "persona": workflow.driver.persona}
    cast = [
        {
            "name": one.name,
            "role": "twin",
            "persona": ": ".join(text for text in (one.role, one.persona) if text),
        }
        for one in workflow.asked
    ]
    return [driver, *cast]


def player_of(run: RunRecord, played: Participant) -> str:
    """The name of who plays a participant; "" is the brainstem."""
    return run.plays.get(played.name, played.plays)


def plain_answer(text: str) -> str:
    """An answer as it is put into later cues."""
    return text.strip().removeprefix(_NO_MODEL)


def is_running(records: Sequence[Event]) -> bool:
    """True when the last of these records that tells of a run says that it is under way."""
    for record in reversed(records):
        note = orjson.loads(record.body)["data"].get("workflow")
        if isinstance(note, dict):
            return note.get("status") == Status.RUNNING
    return False


def last_run(records: Iterable[Event], session: str) -> RunRecord | None:
    """The run that was started last in a session, as it stands at the end of these records; None where none was.

    Records that were copied from another session start nothing here.
    """
    run: RunRecord | None = None
    asked: dict[str, tuple[int, str]] = {}
    for record in records:
        if record.verb == DONE and record.id in asked and run is not None:
            step, participant = asked.pop(record.id)
            data = orjson.loads(record.body)["data"]
            run.answers[participant] = plain_answer(str(data.get("response") or data.get("result") or ""))
            run.step = step + 1
        if record.verb not in (NOTE, HELP):
            continue
        data = orjson.loads(record.body)["data"]
        note = data.get("workflow")
        if not isinstance(note, dict):
            continue
        if "begun" in data:
            run = RunRecord(str(note["id"]), str(note["name"]), **data["begun"])
            if run.session != session:
                run = None
            asked.clear()
        if run is None or note["id"] != run.id:
            continue
        if record.verb == HELP:
            asked[record.id] = (int(note["step"]), str(note["participant"]))
        else:
            run.status = Status(note["status"])
            if data.get("kind") == DEMO_STEP:
                run.noted_step = int(note["step"])
    return run
