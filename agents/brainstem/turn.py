"""One turn: model rounds and agent calls until there is an answer (RAPP v1 §8, loop of the reference)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from agents.brainstem import prompt
from agents.brainstem.answer_slots import Delimiters, MainStream, SenseOutput
from agents.brainstem.client_tools import NO_TOOLS, ClientTools, beside
from agents.brainstem.text_calls import (
    NOT_UNDERSTOOD,
    TextCallHold,
    call_in_text,
    may_become_a_call,
    speaks_of_a_call,
)
from agents.brainstem.turn_calls import TurnState, run_calls
from agents.brainstem.turn_input import Answer, Ask, Modes, TurnTool
from agents.contract.agent import Agent
from agents.contract.registry import AgentRegistry
from agents.providers.offline_provider import OfflineBrain
from agents.providers.pictures import parts, with_pictures
from agents.providers.provider import Completion, Message, ModelRequest, Provider
from agents.runtimes.python.pools.runner import AgentRunner
from envelopes.events import Delta, Emit, Notice, Round, Thought, Waiting
from envelopes.program_input import has_rounds

UNFINISHED = "I ran out of steps before this was finished. Ask again, or ask for one part of it."
EMPTY = "The model's answer was empty. Ask again, or choose another model."
ONLY_THOUGHTS = "The model thought, but gave no answer. Ask again, or ask for less at once."
WITHHELD = "The model's server withheld this answer (content filter). Say it in other words."


class SoulText(Protocol):
    """The text that a turn's system text begins with."""

    async def text(self) -> str: ...


class SensesNow(Protocol):
    """The senses in force."""

    @property
    def now(self) -> SenseOutput: ...


