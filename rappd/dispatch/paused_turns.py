"""Turns that wait for a program to run its own tools: found again by the ids of their calls, in the record alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agents.brainstem.client_tools import hidden_turn
from agents.providers.provider import Message
from envelopes.envelope import DONE, ERROR, Envelope
from envelopes.program_input import ToolResult, following_turn, turn_of_call
from rappd.errors import NotFoundError, UsageProblemError

if TYPE_CHECKING:
    from rappd.dispatch.dispatcher import Dispatcher

_MOST_ATTEMPTS = 8
_MOST_ROUNDS = 64
"""Earlier turns of one conversation whose rounds are read."""


class NoSuchCallError(NotFoundError):
    """The result of a call that no turn of this caller's waits for."""

    code = "no_such_call"

    def __init__(self) -> None:
        super().__init__(
            "There is no such call of a tool that waits for its result.", do="Ask again from the beginning."
        )


async def continuation(
    dispatcher: Dispatcher, sender: str, results: Sequence[ToolResult]
) -> tuple[Envelope, str]:
    """The answer of the turn whose calls were made, and the id of the turn that goes on with them.

    That id is always the same, so that results which come twice get the recorded answer; after an answer that was
    refused or stopped it is another, since nothing came of that one. Raises ``NoSuchCallError``, also for a turn of
    another caller, and ``missing_result``.
    """
    turns = {turn_of_call(one.call) for one in results}
    paused = turns.pop() if len(turns) == 1 else ""
    answer = await dispatcher.recorded(sender, paused) if paused else None
    if answer is None or answer.verb != DONE or not answer.data.get("tool_calls"):
        raise NoSuchCallError
    called = [call["id"] for call in answer.data["tool_calls"]]
    given = {one.call for one in results}
    if not given <= set(called):
        raise NoSuchCallError
    if missing := [id for id in called if id not in given]:
        raise UsageProblemError(
            f"There is no result for {missing[0]}.",
            do="Send the results of all calls of a turn together.",
            code="missing_result",
        )
    for attempt in range(_MOST_ATTEMPTS):
        id = following_turn(paused, attempt)
        if not came_to_nothing(await dispatcher.recorded(sender, id)):
            break
    return answer, id


async def rounds_of(
    dispatcher: Dispatcher, sender: str, history: Sequence[Message]
) -> Mapping[str, Sequence[Message]]:
    """Rounds of agents that a program's history does not have, by the turns that they led to."""
    turns = list(dict.fromkeys(filter(None, map(hidden_turn, history))))[-_MOST_ROUNDS:]
    found = {}
    for turn in turns:
        answer = await dispatcher.recorded(sender, turn)
        rounds = answer.data.get("rounds") if answer is not None else None
        if isinstance(rounds, list) and rounds:
            found[turn] = rounds
    return found


def came_to_nothing(answer: Envelope | None) -> bool:
    """True for a refusal, so that a repeat may begin anew. What a crash cut off may have been done, and is not done again."""
    return answer is not None and answer.verb == ERROR and answer.data.get("reason") != "interrupted"
