"""A run of a workflow as a table: events in, actions out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.sessions.errors import WorkflowStateError
from rappd.sessions.workflows.run_state import Action, Ask, RunState, Status, Stop, Write

RUNNING, PAUSED = Write(Status.RUNNING), Write(Status.PAUSED)
AGAIN = Write(Status.RUNNING, "no", again=True)
PREEMPTED = Write(Status.RUNNING, preempted=True)


def after(state: RunState, *events: str) -> list[Action]:
    """The action after the last of these events."""
    actions: list[Action] = []
    for event in events:
        name, _, argument = event.partition(" ")
        actions = getattr(state, name)(*([argument] if argument else []))
    return actions


@pytest.mark.parametrize(
    ("events", "actions"),
    [
        (["start"], [RUNNING, Ask(1)]),
        (["start", "answered"], [Ask(2)]),
        (["start", "answered", "answered"], [Write(Status.DONE)]),
        (["start", "failed no"], [AGAIN, Ask(1)]),
        (["start", "failed no", "failed no"], [Write(Status.PAUSED, "no")]),
        (["start", "failed no", "answered", "failed no"], [AGAIN, Ask(2)]),
        (["start", "failed no", "failed no", "resume"], [RUNNING, Ask(1)]),
        (["start", "failed no", "failed no", "resume", "failed no"], [AGAIN, Ask(1)]),
        (["start", "pause", "failed no"], [Write(Status.PAUSED, "no")]),
        (["start", "pause"], [PAUSED]),
        (["start", "pause", "answered"], []),
        (["start", "pause", "answered", "resume"], [RUNNING, Ask(2)]),
        (["start", "pause", "resume"], [RUNNING]),
        (["start", "pause", "answered", "failed no"], [Write(Status.PAUSED, "no")]),
        (["start", "abort"], [Stop("stopped"), Write(Status.ABORTED)]),
        (["start", "pause", "answered", "abort"], [Write(Status.ABORTED)]),
        (["start", "abort", "answered"], []),
        (["start", "answered", "abort", "answered"], []),
        (["start", "interject"], [Stop("preempted"), PREEMPTED]),
        (["start", "interject", "interject"], []),
        (["start", "interject", "interjection_over"], [RUNNING, Ask(1)]),
        (["start", "interject", "interject", "interjection_over"], []),
        (["start", "interject", "interject", "interjection_over", "interjection_over"], [RUNNING, Ask(1)]),
        (["start", "answered", "interject", "interjection_over"], [RUNNING, Ask(2)]),
        (["start", "interject", "answered", "interjection_over"], [RUNNING, Ask(2)]),
        (["start", "interject", "pause", "interjection_over"], []),
        (["start", "interject", "pause", "interjection_over", "resume"], [RUNNING, Ask(1)]),
        (["start", "interject", "pause", "resume"], [RUNNING]),
        (["start", "pause", "interject"], [Stop("preempted"), Write(Status.PAUSED, preempted=True)]),
        (["start", "abort", "interject"], []),
        (["interject", "start"], [RUNNING]),
    ],
)  # fmt: skip
def test_run_event_leads_to_these_actions(events: list[str], actions: list[Action]) -> None:
    assert after(RunState(2), *events) == actions


@pytest.mark.parametrize(
    "events",
    [
        ["start", "resume"],
        ["start", "pause", "pause"],
        ["start", "abort", "abort"],
        ["start", "answered", "answered", "pause"],
        ["start", "answered", "answered", "abort"],
    ],
)
def test_run_in_another_state_refuses(events: list[str]) -> None:
    with pytest.raises(WorkflowStateError):
        after(RunState(2), *events)


@pytest.mark.parametrize(
    ("step", "status", "actions"),
    [
        (2, Status.RUNNING, [RUNNING, Ask(2)]),
        (3, Status.RUNNING, [Write(Status.DONE)]),
        (2, Status.PAUSED, []),
    ],
)
def test_run_after_a_restart_asks_the_open_step(step: int, status: Status, actions: list[Action]) -> None:
    assert RunState(2, step=step, status=status).start() == actions


EVENTS = ["answered", "failed no", "pause", "resume", "abort", "interject", "interjection_over"]


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_run_never_asks_twice_at_once_nor_skips(events: Sequence[str]) -> None:
    state, asked, step = RunState(3), 0, 0
    for event in ["start", *events]:
        if event.startswith(("answered", "failed")) and not asked:
            continue  # nothing is under way that could end
        if event == "interjection_over" and not state.interjections:
            continue
        try:
            actions = after(state, event)
        except WorkflowStateError:
            continue
        if event.startswith(("answered", "failed")):
            asked = 0
        for action in actions:
            if isinstance(action, Stop):
                assert asked
                asked = 0
            if isinstance(action, Ask):
                assert not asked and action.step - step in (0, 1)
                asked = step = action.step
    assert not (state.is_over and asked)
