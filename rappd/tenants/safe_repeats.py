"""Calls that may be made a second time: of a turn that a kill cut off, those that were made before say if it is begun again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.contract.agent import Agent
from rappd.dispatch.turns import RecordedCall
from rappd.tenants.primitives import CORE_ID

_DELAY = "delay"


def is_pure(agent: Agent) -> bool:
    """True for a listener that reaches nothing but its own storage, so that a call without an answer left no trace."""
    return agent.listener is not None and not agent.prompt and (agent.needs is None or not _reaches(agent))


def may_repeat(
    calls: Sequence[RecordedCall], find: Callable[[str], Agent | None], *, timed: str = ""
) -> bool:
    """True where a turn with these calls does no harm if it is performed again. ``find`` gives an agent by its name.

    The answers of calls that the turn ``timed`` made itself count, and are not made again.
    """
    return all(_is_harmless(one, find, len(calls)) for one in calls if not _counts(one, timed))


def _counts(call: RecordedCall, timed: str) -> bool:
    return call.parent == timed and call.answer is not None


def _is_harmless(call: RecordedCall, find: Callable[[str], Agent | None], number: int) -> bool:
    if call.recipient == CORE_ID:  # a delay that is begun again is the same one
        return call.agent == _DELAY
    agent = find(call.agent)
    if agent is None:
        return False
    if agent.idempotent:
        return True
    if agent.prompt:  # its rounds cost, and change nothing; what it called, or planned, would stand here
        return number == 1
    return is_pure(agent) and (call.answer is None or not (agent.listener and agent.listener.stateful))


def _reaches(agent: Agent) -> bool:
    assert agent.needs is not None
    return any(agent.needs.as_json().values())
