"""Listeners that a model drives (``agents`` of ``organism.yaml``): a prompt, and tools.

They run on the brainstem's loop. An answer without anything to send is the last one; what it sends, as calls of tools or
as payloads in its text, is answered in the next round, and so is what it waits for.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import orjson

from agents.brainstem.answer_slots import SenseOutput
from agents.brainstem.todo_plan import Todo, TodoPlan
from agents.brainstem.turn import Brainstem
from agents.brainstem.turn_input import Ask, NextRound
from agents.contract.agent import Agent
from agents.contract.agent_contract import safe_tool_name
from agents.contract.file_discovery import AgentFile
from agents.contract.may_run import YOURS
from agents.providers.provider import Usage
from agents.runtimes.python.pools.answers import EmittedPayload
from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import OnPiece
from agents.storage.safe_fs import in_file_pool
from agents.storage.safe_open import first_bytes
from envelopes.envelope import TODO
from envelopes.events import Round, Work
from envelopes.payloads.core import PRIMITIVES
from envelopes.payloads.form import Field, PayloadForm, Type
from envelopes.payloads.from_schema import CATEGORY
from envelopes.payloads.schemas import json_schema
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import Call, Endpoint, Endpoints
from rappd.dispatch.rights import OWNER
from rappd.dispatch.turns import RequestContext
from rappd.errors import TooManyCallsError
from rappd.organism.organism import ModelAgent, Organism, RemoteTool
from rappd.tenants.emitted_payloads import Emissions, PayloadPart
from rappd.tenants.primitives import text_of

_TEXT = (Field("text", Type("str"), "What is asked of it, in words."),)
_MOST_PROMPT = 1 << 18
_PLANNING = ("todo-until", "todo-complete", "delay")
"""Primitives that models are offered as tools; all of them work as elements in a text."""
_TOLD = 40
"""Steps that an ERROR tells of."""
_LONGEST_STEP = 400
_LONGEST_ERROR = 20_000


class _Prompt:
    def __init__(self, text: str) -> None:
        self._text = text

    async def text(self) -> str:
        return self._text


class _NoSenses:
    now = SenseOutput()


class _Modes(msgspec.Struct):
    rounds: int
    result_characters: int
    voice: bool = False
    twin: bool = False


class DrivenListeners:
    """The listeners of one tenant that a model drives."""

    def __init__(
        self,
        home: Path,
        organism: Callable[[], Organism],
        rounds: Callable[[], int],
        brainstem: Brainstem,
        endpoints: Endpoints,
        dispatcher: Dispatcher,
        emissions: Emissions,
        unlisted: Callable[[], Sequence[Endpoint[Call]]],
        gateway_tools: Callable[[Iterable[RemoteTool]], Sequence[Endpoint[Call]]],
    ) -> None:
        """``home`` has the prompts; ``brainstem`` lends its model, and its limits of results.

        ``unlisted`` are installed agents that ``organism.yaml`` offers to nobody, unless as a tool.
        """
        self.unlisted, self.gateway_tools = unlisted, gateway_tools
        self._home, self._organism, self._rounds, self._brainstem = home, organism, rounds, brainstem
        self.endpoints, self.dispatcher, self.emissions = endpoints, dispatcher, emissions

    def agents(self) -> list[Agent]:
        """The driven listeners of the ``organism.yaml`` that is in force, as agents."""
        return [self._agent(one) for one in self._organism().agents or ()]

    def _agent(self, one: ModelAgent) -> Agent:
        tool_name = safe_tool_name(one.name)
        description = one.description or f"{one.name}, which a model drives: asked in words."
        form = PayloadForm(tool_name, CATEGORY, tool_name.lower(), description, _TEXT)
        digest = hashlib.sha256(repr(one).encode()).hexdigest()
        file = AgentFile(one.prompt, self._home / one.prompt, (0, 0, 0))
        return Agent(
            one.name, tool_name, description, json_schema(form), file, YOURS, digest, "", listener=form, prompt=one.prompt
        )  # fmt: skip

    async def perform(
        self,
        context: RequestContext,
        agent: Agent,
        arguments: dict[str, Any],
        on_round: Callable[[Round], None],
        call: Callable[[Agent], Call],
    ) -> AgentResult:
        """Answers ``arguments["text"]``. ``context`` is that of the listener's own call; ``call`` makes the handler of a tool.

        Raises ``TooManyCallsError`` with what was done, where there is no round left.
        """
        began = time.monotonic()
        config = next((one for one in self._organism().agents or () if one.name == agent.name), None)
        if config is None:
            return AgentResult(False, f"{agent.name} is not in organism.yaml any more.", None, 0.0)
        try:
            prompt = await in_file_pool(self._prompt, config.prompt)
        except OSError as error:
            why = error.strerror or str(error)
            return AgentResult(False, f"{config.prompt} cannot be read: {why}", None, 0.0)
        own = _Turn(self, context, agent, arguments, config, call)
        await own.recall()
        most = self._rounds()

        def used_up() -> TooManyCallsError:
            done = "\n".join(own.done[-_TOLD:]) or "nothing"
            answer = f"{agent.name} used its {most} rounds. Done until then:\n{done}"
            return TooManyCallsError(
                answer[:_LONGEST_ERROR], do="Ask for less at once, or raise organism.rounds."
            )

        async def model_call() -> None:
            if context.rounds.count(agent.name) >= most:  # of all its calls in this turn
                raise used_up()
            context.rounds.append(agent.name)
            if context.model_call is not None:
                await context.model_call()

        brainstem = Brainstem(
            soul=_Prompt(prompt),
            senses=_NoSenses(),
            agents=self._brainstem.agents,
            runner=self._brainstem.runner,
            thinking=self._brainstem.thinking,
            modes=_Modes(most, self._brainstem.modes.result_characters),
        )
        answer = await brainstem.turn(
            Ask(
                arguments["text"],
                (),
                context.person,
                own.tools,
                context,
                context.caller.principal,
                True,
                on_round=lambda one: on_round(msgspec.structs.replace(one, agent=agent.name)),
                model_call=model_call,
                go_on=own.go_on,
            )
        )
        context.usage = context.usage or Usage()
        context.usage.include(answer.usage)
        if answer.unfinished:
            raise used_up()
        text = await self.emissions.answer(answer.text)
        return AgentResult(True, text, None, time.monotonic() - began)

    def _prompt(self, name: str) -> str:
        return first_bytes(self._home / name, _MOST_PROMPT).decode("utf-8", "replace")


class _Turn:
    """One call of such a listener: its tools, its plan, and what it sends in its text."""

    def __init__(
        self,
        driven: DrivenListeners,
        context: RequestContext,
        agent: Agent,
        arguments: dict[str, Any],
        config: ModelAgent,
        call: Callable[[Agent], Call],
    ) -> None:
        self._driven, self._context, self._agent, self._arguments = driven, context, agent, arguments
        self._call = call
        self._names = {one.casefold() for one in config.tools if isinstance(one, str)}
        self._remote = driven.gateway_tools(one for one in config.tools if isinstance(one, RemoteTool))
        self._plan = TodoPlan((), self._changed)
        self._waits = False
        self.done: list[str] = []
        """Lines of what was called and sent, and what it came to."""

    async def recall(self) -> None:
        """Reads the plan that this listener has on this thread already."""
        notes = await self._driven.dispatcher.notes(self._context.envelope.thread, TODO)
        mine = [one.get("todo", {}) for one in notes if one.get("by") == self._agent.name]
        self._plan = TodoPlan(mine, self._changed)

    def tools(self) -> list[Endpoint[Call]]:
        """The tools that it was given, and those for planning."""
        found = [
            replace(one, handler=partial(self._tool, one.agent))
            for one in self._usable()
            if one.agent is not None and one.agent.name != self._agent.name
        ]
        elsewhere = [replace(one, handler=partial(self._remotely, one)) for one in self._remote]
        return [*found, *elsewhere, *(self._planning(root) for root in _PLANNING)]

    def _usable(self) -> list[Endpoint[Call]]:
        """The agents and listeners that it may call for this caller, itself among them."""
        caller = self._context.caller
        offered = self._driven.endpoints.agents(self._context.workspace, caller)
        unlisted = (one for one in self._driven.unlisted() if one.exposure.admits(caller))
        return [one for one in (*offered, *unlisted) if one.kind == "agent" and self._may_use(one)]

    def _may_use(self, one: Endpoint[Call]) -> bool:
        name = one.agent.name if one.agent is not None else ""
        return name == self._agent.name or not {one.name.casefold(), name.casefold()}.isdisjoint(self._names)

    async def _tool(
        self,
        agent: Agent | None,
        context: RequestContext,
        arguments: dict[str, Any],
        slush: dict[str, Any] | None,
        on_piece: OnPiece | None,
    ) -> AgentResult:
        assert agent is not None
        ran = await self._call(agent)(context, arguments, slush, on_piece)
        self._note(agent.name, ran)
        if ran.ok:
            for one in ran.payloads or (EmittedPayload(agent.name),):
                self._plan.saw(one.root, agent.name)
        return ran

    async def _remotely(
        self,
        tool: Endpoint[Call],
        context: RequestContext,
        arguments: dict[str, Any],
        slush: dict[str, Any] | None,
        on_piece: OnPiece | None,
    ) -> AgentResult:
        ran = await tool.handler(context, arguments, slush, on_piece)
        self._note(tool.name, ran)
        if ran.ok:
            self._plan.saw("", tool.name)
        return ran

    def _note(self, name: str, ran: AgentResult) -> None:
        self.done.append(f"[{name}] {'' if ran.ok else 'Error: '}{ran.result[:_LONGEST_STEP]}")

    def _planning(self, root: str) -> Endpoint[Call]:
        form = PRIMITIVES[root]

        async def perform(
            context: RequestContext, arguments: dict[str, Any], slush: Any, on_piece: OnPiece | None
        ) -> AgentResult:
            answers = await self._of_core(root, arguments)
            text = "\n".join(text_of(one) for one in answers)
            return AgentResult(not text.startswith("Error: "), text.removeprefix("Error: "), None, 0.0)

        schema = json_schema(form)
        return Endpoint(
            root, "elsewhere", self._context.workspace, root.replace("-", "_"), form.description, schema,
            None, OWNER, perform,
        )  # fmt: skip

    async def go_on(self, text: str) -> NextRound | None:
        """An answer with payloads sends them; any other one is reminded of what is still waited for."""
        parts = await self._driven.emissions.sendable(text, self._usable())
        if parts:
            return partial(self._send, parts)
        return self._remind if self._plan.open and not self._waits else None

    async def _send(self, parts: Sequence[PayloadPart]) -> str:
        sent = await self._driven.emissions.send_all(self._context, self._agent, parts, self._of_core)
        for one in sent:
            self.done.append(f"[{one.to}] {one.text[:_LONGEST_STEP]}")
            for root in one.roots:
                self._plan.saw(root, one.to)
        return "\n\n".join(f"{one.to} answered:\n{one.text}" for one in sent)

    async def _remind(self) -> str:
        return self._plan.reminder()

    async def _of_core(self, root: str, value: Any) -> Sequence[EmittedPayload]:
        if root == "timer" and "timer" not in self._names:
            return [EmittedPayload(text="Error: Timer is none of your tools.")]
        found = await self._driven.emissions.primitives.perform(
            self._context,
            self._agent,
            self._arguments,
            root,
            value,
            self._driven.emissions.send,
            self._planned,
        )
        self._waits = self._waits or any(one.core and one.root == "delayed" for one in found)
        return found

    def _planned(self, root: str, value: dict[str, Any]) -> EmittedPayload:
        if root == "todo-until":
            todo = self._plan.add(
                value["wait_for"], value.get("from_listener", ""), value.get("description", "")
            )
            answer = {"id": todo.id}
            return EmittedPayload("todo-registered", msgspec.Raw(orjson.dumps(answer)), core=True)
        todo = self._plan.end(value["id"])
        return EmittedPayload(text=f"Given up: {todo.text}")

    def _changed(self, todo: Todo) -> None:
        """Records the state of an entry, and shows the plan to this machine's own who follows the turn."""
        note = {
            "kind": TODO,
            "by": self._agent.name,
            "text": f"{todo.text}: {todo.state}",
            "todo": msgspec.to_builtins(todo),
        }
        self._driven.dispatcher.record_within(self._context, self._context.envelope, note)
        if self._context.emit is not None and self._context.caller.caps is None:
            todos = [{"id": one.id, "text": one.text, "state": one.state} for one in self._plan.todos]
            self._context.emit(Work({"kind": "plan", "by": self._agent.name, "todos": todos}))
