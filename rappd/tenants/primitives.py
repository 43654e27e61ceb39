"""Payloads of handlers to ``core``: threads, delays, and timers. Each is recorded as a call, on the thread of its handler."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
import orjson

from agents.contract.agent import Agent
from agents.runtimes.python.pools.answers import EmittedPayload
from agents.runtimes.python.pools.runner import AgentResult
from envelopes.envelope import DONE, ERROR
from envelopes.errors import ReportableError
from envelopes.payloads.core import LONGEST_DELAY, PRIMITIVES
from envelopes.payloads.form import MistypedPayloadError, check
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import Endpoints
from rappd.dispatch.turns import RequestContext
from rappd.errors import RefusedError, TooManyCallsError

CORE_ID = "core"
_TIMER = "Timer"
_DELAY = "delay"
TIMER_ANSWER = "timer-answer"
_THREAD_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,63}")


class DelayGateway(Protocol):
    """Delays, as handlers ask for them."""

    async def set(
        self, context: RequestContext, listener: str, seconds: float, payload: EmittedPayload
    ) -> float:
        """Begins one, on the disk when it returns its end, in seconds since 1970. Raises ``ReportableError``."""
        ...


Send = Callable[[RequestContext, EmittedPayload], Awaitable[list[EmittedPayload]]]
"""Sends a payload on the thread of a context; returns what answers it."""
Planned = Callable[[str, dict[str, Any]], EmittedPayload]
"""Answers ``todo-until`` or ``todo-complete``. Raises ``ReportableError``."""
CallAgent = Callable[[Agent, RequestContext, dict[str, Any], dict[str, Any] | None], Awaitable[AgentResult]]


class Primitives:
    """Performs them for one tenant."""

    def __init__(
        self,
        workspace: str,
        endpoints: Endpoints,
        dispatcher: Dispatcher,
        call: CallAgent,
        delays: Callable[[], DelayGateway | None],
    ) -> None:
        self._workspace, self._endpoints, self._dispatcher = workspace, endpoints, dispatcher
        self._call, self._delays = call, delays

    async def perform(
        self,
        context: RequestContext,
        emitter: Agent,
        arguments: dict[str, Any],
        root: str,
        value: Any,
        send: Send,
        planned: Planned | None = None,
    ) -> list[EmittedPayload]:
        """Payloads that answer a primitive of a handler, which was called with ``arguments``; errors are answers, too.

        ``planned`` keeps the plan of a listener that a model drives. Raises ``TooManyCallsError``.
        """
        try:
            return await self.attempt(context, emitter, arguments, root, value, send, planned)
        except TooManyCallsError:
            raise
        except ReportableError as problem:
            return [EmittedPayload(text=f"Error: {problem.with_advice()}")]

    async def attempt(
        self,
        context: RequestContext,
        emitter: Agent | None,
        arguments: dict[str, Any],
        root: str,
        value: Any,
        send: Send,
        planned: Planned | None = None,
    ) -> list[EmittedPayload]:
        """The same, of a caller itself where there is no ``emitter``. Raises ``ReportableError``."""
        request = self._dispatcher.record_call(
            context,
            sender=context.envelope.recipient,
            recipient=CORE_ID,
            data={"agent": root, "args": value if isinstance(value, dict) else {}},
        )
        if context.timer and root != _DELAY:  # a delay that is begun again is the same one
            await self._dispatcher.flush(synced=True)
        try:
            found = check(PRIMITIVES[root], value)
            if planned is not None and root.startswith("todo-"):
                answers = [planned(root, found)]
            else:
                answers = await self._perform(context, emitter, arguments, root, found, send)
        except ReportableError as problem:
            refusal = {"code": problem.status, "msg": problem.with_advice(), "reason": problem.code}
            self._dispatcher.record_result(context, request, ERROR, {**refusal, "agent": root})
            raise
        text = "\n".join(text_of(one) for one in answers)
        self._dispatcher.record_result(
            context, request, DONE, {"agent": root, "result": text, "seconds": 0.0}
        )
        return answers

    async def _perform(
        self,
        context: RequestContext,
        emitter: Agent | None,
        arguments: dict[str, Any],
        root: str,
        value: dict[str, Any],
        send: Send,
    ) -> list[EmittedPayload]:
        match root:
            case "spawn-thread":
                return await self._spawn(context, value, send)
            case "delay":
                return await self._delay(context, emitter, arguments, value)
            case "timer":
                return await self._timer(context, value)
            case _:
                raise RefusedError(f"{root} is for listeners that a model drives.")

    async def _spawn(
        self, context: RequestContext, value: dict[str, Any], send: Send
    ) -> list[EmittedPayload]:
        name = value["name"].strip()
        if _THREAD_NAME.fullmatch(name) is None:
            raise MistypedPayloadError(
                "spawn-thread.name is mistyped: expected 1 to 64 letters, digits, spaces, _ . or -.",
                do="Send it like that.",
            )
        inner = await self._dispatcher.spawn(context, name)
        spawned = {
            "name": inner.path[-1],
            "assigned_id": inner.envelope.thread,
            "parent_id": context.envelope.thread,
        }
        answers = [_answer("thread-spawned", spawned)]
        if "payload" in value:
            answers += await send(inner, emitted_of(value["payload"]))
        return answers

    async def _delay(
        self, context: RequestContext, emitter: Agent | None, arguments: dict[str, Any], value: dict[str, Any]
    ) -> list[EmittedPayload]:
        seconds = value["seconds"]
        if not 1 <= seconds <= LONGEST_DELAY:
            raise MistypedPayloadError(
                f"delay.seconds is mistyped: expected 1 to {LONGEST_DELAY}.", do="Send it like that."
            )
        delays = self._delays()
        if delays is None:
            raise RefusedError("No timers run here.", do="rappd start")
        if "payload" in value:
            payload = emitted_of(value["payload"])
        elif emitter is None or emitter.listener is None:
            raise MistypedPayloadError(
                "delay.payload is missing: nothing would be sent.", do="Say what to send."
            )
        else:
            payload = EmittedPayload(emitter.listener.root, msgspec.Raw(orjson.dumps(arguments)))
        until = await delays.set(context, emitter.name if emitter is not None else CORE_ID, seconds, payload)
        moment = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds")
        return [_answer("delayed", {"until": moment})]

    async def _timer(self, context: RequestContext, value: dict[str, Any]) -> list[EmittedPayload]:
        """The agent Timer serves both its calls and this payload."""
        found = self._endpoints.named(self._workspace, _TIMER)
        if found is None or found.agent is None or not found.exposure.admits(context.caller):
            raise RefusedError(
                "You may set no timers here.", do="Ask this machine's owner for the right TIMER."
            )
        ran = await self._call(found.agent, context, value, None)
        if not ran.ok:
            return [EmittedPayload(text=f"Error: {ran.result}")]
        return [_answer(TIMER_ANSWER, {"text": ran.result})]


def text_of(payload: EmittedPayload) -> str:
    """A payload in words: its text, or its value as JSON; what ``core`` says of timers is a sentence."""
    if payload.text is not None:
        return payload.text
    if payload.core and payload.root == TIMER_ANSWER:
        return str(orjson.loads(bytes(payload.data))["text"])
    return bytes(payload.data).decode()


def emitted_of(value: dict[str, Any]) -> EmittedPayload:
    """A payload inside another one."""
    if "text" in value:
        return EmittedPayload(text=value["text"])
    return EmittedPayload(value["root"], msgspec.Raw(orjson.dumps(value["data"])))


def _answer(root: str, value: dict[str, Any]) -> EmittedPayload:
    return EmittedPayload(root, msgspec.Raw(orjson.dumps(value)), core=True)
