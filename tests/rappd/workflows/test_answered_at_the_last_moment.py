"""A step whose answer is recorded at the very moment at which its turn is stopped: the answer counts."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import orjson

from envelopes.envelope import DONE
from rappd.store.records import Event
from rappd.workflows import run_record as noting
from rappd.workflows.coordinator import Coordinator, _Run
from rappd.workflows.definition import Participant, Step, Workflow
from rappd.workflows.run_record import RunRecord
from rappd.workflows.run_state import RunState

WORKFLOW = Workflow("two", "Two", [Participant("Ann")], [Step("Ann", "one"), Step("Ann", "two")])


class Record:
    """A session's record, in which the answer to the step "asked" stands."""

    async def events(self, thread: str, **_: Any) -> list[Event]:
        body = orjson.dumps({"data": {"response": "done"}})
        return [Event(1, "thread", 1, 0, DONE, "ann", "owner", "asked", body, b"", b"")]


async def test_interrupted_step_that_was_answered_is_not_noted_as_interrupted() -> None:
    notes: list[tuple[str, str]] = []

    async def flush() -> None: ...

    async def cut_off() -> Any:
        await asyncio.sleep(3600)

    def note(session: object, kind: str, *, by: str, text: str, **_: Any) -> None:
        notes.append((kind, text))

    def nobody(_: str) -> None:
        return None

    sessions: Any = SimpleNamespace(record=Record(), note=note, participants=None)
    dispatcher: Any = SimpleNamespace(interrupt=lambda id, reason: None, flush=flush)
    coordinator = Coordinator(dispatcher, sessions, SimpleNamespace(), nobody)  # type: ignore[arg-type]
    record = RunRecord("run", "two", "session", "", "a phone that is gone", {})
    session: Any = SimpleNamespace(id="session", thread="thread", closed=False)
    run = _Run(session, WORKFLOW, record, RunState(2))
    run.state.start()
    run.turn, run.asked = asyncio.create_task(cut_off()), "asked"
    coordinator._runs["session"] = run

    async def answers_the_owner() -> None: ...

    work = coordinator.interject(session, answers_the_owner)
    assert work is not None
    await work
    assert noting.PREEMPTED not in [kind for kind, _ in notes], notes
    assert ("demo_step", "Step 2 of 2: Ann") in notes, "the step after it is the next"
