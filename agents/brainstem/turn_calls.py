"""Calls of agents within a turn: read, performed, and told to who follows it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import orjson

from agents.brainstem.answer_slots import SenseOutput
from agents.brainstem.client_tools import NO_TOOLS, ClientTools, handed_out
from agents.brainstem.tool_call_checks import ReadCall, read_call
from agents.brainstem.turn_input import Ask, Modes, TurnTool
from agents.contract.read_only_actions import only_looks
from agents.errors import ModelUnavailableError
from agents.providers.offline_provider import OfflineBrain
from agents.providers.provider import Completion, Message, Usage
from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import complaint_in
from envelopes.events import Call, Piece, Result

log = logging.getLogger(__name__)


class TurnState(msgspec.Struct):
    """A turn under way."""

    ask: Ask
    modes: Modes
    messages: list[Message]
    sensed: SenseOutput
    client: ClientTools = NO_TOOLS
    first: int = 0
    """The number of its first round: 1 where it begins with results."""
    given: int = 0
    """Messages that were there when the turn began."""
    tool_calls: list[dict[str, Any]] = []
    logs: list[str] = msgspec.field(default_factory=list)
    slush: dict[str, Any] | None = None
    model: str = ""
    provider: str = ""
    notice: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    calls: int = 0
    used: list[str] = msgspec.field(default_factory=list)
    problem: ModelUnavailableError | None = None
    """The reason why keyword matching answers in the place of a model."""
    succeeded: bool = False
    """An agent was performed, and did not complain."""
    complaint: str = ""
    """The last complaint of an agent, where none succeeded."""

    def failure(self, answered_by: str) -> str:
        """The reason why the text answers nothing, as ``Answer.failure`` has it; "" where it answers."""
        if self.problem is not None:
            return self.problem.with_advice()
        if answered_by == OfflineBrain.name and not self.calls and not self.ask.without_model:
            return "No model answers, and no agent here does that — rappd models connect"
        return self.complaint


async def run_calls(turn: TurnState, completion: Completion, tools: list[dict[str, Any]]) -> None:
    """Performs what the model called, or hands it to the program whose tools it called."""
    if completion.by_model:
        calls = [
            read_call(
                call,
                tools,
                cut=completion.cut,
                exists=lambda name: _find(turn.ask, completion, name) is not None,
            )
            for call in completion.tool_calls
        ]
    else:
        calls = [ReadCall(call, _arguments(call.arguments)) for call in completion.tool_calls]
    if turn.client.offered:
        calls, turn.tool_calls = handed_out(
            turn.client, calls, turn.ask.id, earlier=len(turn.messages) > turn.given
        )
    turn.messages.append(
        {
            "role": "assistant",
            "content": completion.text,
            "tool_calls": [
                {
                    "id": read.call.id,
                    "type": "function",
                    "function": {"name": read.call.name, "arguments": read.call.arguments},
                }
                for read in calls
            ],
        }
    )  # fmt: skip
    given = {call["id"] for call in turn.tool_calls}
    calls = [read for read in calls if read.call.id not in given]
    if calls:
        await _perform(turn, calls, completion)


async def _perform(turn: TurnState, calls: list[ReadCall], completion: Completion) -> None:
    upstream = turn.slush
    if len(calls) == 1:
        outcomes = [await _run_call(turn, calls[0], upstream, completion)]
    else:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run_call(turn, read, upstream, completion)) for read in calls]
        outcomes = [task.result() for task in tasks]
    slush: dict[str, Any] = {}
    for read, (content, log, found) in zip(calls, outcomes, strict=True):
        turn.logs.append(log)
        turn.messages.append(
            {"tool_call_id": read.call.id, "role": "tool", "name": read.call.name, "content": content}
        )
        if found is not None:
            slush[read.call.name] = found
    if slush:
        turn.slush = next(iter(slush.values())) if len(slush) == 1 else slush


async def _run_call(
    turn: TurnState, read: ReadCall, upstream: dict[str, Any] | None, completion: Completion
) -> tuple[str, str, dict[str, Any] | None]:
    ask, called = turn.ask, read.call.name
    if read.repairs:
        log.info("call of %s by %s repaired: %s", called, turn.model, "; ".join(read.repairs))
    tool = _find(ask, completion, called)
    if tool and tool.kind == "look" and not read.problem and not only_looks(_name(tool), read.arguments):
        result_text = "That is done on the computer only."
        return f"Error: {result_text}", f"[{called}] ERROR: {result_text}", None
    if read.unknown or (tool is None and not read.problem):
        result_text = read.problem or f"Agent '{called}' not found."
        return result_text, f"[{called}] {result_text}", None
    name = called if tool is None else _name(tool)
    show = _CallEvents(turn, name, read.arguments)
    if read.problem:  # a person sees that the model tried, and the model may try again
        ran = AgentResult(False, read.problem, None, 0.0)
    else:
        assert tool is not None
        on_piece = show.piece if ask.emit else None
        ran = await tool.handler(ask.context, read.arguments, upstream, on_piece)
    show.result(ran)
    if not read.problem:
        complaint = "" if ran.ok else ran.result or "it failed"
        if ran.ok and ran.result.startswith("{"):
            complaint = complaint_in(ran.result)
        turn.succeeded = turn.succeeded or not complaint
        turn.complaint = "" if turn.succeeded else f"{name}: {complaint}"
    if not read.problem and name not in turn.used:
        turn.used.append(name)
    result_text = ran.told(turn.modes.result_characters)
    if ran.ok:
        return result_text, f"[{name}] {result_text}", ran.slush
    return f"Error: {result_text}", f"[{name}] ERROR: {result_text}", None


class _CallEvents:
    """The two events of a call, told to those who follow the turn."""

    def __init__(self, turn: TurnState, name: str, arguments: dict[str, Any]) -> None:
        turn.calls += 1
        self._emit, self._id, self._name = turn.ask.emit, f"c{turn.calls}", name
        if self._emit is not None:
            self._emit(Call(self._id, name, arguments))

    def piece(self, text: str) -> None:
        """Tells a part of the result that the agent has yielded by now."""
        if self._emit is not None:
            self._emit(Piece(self._id, self._name, text))

    def result(self, ran: AgentResult) -> None:
        """Tells how the call ended."""
        if self._emit is not None:
            self._emit(Result(self._id, self._name, ran.ok, ran.result, round(ran.seconds, 3)))


def _find(ask: Ask, completion: Completion, name: str) -> TurnTool | None:
    """The tool of that name that the model which made the completion may call."""
    found = next((one for one in ask.tools() if one.name == name), None)
    return None if found is not None and found.operators and completion.unconfigured else found


def _name(tool: TurnTool) -> str:
    return tool.name if tool.agent is None else tool.agent.name


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
