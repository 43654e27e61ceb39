"""The Coordinator beside a record that a test makes: an answer at the last moment, and a disk without room."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from envelopes.envelope import DONE, HELP, Envelope
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import StoreError
from rappd.sessions.workflows import run_record as noting
from rappd.sessions.workflows.coordinator import Coordinator, _Run
from rappd.sessions.workflows.definition import Participant, Step, Workflow
from rappd.sessions.workflows.run_record import RunRecord
from rappd.sessions.workflows.run_state import RunState, Status
from rappd.store.records import Event

WORKFLOW = Workflow("two", "Two", [Participant("Ann")], [Step("Ann", "one"), Step("Ann", "two")])


class Record:
    """A session's record, in which the answer to the step "asked" stands."""

    async def events(self, thread: str, **_: Any) -> list[Event]:
        body = orjson.dumps({"data": {"response": "done"}})
        return [Event(1, "thread", 1, 0, DONE, "ann", "owner", "asked", body, b"", b"")]


async def test_interrupted_step_that_was_answered_is_not_noted_as_interrupted() -> None:
    notes: list[tuple[str, str]] = []

    async def flush() -> None: ...

    async def cut_off(_: Turn) -> Any:
        await asyncio.sleep(3600)

    def note(session: object, kind: str, *, by: str, text: str, **_: Any) -> None:
        notes.append((kind, text))

    def nobody(_: str) -> None:
        return None

    sessions: Any = SimpleNamespace(record=Record(), note=note, participants=None)
    dispatcher: Any = SimpleNamespace(flush=flush)
    coordinator = Coordinator(dispatcher, sessions, SimpleNamespace(), nobody)  # type: ignore[arg-type]
    record = RunRecord("run", "two", "session", "", "a phone that is gone", {})
    session: Any = SimpleNamespace(id="session", thread="thread", closed=False)
    run = _Run(session, WORKFLOW, record, RunState(2))
    run.state.start()
    run.turn = Turn(Envelope("asked", "owner", "ann", HELP, {}), Caller("tether"), cut_off).begin()
    coordinator._runs["session"] = run

    async def answers_the_owner() -> None: ...

    work = coordinator.interject(session, answers_the_owner)
    assert work is not None
    await work
    assert noting.PREEMPTED not in [kind for kind, _ in notes], notes
    assert ("demo_step", "Step 2 of 2: Ann") in notes, "the step after it is the next"


@pytest.mark.parametrize(("action", "before"), [("pause", Status.RUNNING), ("resume", Status.PAUSED)])
async def test_change_that_cannot_be_written_down_is_none(action: str, before: Status) -> None:
    is_full = True
    notes: list[str] = []

    async def note_first(session: object, kind: str, *, by: str, text: str, **_: Any) -> None:
        if is_full:
            raise StoreError("The disk is full.", do="Make room.")
        notes.append(text)

    async def flush() -> None: ...

    def nobody(_: str) -> None:
        return None

    sessions: Any = SimpleNamespace(record=Record(), note_first=note_first, participants=None)
    coordinator = Coordinator(SimpleNamespace(flush=flush), sessions, SimpleNamespace(), nobody)  # type: ignore[arg-type]
    session: Any = SimpleNamespace(id="session", thread="thread", closed=False)
    record = RunRecord("run", "two", "session", "", "", {}, status=before)
    run = _Run(session, WORKFLOW, record, RunState(2, status=before))
    run.state.asking = True  # a turn is under way, as it may be in both states
    coordinator._runs["session"] = run
    with pytest.raises(StoreError):
        await coordinator.control(session, action)
    assert (run.state.status, run.record.status, notes) == (before, before, [])
    is_full = False
    shown = await coordinator.control(session, action)
    assert shown["status"] != before and len(notes) == 1
