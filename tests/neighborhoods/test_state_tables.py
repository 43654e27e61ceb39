"""The tables of pairings and of outbox rows: an end stays an end, and each waiting state can reach every end."""

from __future__ import annotations

from typing import Any, cast, get_args

import pytest

from envelopes.identity.node_card import NodeCard
from neighborhoods.durable_tables import OUTBOX_TRANSITIONS, OutboxEvent, OutboxState
from neighborhoods.pairing.messages import State
from neighborhoods.pairing.pairing_states import TRANSITIONS, PairingAttempt, PairingEvent

TABLES: list[tuple[Any, set[str], set[str], set[str]]] = [
    (
        TRANSITIONS,
        set(get_args(State)),
        set(get_args(PairingEvent)),
        {"paired", "differ", "stopped", "expired"},
    ),
    (
        OUTBOX_TRANSITIONS,
        set(get_args(OutboxState)),
        set(get_args(OutboxEvent)),
        {"done", "failed", "expired", "dropped"},
    ),
]


@pytest.mark.parametrize(("table", "states", "events", "ends"), TABLES, ids=["pairing", "outbox"])
def test_every_state_and_event_is_in_the_table(
    table: Any, states: set[str], events: set[str], ends: set[str]
) -> None:
    assert set(table) == states - ends
    assert {event for row in table.values() for event in row} == events
    first = next(iter(table))
    assert {first} | {state for row in table.values() for state in row.values()} == states


@pytest.mark.parametrize(("table", "states", "events", "ends"), TABLES, ids=["pairing", "outbox"])
def test_every_waiting_state_reaches_every_end(
    table: Any, states: set[str], events: set[str], ends: set[str]
) -> None:
    for first in table:
        reached, pending = {first}, [first]
        while pending:
            after = set(table.get(pending.pop(), {}).values()) - reached
            reached |= after
            pending += after
        assert ends <= reached, first


@pytest.mark.parametrize("event", get_args(PairingEvent))
@pytest.mark.parametrize("state", get_args(State))
def test_attempt_changes_by_the_table_alone(state: State, event: PairingEvent) -> None:
    attempt = PairingAttempt("id", "asks", cast(NodeCard, None), expires_at=0.0, state=state)
    changed = attempt.happen(event)
    after = TRANSITIONS.get(state, {}).get(event)
    assert (changed, attempt.state) == (after is not None, after or state)
