"""One turn: model rounds and agent calls until there is an answer (RAPP v1 §8, loop of the reference)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import orjson
from msgspec.structs import replace

from agents.brainstem import prompt
from agents.brainstem.client_tools import NO_TOOLS, ClientTools, beside, handed_out
from agents.brainstem.model_calls import ReadCall, read_call
from agents.brainstem.prompt import Soul
from agents.brainstem.senses import MainStream, SenseOutput, Senses
from agents.brainstem.text_calls import (
    NOT_UNDERSTOOD,
    TextCallHold,
    call_in_text,
    may_become_a_call,
    speaks_of_a_call,
)
from agents.contract.agent import Agent
from agents.contract.looking import only_looks
from agents.errors import ModelUnavailableError
from agents.providers.offline.brain import OfflineBrain
from agents.providers.pictures import parts, with_pictures
from agents.providers.provider import Completion, Message, ModelRequest, Provider, Usage
from agents.runtime.registry import AgentRegistry
from agents.runtime.result_text import OnPiece, complaint_in
from agents.runtime.runner import AgentResult, AgentRunner
from envelopes.codecs.pictures import Picture
from envelopes.events import Call, Delta, Emit, Notice, Piece, Result, Round, Thought, Waiting
from envelopes.program_input import ProgramInput, has_rounds

log = logging.getLogger(__name__)

UNFINISHED = "I ran out of steps before this was finished. Ask again, or ask for one part of it."
EMPTY = "The model's answer was empty. Ask again, or choose another model."
ONLY_THOUGHTS = "The model thought, but gave no answer. Ask again, or ask for less at once."
WITHHELD = "The model's server withheld this answer (content filter). Say it in other words."


class TurnTool(Protocol):
    """An agent that a turn may call: one of this machine, or of another one, whose ``agent`` is None.

    ``kind`` is ``look`` for a structural agent that may only look, ``spare`` for one that is not offered, and yet
    answers a model that calls it. ``operators``: no model server may call it that
    the operator did not configure. ``definition`` is the OpenAI tool definition.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def operators(self) -> bool: ...
    @property
    def definition(self) -> dict[str, Any]: ...
    @property
    def agent(self) -> Agent | None: ...
    @property
    def handler(self) -> CallTool: ...


CallTool = Callable[[Any, dict[str, Any], dict[str, Any] | None, OnPiece | None], Awaitable[AgentResult]]
"""(``Ask.context``, arguments, upstream slush, on_piece) -> the result; the daemon's dispatcher stands behind it."""


class Modes(Protocol):
    """The switches a turn obeys, read when the turn starts."""

    voice: bool
    twin: bool
    rounds: int
    result_characters: int


class Ask(msgspec.Struct):
    """The input of a turn. ``emit`` receives progress events while it runs, if anybody listens.

    ``caller``: who asks; agents serve others in other processes.
    ``tools`` lists what it may call, as it is at each moment; calls are given ``context``.
    ``pictures`` go with the sentence, to the model alone. ``remote``: asked from elsewhere, where faulty files
    are not named. ``on_round`` gets each round of a real model but the last.
    ``at_computer``: definitions of what only a person at the computer may do; None for that person.
    """

    user_input: str
    history: Sequence[Message]
    user_guid: str
    tools: Callable[[], Sequence[TurnTool]]
    context: Any
    caller: Hashable
    remote: bool
    emit: Emit | None = None
    without_model: str = ""
    """The answer of keyword matching, where it is the one that answers."""
    pictures: Sequence[Picture] = ()
    model: str = ""
    """The model chosen for this turn, "" for the usual one; ``model_do`` helps where it is gone."""
    model_do: str = ""
    at_computer: Sequence[dict[str, Any]] | None = None
    on_round: Callable[[Round], None] | None = None
    program: ProgramInput | None = None
    """Of a foreign program: its own tools, which it performs itself, its instructions, settings for the model."""
    id: str = ""
    """The turn's; calls of the program's tools lead back to it."""
    rounds: Mapping[str, Sequence[Message]] = {}
    """Of earlier turns, by their ids: rounds of agents that the program, whose history this is, never saw."""
    model_call: Callable[[], Awaitable[None]] | None = None
    """Awaited before each model round; it may refuse it."""


