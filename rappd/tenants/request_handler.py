"""What a tenant does for a HELP: a turn of its brainstem, or one call of an agent; both sides recorded."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from agents.brainstem.json_depth import too_deep
from agents.brainstem.turn import Answer, Ask
from agents.contract.agent import REACHING, Agent, is_structural
from agents.runtime.runner import AgentResult
from envelopes.codecs.chat import DEFAULT_USER_GUID
from envelopes.envelope import DONE, ERROR, HELP, SLUSH, Envelope, new_id
from envelopes.identity.keys import agent_id
from rappd.dispatch.context import Caller, RequestContext
from rappd.dispatch.dispatcher import Dispatcher
from rappd.errors import AgentFailedError, RefusedError, UsageProblemError
from rappd.tenants.tenant_context import TenantContext
from rappd.tenants.worker_callbacks import Reach, WorkerCallbackHandler

log = logging.getLogger(__name__)


class TenantRequestHandler:
    """Performs HELPs for one tenant, once its agents are described."""

    def __init__(self, tenant: TenantContext, callbacks: WorkerCallbackHandler, gate: Dispatcher) -> None:
        self._tenant = tenant
        self._callbacks = callbacks
        self._gate = gate

    async def perform(self, passage: RequestContext) -> dict[str, Any]:
        """The DONE's data. Raises ``ReportableError``."""
        if "agent" in passage.envelope.data and passage.caller.caps is not None:
            return await self._one_agent(passage)
        return await self._turn(passage)

    async def alone(self, agent: Agent, arguments: dict[str, Any], caller: Caller) -> tuple[AgentResult, str]:
        """One agent by itself, on a thread of its own, which is given back beside what came of it."""
        to = agent_id(agent.tool_name, self._tenant.node)
        request = Envelope(new_id(), DEFAULT_USER_GUID, to, HELP, {})
        begun = self._gate.open_thread(request, self._tenant.name, title=agent.name)
        ran = await self._call(RequestContext(begun, caller, self._tenant.name), agent, arguments, None)
        await self._gate.flush()
        return ran, begun.thread

    async def _turn(self, passage: RequestContext) -> dict[str, Any]:
        data, caller = passage.envelope.data, passage.caller
        remote = caller.caps is not None
        text = data.get("user_input") or data.get("prompt") if remote else data["user_input"]
        if not isinstance(text, str) or not text.strip():
            raise UsageProblemError(
                "There is nothing to do.", do='Send {"user_input": "…"} or {"agent": …, "args": …}.'
            )
        peers = self._tenant.peers()
        answer = await self._tenant.brainstem.turn(
            Ask(
                text,
                () if caller.door == "federation" else data.get("conversation_history", ()),
                passage.envelope.sender,
                caller.operator,
                lambda agent, arguments, slush: self._call(passage, agent, arguments, slush),
                passage.emit,
                allows=(lambda agent: self.serves(agent, caller)) if remote else None,
                guests=peers.guests(passage) if peers and not remote else None,
            )
        )
        if passage.usage is not None:
            answer.usage.include(passage.usage)
        if caller.operator and (unheard := self._tenant.notices.take()):
            answer.notice = f"{answer.notice}\n{unheard}".strip()
            if passage.emit:
                passage.emit({"type": "notice", "text": unheard})
        done = _done(answer)
        return {"result": answer.text, **done} if remote else done

    async def _one_agent(self, passage: RequestContext) -> dict[str, Any]:
        data = passage.envelope.data
        name, arguments = data["agent"], data.get("args", {})
        if not isinstance(name, str) or not isinstance(arguments, dict) or too_deep(arguments):
            raise UsageProblemError(
                "agent is a name, args an object.", do='Send {"agent": "Clock", "args": {}}.'
            )
        agent = self._tenant.registry.named(name)
        if agent is None or not self.serves(agent, passage.caller):
            if agent is not None and is_structural(agent.name):
                log.warning("security: %s asked for %s", passage.envelope.sender, agent.name)
            raise RefusedError("Not allowed.", do="Ask this machine's owner to share it.")
        slush = passage.envelope.extensions.get(SLUSH)
        ran = await self._run(passage, agent, arguments, slush if isinstance(slush, dict) else None)
        if not ran.ok:
            raise AgentFailedError(ran.result)
        done: dict[str, Any] = {"result": ran.result}
        if passage.usage is not None:
            done |= passage.usage.stated()
        if ran.slush and passage.caller.may("SLUSH"):
            done["data_slush"] = ran.slush
        return done

    def serves(self, agent: Agent, caller: Caller) -> bool:
        """Whether a caller from elsewhere may use an agent; one that changes structure, never."""
        if agent.name in REACHING and not self.reaches_for(caller):
            return False
        return not is_structural(agent.name) and caller.may(f"HELP.{self._tenant.name}.{agent.tool_name}")

    def reaches_for(self, caller: Caller) -> bool:
        """Whether other machines may be asked for this caller."""
        peers = self._tenant.peers()
        return peers is not None and peers.allows(caller)

    def may_begin_again(self, envelope: Envelope) -> bool:
        """Whether a call that was cut off does no harm when it is done twice, as its agent declares."""
        name = envelope.data.get("agent")
        agent = self._tenant.registry.named(name) if isinstance(name, str) else None
        return agent is not None and agent.idempotent

    async def _call(
        self, passage: RequestContext, agent: Agent, arguments: dict[str, Any], slush: dict[str, Any] | None
    ) -> AgentResult:
        request = self._gate.record_call(
            passage,
            sender=self._tenant.id,
            recipient=agent_id(agent.tool_name, self._tenant.node),
            data={"agent": agent.name, "args": arguments},
        )
        try:
            ran = await self._run(passage, agent, arguments, slush)
        except asyncio.CancelledError:
            self._gate.record_cancelled(passage, request)
            raise
        if ran.ok:
            told = {"agent": agent.name, "result": ran.result, "seconds": round(ran.seconds, 4)}
            self._gate.record_result(passage, request, DONE, told)
        else:
            told = {"code": 500, "msg": ran.result, "reason": "agent", "agent": agent.name}
            self._gate.record_result(passage, request, ERROR, told)
        return ran

    async def _run(
        self, passage: RequestContext, agent: Agent, arguments: dict[str, Any], slush: dict[str, Any] | None
    ) -> AgentResult:
        return await self._tenant.runner.run(
            agent,
            arguments,
            user_guid=passage.envelope.sender,
            slush=slush,
            caller=(passage.caller.door, passage.caller.operator, passage.caller.peer),
            on_callback=self._callbacks.for_agent(
                agent,
                operator=passage.caller.operator,
                used=passage.used,
                reach=self._reach(passage),
            ),
        )

    def _reach(self, passage: RequestContext) -> Reach | None:
        others = self._tenant.peers()
        if others is None:
            return None
        return lambda operation, arguments: others.perform(passage, operation, arguments)


def _done(answer: Answer) -> dict[str, Any]:
    data: dict[str, Any] = {
        "response": answer.text,
        "agent_logs": "\n".join(answer.logs),
        "model": answer.model,
        "requested_model": answer.requested_model,
    }
    if answer.voice:
        data["voice_response"] = answer.voice
    if answer.twin:
        data["twin_response"] = answer.twin
    if answer.senses:
        data["senses"] = answer.senses
    if answer.notice:
        data["notice"] = answer.notice
    data.update(answer.usage.stated())
    return data