class Brainstem:
    """One workspace's soul, senses, roster and model, ready for turns."""

    def __init__(
        self,
        *,
        soul: SoulText,
        senses: SensesNow,
        agents: AgentRegistry,
        runner: AgentRunner,
        thinking: Provider,
        modes: Modes,
    ) -> None:
        """A turn goes by the senses as they were last looked at."""
        self.soul = soul
        self.senses = senses
        self.agents = agents
        self.runner = runner
        self.thinking = thinking
        self.modes = modes
        self._described: tuple[Sequence[TurnTool], list[dict[str, Any]]] = ((), [])

    async def turn(self, ask: Ask) -> Answer:
        """Runs the loop to its end. Cancelling it stops the model call or the agent calls under way."""
        modes, began = self.modes, time.monotonic()
        own = self._definitions(ask.tools())
        client = beside(own, ask.program) if ask.program is not None else NO_TOOLS
        messages = _messages(ask, client)
        first = 1 if ask.program is not None and ask.program.continues else 0
        turn = TurnState(
            ask, modes, messages, self.senses.now, client=client, first=first, given=len(messages)
        )
        requested = ask.model or self.thinking.model
        tools = _offered(own, client)
        completion = Completion()
        unfinished = False
        for number in range(first, first + max(1, modes.rounds)):
            asked = time.monotonic()
            completion = await self._round(turn, tools, number)
            seconds, next_round = time.monotonic() - asked, None
            if not completion.tool_calls:
                next_round = await ask.go_on(completion.text) if ask.go_on is not None else None
                if next_round is None:
                    unfinished = False
                    break
            unfinished = True
            if (
                completion.prompt_sha256 and ask.on_round is not None
            ):  # the last one is the answer, recorded as that
                ask.on_round(round_of(completion, number + 1, seconds))
            if next_round is not None:
                turn.messages.append({"role": "assistant", "content": completion.text})
                turn.messages.append({"role": "user", "content": await next_round()})
                continue
            await run_calls(turn, completion, tools)
            if turn.tool_calls:
                unfinished = False
                break
        if not completion.text and unfinished and ask.go_on is None:
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
            unfinished,
        )

    def _definitions(self, tools: Sequence[TurnTool]) -> list[dict[str, Any]]:
        if self._described[0] is not tools:  # turns have the same ones until an agent changes
            self._described = tools, _definitions(tools)
        return list(self._described[1])

    async def _round(self, turn: TurnState, tools: list[dict[str, Any]], number: int) -> Completion:
        emit = turn.ask.emit
        shown = _Shown(emit, turn.sensed.delimiters, self.thinking, holds=bool(tools)) if emit else None
        request = ModelRequest(
            turn.messages,
            tools,
            lambda: self._prompt(turn, turn.ask.tools()),
            on_text=shown.text if shown else None,
            on_thought=shown.thought if shown else None,
            on_wait=shown.wait if shown else None,
            round=number,
            extra=_extra(turn.ask),
            pictures=len(turn.ask.pictures),
            summaries=lambda: {
                one.agent.tool_name: one.agent.summary
                for one in turn.ask.tools()
                if one.agent is not None and one.agent.summary
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
            everyday=partial(self._everyday, turn),
        )
        if turn.ask.model_call is not None:
            await turn.ask.model_call()
        completion = await self.thinking.complete(request)
        if not _is_written_call(turn, completion, tools) and shown:
            shown.rest()
        turn.model = completion.model or turn.model
        turn.provider = completion.provider
        turn.problem = request.extra.get("problem") or turn.problem
        turn.usage.add(completion)
        if completion.notice and completion.notice not in turn.notice:
            turn.notice = f"{turn.notice} {completion.notice}".strip()
            if emit:
                emit(Notice(completion.notice))
        return completion

    def _everyday(self, turn: TurnState, request: ModelRequest) -> ModelRequest:
        """The same request without what is the operator's."""
        tools = _offered(_definitions(_everyday(turn.ask)), turn.client) if request.tools else []
        return replace(
            request, tools=tools, prompt=lambda: self._prompt(turn, _everyday(turn.ask)), everyday=None
        )

    async def _prompt(self, turn: TurnState, tools: Sequence[TurnTool]) -> str:
        ask, agents = turn.ask, _agents(tools)
        contexts = await self.runner.system_contexts(agents, ask.user_guid, ask.caller)
        return prompt.build(
            await self.soul.text(),
            contexts,
            agents,
            () if ask.remote else self.agents.unavailable(),
            () if ask.remote else self.agents.waiting(),
            voice=turn.modes.voice,
            twin=turn.modes.twin,
            sensed=turn.sensed,
            program=ask.program.system if ask.program is not None else "",
        )


class _Shown:
    """The events of one round, told to those who follow the turn as the model's answer comes."""

    def __init__(self, emit: Emit, delimiters: Delimiters, thinking: Provider, *, holds: bool) -> None:
        self._emit, self._thinking = emit, thinking
        self._stream = MainStream(delimiters)
        self._hold = TextCallHold() if holds else None

    def text(self, piece: str) -> None:
        """Tells a piece of the answer, as far as it is no call and belongs to the main text."""
        self._tell(self._stream.feed(self._hold.feed(piece) if self._hold else piece))

    def thought(self, piece: str) -> None:
        """Tells a piece of what the model thinks."""
        self._emit(Thought(piece))

    def wait(self, seconds: float) -> None:
        """Tells that the model's server lets this machine wait."""
        self._emit(Waiting(self._thinking.name, round(seconds)))

    def rest(self) -> None:
        """Tells what was held back."""
        self._tell(self._stream.feed(self._hold.release() if self._hold else "") + self._stream.finish())

    def _tell(self, text: str) -> None:
        if text:
            self._emit(Delta(text))


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


def _has_rounds(turn: TurnState) -> bool:
    return any(has_rounds(call["id"]) for call in turn.tool_calls)


def _agents(tools: Sequence[TurnTool]) -> list[Agent]:
    """The agents among the tools of which the system text tells."""
    return [one.agent for one in tools if one.agent is not None and one.kind not in ("look", "spare")]


def _everyday(ask: Ask) -> list[TurnTool]:
    return [one for one in ask.tools() if not one.operators]


def _extra(ask: Ask) -> dict[str, Any]:
    """Further facts for keyword matching."""
    extra: dict[str, Any] = {"without_model": ask.without_model} if ask.without_model else {}
    return extra if ask.at_computer is None else {**extra, "at_computer": ask.at_computer}


def _messages(ask: Ask, client: ClientTools) -> list[Message]:
    history = [with_pictures(one) if "pictures" in one else one for one in ask.history]
    if ask.program is not None:
        history = client.history(history, ask.rounds)
        if ask.program.continues:
            return history
    content = parts(ask.user_input, ask.pictures) if ask.pictures else ask.user_input
    return [*history, {"role": "user", "content": content}]


def _is_written_call(turn: TurnState, completion: Completion, tools: list[dict[str, Any]]) -> bool:
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


def done_data(answer: Answer) -> dict[str, Any]:
    """The data of the DONE that has this answer."""
    data: dict[str, Any] = {
        "response": answer.text,
        "agent_logs": "\n".join(answer.logs),
        "model": answer.model,
        "requested_model": answer.requested_model,
    }
    fields = {
        "voice_response": answer.voice,
        "twin_response": answer.twin,
        "senses": answer.senses,
        "notice": answer.notice,
        "tool_calls": answer.tool_calls,
        "rounds": answer.rounds,
        "ending": answer.ending,
    }
    data |= {key: value for key, value in fields.items() if value}
    if answer.agents_used is not None:
        data["agents_used"] = answer.agents_used
    return data | answer.usage.stated()