class Answer(msgspec.Struct):
    """The result of a turn. ``senses``: the contents of the workspace's own slots, by their keys.

    ``provider`` is who answered last, as screens show it; ``seconds`` is how long the turn took.
    ``agents_used``: names of the agents that were performed, where a model answered that was offered some; else None.
    ``failure``: the reason why the text answers nothing: the model failed, keyword matching found no agent, or every
    agent that was called failed; else "".
    ``tool_calls``: the program that asked has to make them, ``{"id", "name", "arguments"}``, and to come back with the results; ``rounds``
    are what led to them, where agents were performed. ``ending``: "length" or "filter" where the model did not end by itself.
    """

    text: str
    voice: str
    twin: str
    senses: dict[str, str]
    logs: list[str]
    model: str
    requested_model: str
    notice: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    provider: str = ""
    seconds: float = 0.0
    agents_used: list[str] | None = None
    failure: str = ""
    tool_calls: list[dict[str, Any]] = []
    rounds: list[Message] = []
    ending: str = ""


class _Turn(msgspec.Struct):
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
        """See ``Answer.failure``."""
        if self.problem is not None:
            return self.problem.with_advice()
        if answered_by == OfflineBrain.name and not self.calls and not self.ask.without_model:
            return "No model answers, and no agent here does that — rappd models connect"
        return self.complaint


