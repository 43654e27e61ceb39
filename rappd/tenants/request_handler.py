"""Handles a HELP to a tenant: a turn of its brainstem, or one call of an agent; both sides recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import orjson
from msgspec import to_builtins
from msgspec.structs import replace as replace_struct

from agents.brainstem.turn import done_data, round_of
from agents.brainstem.turn_input import Ask
from agents.contract.agent import Agent
from agents.contract.agent_contract import distinct
from agents.providers.lazy_imports import load
from agents.providers.provider import Completion, Usage
from agents.runtimes.python.pools.answers import EmittedPayload
from agents.runtimes.python.pools.runner import AgentResult, OnCallback
from agents.runtimes.python.worker.result_text import OnPiece
from envelopes.codecs.strict_json import too_deep
from envelopes.codecs.xml_repair import IMPOSSIBLE
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import DONE, ERROR, HELP, PICTURES, ROUND, SLUSH, Envelope, agent_id, new_id
from envelopes.errors import ReportableError
from envelopes.events import Piece, Round
from envelopes.payloads.core import CORE_NS, PRIMITIVES
from envelopes.payloads.form import Typed, check, typed_of
from envelopes.payloads.from_schema import ARGUMENTS, is_json, object_of
from envelopes.payloads.schemas import is_element_name, plain_xml
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import WORKFLOW, Call, Endpoint
from rappd.dispatch.envelope_rows import DEEPEST
from rappd.dispatch.paused_turns import rounds_of
from rappd.dispatch.rights import OWNER, PROGRAM, Caller
from rappd.dispatch.turns import RecordedCall, RequestContext
from rappd.errors import NotFoundError, RappdError, RefusedError, TooManyCallsError, UsageProblemError
from rappd.tenants.driven_listeners import DrivenListeners
from rappd.tenants.emitted_payloads import Emissions
from rappd.tenants.listener_states import StatefulCall
from rappd.tenants.primitives import CORE_ID, text_of
from rappd.tenants.safe_repeats import is_pure, may_repeat
from rappd.tenants.tenant_context import TenantContext
from rappd.tenants.tenant_endpoints import LOOKS, agent_endpoints, called, with_names
from rappd.tenants.worker_callbacks import CallbackRights, Reach, WorkerCallbackHandler

log = logging.getLogger(__name__)

_STATELESS = nullcontext()
_OF_SYSTEM = "Messages of the system"
"""The title of the thread with what listeners are told."""


class TenantRequestHandler:
    """Performs HELPs for one tenant, once its agents are described."""

    def __init__(
        self, tenant: TenantContext, callbacks: WorkerCallbackHandler, dispatcher: Dispatcher
    ) -> None:
        self._tenant = tenant
        self._callbacks = callbacks
        self._dispatcher = dispatcher
        self._endpoints = dispatcher.endpoints
        self._offers_of: tuple[object, object] = (None, None)
        self._offers: dict[tuple[str, bool], list[Endpoint[Call]]] = {}
        self._emissions = Emissions(
            tenant.name,
            dispatcher.endpoints,
            dispatcher,
            partial(self.call, nested=True),
            tenant.delays,
            tenant.registry.serving,
        )
        self.driven = DrivenListeners(
            tenant.private_root,
            tenant.what_exists,
            tenant.rounds,
            tenant.brainstem,
            dispatcher.endpoints,
            dispatcher,
            self._emissions,
            lambda: agent_endpoints(
                tenant.name, tenant.node, tenant.registry.unlisted(), self.call, tenant.schemas.newest
            ),
            tenant.gateway_tools,
        )

    async def perform(self, context: RequestContext) -> dict[str, Any]:
        """The DONE's data. Raises ``ReportableError``."""
        data = context.envelope.data
        try:
            if "agent" in data and (context.caller.caps is not None or "program" in data):
                return await self._one_agent(context)
            return await self._turn(context)
        finally:
            if context.kept:
                self._tenant.states.turn_over(context)

    async def alone(self, agent: Agent, arguments: dict[str, Any], caller: Caller) -> tuple[AgentResult, str]:
        """One agent by itself, on a thread of its own, which is given back beside what came of it."""
        to = agent_id(agent.tool_name, self._tenant.node)
        request = Envelope(new_id(), DEFAULT_USER_GUID, to, HELP, {})
        begun = self._dispatcher.open_thread(request, self._tenant.name, title=agent.name)
        context = RequestContext(begun, caller, self._tenant.name, once=True)
        ran = await self.call(agent, context, arguments, None)
        await self._dispatcher.flush()
        if context.kept:
            self._tenant.states.turn_over(context)
        return ran, begun.thread

    async def tell(self, listener: Agent, value: dict[str, Any]) -> None:
        """Calls a listener with a message of the system, on the thread of ``core``."""
        to = agent_id(listener.tool_name, self._tenant.node)
        begun = self._dispatcher.open_thread(
            Envelope(new_id(), CORE_ID, to, HELP, {}), self._tenant.name, session=CORE_ID, title=_OF_SYSTEM
        )
        context = RequestContext(begun, Caller(CORE_ID), self._tenant.name, timer=begun.id)
        await self.call(listener, context, value, None, sender=CORE_ID)

    async def go_on(self, context: RequestContext, name: str, payload: EmittedPayload) -> str:
        """Sends what a delay of the listener ``name`` kept, on the thread of ``context``; the answer's text."""
        if name != CORE_ID and self._endpoints.named(self._tenant.name, name) is None:
            raise NotFoundError(
                f"{name}, which was to go on, is gone or quarantined.", do="rappd agents list"
            )
        answers = await self._emissions.send(context, payload)
        return "\n".join(text_of(one) for one in answers)

    async def _turn(self, context: RequestContext) -> dict[str, Any]:
        data, caller = context.envelope.data, context.caller
        remote = caller.caps is not None
        program = context.program
        goes_on = program is not None and bool(program.continues)
        text = data.get("user_input") or data.get("prompt") if remote and not goes_on else data["user_input"]
        if not isinstance(text, str) or not (text.strip() or goes_on):
            raise UsageProblemError(
                "There is nothing to do.", do='Send {"user_input": "…"} or {"agent": …, "args": …}.'
            )
        if (
            remote
            and not (caller.listener == PROGRAM or caller.device)
            and PICTURES in context.envelope.extensions
        ):
            raise UsageProblemError(
                "Pictures of other machines are not taken.", do="Show them in this machine's own page."
            )
        if self._tenant.heard is not None and "user_input" in data and not goes_on:
            self._tenant.heard(text)
        choice = await self._tenant.models.of_turn(context)
        history = () if caller.listener == "federation" else data.get("conversation_history", ())
        answer = await self._tenant.brainstem.turn(
            Ask(
                text,
                history,
                context.envelope.sender,
                self._tools(caller),
                context,
                caller.principal,
                remote,
                context.emit,
                without_model=str(data.get("without_model") or "") if caller.listener == "tether" else "",
                pictures=context.envelope.extensions.get(PICTURES, ()),
                model=choice.model,
                model_do=choice.do,
                at_computer=self._at_computer() if caller.listener == "tether" else None,
                on_round=partial(self._on_round, context, context.envelope),
                program=program,
                id=context.envelope.id,
                rounds=await rounds_of(self._dispatcher, context.envelope.sender, history) if program else {},
                model_call=context.model_call,
            )
        )
        if answer.failure and caller.listener == "tether" and "workflow" in data:
            raise RappdError(
                answer.failure, code="unanswered"
            )  # a step: the next one would take these words for an answer
        if context.usage is not None:
            answer.usage.include(context.usage)
        done = done_data(answer)
        if remote:  # where this machine's model runs is its owner's to know
            return {"result": answer.text, **done}
        return {**done, "provider": answer.provider, "seconds": round(answer.seconds, 3)}

    async def _one_agent(self, context: RequestContext) -> dict[str, Any]:
        data = context.envelope.data
        name, arguments = data["agent"], data.get("args", {})
        typed = (
            typed_of({key: data[key] for key in ("ns", "root", "body") if key in data})
            if "root" in data
            else None
        )
        if not isinstance(name, str) or not isinstance(arguments, dict) or too_deep(arguments):
            raise UsageProblemError(
                "agent is a name, args an object.", do='Send {"agent": "Clock", "args": {}}.'
            )
        if name == CORE_ID and typed is not None and typed.ns == CORE_NS:
            return await self._of_core(context, typed)
        found = self._endpoints.named(self._tenant.name, name)
        if (
            found is None
            and (other := await self._endpoints.found_in_sources(name, context.caller)) is not None
        ):
            return await called(other, context, arguments)
        agent = found.agent if found is not None and found.exposure.admits(context.caller) else None
        if agent is None:
            if found is not None and found.exposure == OWNER:
                log.warning("security: %s asked for %s", context.envelope.sender, found.name)
            raise RefusedError("Not allowed.", do="Ask this machine's owner to share it.")
        if typed is not None and found is not None and found.payload is not None:
            xml = await load("envelopes.payloads.xml")
            arguments = xml.value_of(found.payload, xml.element_in(typed))
            if is_json(found.payload):
                arguments = object_of(arguments[ARGUMENTS])
        slush = context.envelope.extensions.get(SLUSH)
        emit, name = context.emit, agent.tool_name
        on_piece = (lambda text: emit(Piece(context.envelope.id, name, text))) if emit else None
        given = slush if isinstance(slush, dict) else None
        async with self._state(context, agent) as stateful_call:
            ran = await self._run(context, context.envelope, agent, arguments, given, stateful_call, on_piece)
            context.state = stateful_call.saved() if stateful_call is not None and ran.ok else None
            return self._answer(context, agent, ran, is_typed=typed is not None)

    def _answer(
        self, context: RequestContext, agent: Agent, ran: AgentResult, *, is_typed: bool
    ) -> dict[str, Any]:
        if ran.interrupted:
            raise RappdError(
                ran.result, do="Ask again if it does no harm to do it twice.", code="interrupted"
            )
        if not ran.ok:
            raise RappdError(ran.result, code="agent")
        if is_typed and (answer := self._typed_answer(agent, ran)) is not None:
            return answer
        done: dict[str, Any] = {"result": ran.result}
        if context.usage is not None:
            done |= context.usage.stated()
        if ran.slush and context.caller.may("SLUSH"):
            done["data_slush"] = ran.slush
        return done

    async def _of_core(self, context: RequestContext, typed: Typed) -> dict[str, Any]:
        """The DONE's data of what a caller asks of ``core`` itself. Raises ``ReportableError``."""
        xml = await load("envelopes.payloads.xml")
        form = PRIMITIVES.get(typed.root)
        if form is None:
            raise RefusedError("Not allowed.", do="Ask this machine's owner to share it.")
        value = xml.value_as_it_is(form, xml.element_in(typed))
        answers = await self._emissions.primitives.attempt(
            context, None, {}, typed.root, value, self._emissions.send
        )
        if len(answers) == 1 and answers[0].core:
            body = plain_xml(answers[0].root, orjson.loads(bytes(answers[0].data)), CORE_NS)
            return {"ns": CORE_NS, "root": answers[0].root, "body": body}
        return {"result": "\n".join(text_of(one) for one in answers)}

    def _typed_answer(self, agent: Agent, ran: AgentResult) -> dict[str, Any] | None:
        """The one payload of an answer as XML, in the namespace of its listener; None for another answer."""
        if len(ran.payloads) != 1 or agent.listener is None:
            return None
        payload = ran.payloads[0]
        if not is_element_name(payload.root):  # text, or a class that a handler made up
            return None
        ns = (
            CORE_NS
            if payload.core
            else agent.listener.namespace(self._tenant.schemas.version(agent.listener))
        )
        body = plain_xml(payload.root, orjson.loads(bytes(payload.data)), ns)
        return {"ns": ns, "root": payload.root, "body": body} if IMPOSSIBLE.search(body) is None else None

    def _tools(self, caller: Caller) -> Callable[[], list[Endpoint[Call]]]:
        """Gives what a turn may call, at each moment; of other machines, what is here when the turn begins."""
        elsewhere = list(self._endpoints.elsewhere(caller))
        own: tuple[Endpoint[Call], ...] | None = None
        found: list[Endpoint[Call]] = []

        def tools() -> list[Endpoint[Call]]:
            nonlocal own, found
            if own is self._endpoints.published(self._tenant.name):
                return found
            own = self._endpoints.published(self._tenant.name)
            found = self._offered(own, caller)
            if elsewhere:
                found = list(found)
                used_names = {one.name for one in own}
                for one in elsewhere:
                    name = distinct(one.name, used_names)
                    used_names.add(name)
                    found.append(one if name == one.name else replace(one, name=name))
            return found

        return tools

    def _offered(self, own: tuple[Endpoint[Call], ...], caller: Caller) -> list[Endpoint[Call]]:
        """The endpoints of ``own`` that a caller may call. Callers on this machine get the same list until something changes."""
        if caller.caps is not None:
            return [one for one in own if one.exposure.admits(caller)]
        peers = self._tenant.peers()
        ask_tool = peers.ask_peer() if peers else None
        if self._offers_of[0] is not own or self._offers_of[1] is not ask_tool:
            self._offers_of, self._offers = (own, ask_tool), {}
        key = caller.listener, caller.operator
        if key not in self._offers:
            admitted = [one for one in own if one.exposure.admits(caller)]
            self._offers[key] = [with_names(one, ask_tool) if one.exposure.mine else one for one in admitted]
        return self._offers[key]

    def _at_computer(self) -> list[dict[str, Any]]:
        own = self._endpoints.published(self._tenant.name)
        return [one.definition for one in own if one.exposure == OWNER]

    def may_begin_again(self, envelope: Envelope) -> bool:
        """True when an interrupted call does no harm if it is made twice, as its agent declares."""
        name = envelope.data.get("agent")
        if isinstance(name, str) and name.startswith(WORKFLOW):
            return True  # the call finds its run again
        agent = self._agent_named(name) if isinstance(name, str) else None
        return agent is not None and agent.idempotent

    def may_repeat(self, calls: list[RecordedCall], *, timed: str = "") -> bool:
        """True where a turn of a timer that was cut off after these calls may be performed again (``may_repeat``)."""
        return may_repeat(calls, self._agent_named, timed=timed)

    def _agent_named(self, name: str) -> Agent | None:
        found = self._endpoints.named(self._tenant.name, name)
        return found.agent if found is not None else None

    async def call(
        self,
        agent: Agent,
        context: RequestContext,
        arguments: dict[str, Any],
        slush: dict[str, Any] | None,
        on_piece: OnPiece | None = None,
        *,
        nested: bool = False,
        sender: str = "",
    ) -> AgentResult:
        """Calls an agent within a turn; the call and its result are recorded. ``sender``: "" for who emitted it.

        ``nested``: a payload of another one's handler is the call, and ``TooManyCallsError`` goes through.
        """
        if (known := context.answer_before(agent.name, arguments)) is not None:
            return AgentResult(True, str(known.get("result", "")), None, 0.0)
        request = self._dispatcher.record_call(
            context,
            sender=sender or (context.envelope.recipient if nested else self._tenant.id),
            recipient=agent_id(agent.tool_name, self._tenant.node),
            data={"agent": agent.name, "args": arguments},
        )
        if context.timer and not is_pure(
            agent
        ):  # else a repeat after a kill would not know that it was begun
            await self._dispatcher.flush(synced=True)
        try:
            async with self._state(context, agent) as stateful_call:
                ran = await self._run(context, request, agent, arguments, slush, stateful_call, on_piece)
                await self._record(context, request, agent, ran, stateful_call)
        except asyncio.CancelledError:
            self._dispatcher.record_cancelled(context, request)
            raise
        except ReportableError as problem:  # refused before, or after, its handler ran
            refusal = {"code": problem.status, "msg": problem.with_advice(), "reason": problem.code}
            self._dispatcher.record_result(context, request, ERROR, {**refusal, "agent": agent.name})
            if nested and isinstance(problem, TooManyCallsError):
                raise
            return AgentResult(False, problem.with_advice(), None, 0.0)
        return ran

    async def _record(
        self,
        context: RequestContext,
        request: Envelope,
        agent: Agent,
        ran: AgentResult,
        stateful_call: StatefulCall | None,
    ) -> None:
        """Writes down how a call ended, in one transaction with the state that its listener has from then on."""
        if not ran.ok:
            reason = "interrupted" if ran.interrupted else "agent"
            call = {"code": 500, "msg": ran.result, "reason": reason, "agent": agent.name}
            self._dispatcher.record_result(context, request, ERROR, call)
            return
        most = self._tenant.brainstem.modes.result_characters
        call = {"agent": agent.name, "seconds": round(ran.seconds, 4), **await ran.recorded(most)}
        state = stateful_call.saved() if stateful_call is not None else None
        self._dispatcher.record_result(context, request, DONE, call, state)

    def _state(
        self, context: RequestContext, agent: Agent
    ) -> AbstractAsyncContextManager[StatefulCall | None]:
        """The state that a listener has on this thread; None for what has none."""
        if agent.listener is None or not agent.listener.stateful:
            return _STATELESS
        return self._tenant.states.call(context, agent)

    async def _run(
        self,
        context: RequestContext,
        request: Envelope,
        agent: Agent,
        arguments: dict[str, Any],
        slush: dict[str, Any] | None,
        stateful_call: StatefulCall | None,
        on_piece: OnPiece | None = None,
    ) -> AgentResult:
        if agent.listener is not None:
            arguments = check(agent.listener, arguments)
        if agent.prompt:
            return await self._drive(context, request, agent, arguments)
        run = partial(
            self._tenant.runner.run,
            agent,
            arguments,
            user_guid=context.person,
            slush=slush,
            caller=context.caller.principal,
            on_piece=on_piece,
            on_callback=self._answering(context, request, agent),
        )
        ran = await (run() if stateful_call is None else stateful_call.run(run))
        if not ran.payloads or agent.listener is None:
            return ran
        inner = context if stateful_call is None else stateful_call.context
        here = (
            inner
            if request is context.envelope
            else replace_struct(inner, envelope=request, user=context.person)
        )
        try:
            return await self._emissions.follow(here, agent, ran, arguments)
        except ReportableError:
            if stateful_call is not None:
                stateful_call.undo()
            raise

    def _answering(self, context: RequestContext, request: Envelope, agent: Agent) -> OnCallback:
        """Answers callbacks of one call. Its rights are made for the first one: most agents never ask."""
        rights: CallbackRights | None = None

        async def answer(operation: str, arguments: dict[str, Any]) -> Any:
            nonlocal rights
            rights = rights or self._rights(context, request, agent)
            return await self._callbacks.answer(rights, operation, arguments)

        return answer

    def _rights(self, context: RequestContext, request: Envelope, agent: Agent) -> CallbackRights:
        caller, numbers = context.caller, count(1)

        def used(completion: Completion, seconds: float) -> None:
            context.used(completion)
            if completion.prompt_sha256:
                self._on_round(context, request, round_of(completion, next(numbers), seconds, agent.name))

        return CallbackRights(
            agent, caller.operator, LOOKS.admits(caller), used, self._reach(context), context.model_call
        )

    async def _drive(
        self, context: RequestContext, request: Envelope, agent: Agent, arguments: dict[str, Any]
    ) -> AgentResult:
        """A call of a listener that a model drives."""
        if context.depth >= DEEPEST:
            raise TooManyCallsError(
                f"More than {DEEPEST} calls would be inside one another.", do="Ask for less at once."
            )
        context.usage = context.usage or Usage()  # one sum for both
        here = replace_struct(context, envelope=request, user=context.person, depth=context.depth + 1)

        def call(tool: Agent) -> Call:
            return partial(self.call, tool, sender=request.recipient)

        return await self.driven.perform(here, agent, arguments, partial(self._on_round, here, request), call)

    def _on_round(self, context: RequestContext, request: Envelope, model_round: Round) -> None:
        """Records a round of a model on behalf of ``request``, and tells this machine's own who follows the turn."""
        data = {"kind": ROUND, **to_builtins(model_round)}
        del data["type"]
        self._dispatcher.record_within(context, request, data)
        if context.emit is not None and context.caller.caps is None:
            context.emit(model_round)

    def _reach(self, context: RequestContext) -> Reach | None:
        others, timers = self._tenant.peers(), self._tenant.timers()

        async def reach(operation: str, arguments: dict[str, Any]) -> Any:
            part = timers if operation.startswith("timers.") else others
            if part is None:
                raise RefusedError("There is nothing of that here.")
            return await part.perform(context, operation, arguments)

        return reach if others is not None or timers is not None else None