class Brainstem:
    """One workspace's soul, senses, roster and model, ready for turns."""

    def __init__(
        self,
        *,
        soul: Soul,
        senses: Senses,
        roster: AgentRegistry,
        runner: AgentRunner,
        thinking: Provider,
        modes: Modes,
    ) -> None:
        """A turn goes by the senses as they were last looked at."""
        self.soul = soul
        self.senses = senses
        self.roster = roster
        self.runner = runner
        self.thinking = thinking
        self.modes = modes

    async def turn(self, ask: Ask) -> Answer:
        """Runs the loop to its end. Cancelling it stops the model call or the agent calls under way."""
        modes, began = self.modes, time.monotonic()
        own = _definitions(ask.tools())
        client = beside(own, ask.program) if ask.program is not None else NO_TOOLS
        messages = _messages(ask, client)
        first = 1 if ask.program is not None and ask.program.continues else 0
        turn = _Turn(ask, modes, messages, self.senses.now, client=client, first=first, given=len(messages))
        requested = ask.model or self.thinking.model
        tools = _offered(own, client)
        completion = Completion()
        for number in range(first, first + max(1, modes.rounds)):
            asked = time.monotonic()
            completion = await self._round(turn, tools, number)
            if not completion.tool_calls:
                break
            if (
                completion.prompt_sha256 and ask.on_round is not None
            ):  # the last one is the answer, recorded as that
                ask.on_round(round_of(completion, number + 1, time.monotonic() - asked))
            await self._run_calls(turn, completion, tools)
            if turn.tool_calls:
                break
        unfinished = bool(completion.tool_calls) and not turn.tool_calls
        if not completion.text and unfinished:
            completion = await self._round(turn, [], modes.rounds)
        text = completion.text
        if not text and not turn.tool_calls:
            text = _without_text(completion, unfinished=unfinished)
        found = turn.sensed.delimiters.split(text)
        answered_by = turn.provider or self.thinking.name
        return Answer(
            *found,
            turn.logs,
            turn.model or requested,
            requested,
            turn.notice,
            turn.usage,
            answered_by,
            time.monotonic() - began,
            turn.used if own and answered_by != OfflineBrain.name else None,
            turn.failure(answered_by),
            turn.tool_calls,
            turn.messages[turn.given :] if turn.tool_calls and _has_rounds(turn) else [],
            completion.ending if completion.ending in ("length", "filter") else "",
        )

    async def _round(self, turn: _Turn, tools: list[dict[str, Any]], number: int) -> Completion:
        emit = turn.ask.emit
        stream = MainStream(turn.sensed.delimiters) if emit else None
        hold = TextCallHold() if emit and tools else None

        def on_text(piece: str) -> None:
            assert emit is not None and stream is not None
            shown = stream.feed(hold.feed(piece) if hold else piece)
            if shown:
                emit(Delta(shown))

        def on_thought(piece: str) -> None:
            assert emit is not None
            emit(Thought(piece))

        def on_wait(seconds: float) -> None:
            assert emit is not None
            emit(Waiting(self.thinking.name, round(seconds)))

        request = ModelRequest(
            turn.messages,
            tools,
            lambda: self._prompt(turn, turn.ask.tools()),
            on_text=on_text if emit else None,
            on_thought=on_thought if emit else None,
            on_wait=on_wait if emit else None,
            round=number,
            extra=_extra(turn.ask),
            pictures=len(turn.ask.pictures),
            summaries=lambda: {
                one.tool_name: one.summary for one in _agents(turn.ask.tools()) if one.summary
            },
            chosen=turn.ask.model,
            chosen_do=turn.ask.model_do,
            clients=frozenset(turn.client.offered) if tools else frozenset(),
            tool_choice=turn.client.choice if number == turn.first else "auto",
            parameters=turn.ask.program.parameters if turn.ask.program is not None else {},
            via=turn.ask.program.via if turn.ask.program is not None else "",
            written_call=lambda text, whole: (
                call_in_text(text, [tool["function"]["name"] for tool in tools]) is not None
                if whole
                else may_become_a_call(text)
            ),
        )
        request.everyday = lambda: self._everyday(turn, request)
        if turn.ask.model_call is not None:
            await turn.ask.model_call()
        completion = await self.thinking.complete(request)
        if not _is_written_call(turn, completion, tools) and emit and stream:
            rest = stream.feed(hold.release() if hold else "") + stream.finish()
            if rest:
                emit(Delta(rest))
        turn.model = completion.model or turn.model
        turn.provider = completion.provider
        turn.problem = request.extra.get("problem") or turn.problem
        turn.usage.add(completion)
        if completion.notice and completion.notice not in turn.notice:
            turn.notice = f"{turn.notice} {completion.notice}".strip()
            if emit:
                emit(Notice(completion.notice))
        return completion

    def _everyday(self, turn: _Turn, request: ModelRequest) -> ModelRequest:
        """The same request without what is the operator's."""
        tools = _offered(_definitions(_everyday(turn.ask)), turn.client) if request.tools else []
        return replace(
            request, tools=tools, prompt=lambda: self._prompt(turn, _everyday(turn.ask)), everyday=None
        )

    async def _prompt(self, turn: _Turn, tools: Sequence[TurnTool]) -> str:
        ask, agents = turn.ask, _agents(tools)
        contexts = await self.runner.system_contexts(agents, ask.user_guid, ask.caller)
        return prompt.build(
            await self.soul.text(),
            contexts,
            agents,
            () if ask.remote else self.roster.unavailable(),
            () if ask.remote else self.roster.waiting(),
            voice=turn.modes.voice,
            twin=turn.modes.twin,
            sensed=turn.sensed,
            program=ask.program.system if ask.program is not None else "",
        )

    async def _run_calls(self, turn: _Turn, completion: Completion, tools: list[dict[str, Any]]) -> None:
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
            await self._perform(turn, calls, completion)

    async def _perform(self, turn: _Turn, calls: list[ReadCall], completion: Completion) -> None:
        upstream = turn.slush
        if len(calls) == 1:
            outcomes = [await self._run_call(turn, calls[0], upstream, completion)]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._run_call(turn, read, upstream, completion)) for read in calls
                ]
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
        self, turn: _Turn, read: ReadCall, upstream: dict[str, Any] | None, completion: Completion
    ) -> tuple[str, str, dict[str, Any] | None]:
        ask, called = turn.ask, read.call.name
        if read.repairs:
            log.info("call of %s by %s repaired: %s", called, turn.model, "; ".join(read.repairs))
        tool = _find(ask, completion, called)
        if tool and tool.kind == "look" and not read.problem and not only_looks(_name(tool), read.arguments):
            told = "That is done on the computer only."
            return f"Error: {told}", f"[{called}] ERROR: {told}", None
        if read.unknown or (tool is None and not read.problem):
            told = read.problem or f"Agent '{called}' not found."
            return told, f"[{called}] {told}", None
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
        told = ran.told(turn.modes.result_characters)
        if ran.ok:
            return told, f"[{name}] {told}", ran.slush
        return f"Error: {told}", f"[{name}] ERROR: {told}", None


class _CallEvents:
    """The two events of one call, for whoever follows the turn."""

    def __init__(self, turn: _Turn, name: str, arguments: dict[str, Any]) -> None:
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


def round_of(completion: Completion, number: int, seconds: float, agent: str = "") -> Round:
    """A completion of a real model as an event; ``agent`` asked for it itself."""
    return Round(
        number,
        completion.model,
        completion.provider,
        completion.text,
        [call.name for call in completion.tool_calls],
        completion.input_tokens,
        completion.output_tokens,
        completion.cost_usd,
        round(seconds, 3),
        completion.messages,
        completion.prompt_sha256,
        agent,
    )


def _definitions(tools: Sequence[TurnTool]) -> list[dict[str, Any]]:
    return [one.definition for one in tools if one.kind != "spare"]


def _offered(own: list[dict[str, Any]], client: ClientTools) -> list[dict[str, Any]]:
    """The agents' definitions and the program's own; those alone where the program demands a call of one."""
    return client.definitions if client.demanded else [*own, *client.definitions] if client.offered else own


def _has_rounds(turn: _Turn) -> bool:
    return any(has_rounds(call["id"]) for call in turn.tool_calls)


def _agents(tools: Sequence[TurnTool]) -> list[Agent]:
    """The agents among the tools of which the system text tells."""
    return [one.agent for one in tools if one.agent is not None and one.kind not in ("look", "spare")]


def _everyday(ask: Ask) -> list[TurnTool]:
    return [one for one in ask.tools() if not one.operators]


def _find(ask: Ask, completion: Completion, name: str) -> TurnTool | None:
    """The tool of that name that the model which made the completion may call."""
    found = next((one for one in ask.tools() if one.name == name), None)
    return None if found is not None and found.operators and completion.unconfigured else found


def _name(tool: TurnTool) -> str:
    return tool.name if tool.agent is None else tool.agent.name


def _extra(ask: Ask) -> dict[str, Any]:
    """Further facts for keyword matching."""
    extra: dict[str, Any] = {"without_model": ask.without_model} if ask.without_model else {}
    return extra if ask.at_computer is None else {**extra, "at_computer": ask.at_computer}


def _messages(ask: Ask, client: ClientTools) -> list[Message]:
    said = [with_pictures(one) if "pictures" in one else one for one in ask.history]
    if ask.program is not None:
        said = client.history(said, ask.rounds)
        if ask.program.continues:
            return said
    content = parts(ask.user_input, ask.pictures) if ask.pictures else ask.user_input
    return [*said, {"role": "user", "content": content}]


def _is_written_call(turn: _Turn, completion: Completion, tools: list[dict[str, Any]]) -> bool:
    """Turns an answer that is nothing but a call, written as text, into that call; says so where it may not be one."""
    text = completion.text.strip()
    if not completion.by_model or completion.tool_calls or completion.cut or not tools or not text:
        return False
    names = [tool["function"]["name"] for tool in tools]
    repeated = any(text in str(message.get("content")) for message in turn.messages)
    call = None if repeated else call_in_text(text, names)
    if call is not None:
        completion.text, completion.tool_calls = "", (call,)
        return True
    if speaks_of_a_call(text, names) and not repeated:
        completion.notice = f"{completion.notice} {NOT_UNDERSTOOD}".strip()
    return False


def _without_text(completion: Completion, *, unfinished: bool) -> str:
    """The sentence in place of an answer without any text."""
    if completion.ending == "filter":
        return WITHHELD
    if unfinished:
        return UNFINISHED
    return ONLY_THOUGHTS if completion.thoughts else EMPTY


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
