"""Payloads that a listener's handler emits: each that a listener here serves is a call of that one, all others are the answer.

The handler knows nothing of that: not who asks, not who is asked, not the thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from agents.contract.agent import Agent
from agents.runtimes.python.pools.answers import EmittedPayload
from agents.runtimes.python.pools.runner import AgentResult
from envelopes.codecs.privileged import is_privileged
from envelopes.payloads.core import CORE_NS, PRIMITIVES, SPAWN_THREAD
from envelopes.payloads.form import CORE, MistypedPayloadError, PayloadForm, check
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import Call, Endpoint, Endpoints, the_server
from rappd.dispatch.turns import RequestContext
from rappd.errors import TooManyCallsError
from rappd.tenants.primitives import TIMER_ANSWER, DelayGateway, Primitives, text_of

log = logging.getLogger(__name__)

MOST_PAYLOADS = 64
"""Calls that come from payloads within one turn, and payloads of one answer."""

_REFUSED = "Not allowed."

Find = Callable[[str, str], Endpoint[Call] | None]
"""(namespace, root) -> the one listener that serves such a payload."""
CallListener = Callable[
    [Agent, RequestContext, dict[str, Any], dict[str, Any] | None], Awaitable[AgentResult]
]


class PayloadPart(msgspec.Struct):
    """A payload on its way: its value where a listener here serves it, and how it reads in an answer."""

    text: str
    root: str = ""
    data: Any = None
    serves: Agent | None = None
    core: bool = False
    """Of rappd's own payloads."""

    @property
    def is_sent(self) -> bool:
        """True where a listener here, or ``core``, gets it."""
        return self.serves is not None or (self.core and self.root in PRIMITIVES)


class Sent(msgspec.Struct):
    """A payload of a model's text that was sent: to whom, the text of what answered it, and the roots of that."""

    to: str
    text: str
    roots: list[str]


class Emissions:
    """Follows what handlers of one tenant emit."""

    def __init__(
        self,
        workspace: str,
        endpoints: Endpoints,
        dispatcher: Dispatcher,
        call: CallListener,
        delays: Callable[[], DelayGateway | None] = lambda: None,
        serving: Callable[[], Iterable[Agent]] = lambda: (),
    ) -> None:
        """``call`` performs a listener as a recorded call on the thread of its context.

        ``serving`` are all agents of the tenant, those of ``core``'s payloads included.
        """
        self._workspace, self._endpoints, self._dispatcher, self._call = (
            workspace,
            endpoints,
            dispatcher,
            call,
        )
        self._serving = serving
        self.primitives = Primitives(workspace, endpoints, dispatcher, call, delays)

    async def send(self, context: RequestContext, payload: EmittedPayload) -> list[EmittedPayload]:
        """Sends one payload on the thread of ``context`` itself; the payloads that answer it.

        One that no listener here takes is its own answer.
        """
        answers: list[PayloadPart] = []
        for part in await self._parts(context, payload):
            if part.serves is None:
                answers.append(part)
                continue
            self._count(context, 1)
            context.emitted.append(part.serves.name)
            ran = await self._call(part.serves, context, part.data, None)
            answers += _answered(ran)
        return [_emitted(part) for part in answers]

    async def sendable(self, text: str, among: Sequence[Endpoint[Call]]) -> list[PayloadPart]:
        """The payloads in a model's text that ``among`` serve, or ``core``; all else is text."""
        if "<" not in text:
            return []
        return [
            part
            for part in await asyncio.to_thread(self._parts_of_text, partial(the_server, among), text)
            if part.is_sent
        ]

    async def answer(self, text: str) -> str:
        """A model's text as an answer: a privileged message in it is dropped, as one of a handler is."""
        if "<" not in text:
            return text
        parts = await asyncio.to_thread(self._parts_of_text, lambda namespace, root: None, text)
        dropped = any(part.text == _REFUSED for part in parts)
        return "\n".join(part.text.strip() for part in parts) if dropped else text

    async def send_all(
        self,
        context: RequestContext,
        agent: Agent,
        parts: Sequence[PayloadPart],
        of_core: Callable[[str, Any], Awaitable[Sequence[EmittedPayload]]],
    ) -> list[Sent]:
        """Sends payloads of ``agent``; what answered each. ``of_core`` answers those of rappd itself."""
        self._count(context, len(parts))
        context.emitted.extend(part.root for part in parts if part.serves is None)
        threads = self._threads(
            context, [part for part in parts if part.serves is not None and part.serves.name != agent.name]
        )
        found: list[Sent] = []
        for part in parts:
            if part.serves is None:
                answers = list(await of_core(part.root, part.data))
                found.append(Sent(part.root, _texts(answers), [one.root for one in answers if one.root]))
                continue
            itself = part.serves.name == agent.name  # goes on by itself on the same thread
            inner = context if itself else threads.pop(0)
            ran = await self._call(part.serves, inner, part.data, None)
            roots = [part.serves.name, *(one.root for one in ran.payloads)] if ran.ok else []
            found.append(Sent(part.serves.name, ran.result if ran.ok else f"Error: {ran.result}", roots))
        return found

    async def follow(
        self,
        context: RequestContext,
        agent: Agent,
        ran: AgentResult,
        arguments: dict[str, Any] | None = None,
    ) -> AgentResult:
        """The answer of ``agent``, whose handler returned ``ran`` for ``arguments``, once all it called has answered.

        Raises ``TooManyCallsError``: then none of its payloads was sent.
        """
        if len(ran.payloads) > MOST_PAYLOADS:
            raise TooManyCallsError(
                f"{agent.name} answered with more than {MOST_PAYLOADS} payloads.", do="Ask for less at once."
            )
        parts = [part for one in ran.payloads for part in await self._parts(context, one)]
        sent = [part for part in parts if part.is_sent]
        more = len(sent) + sum(map(_holds_another, sent))
        self._count(context, more if len(parts) <= MOST_PAYLOADS else len(parts))
        if not sent:
            return _answer(ran, parts)
        context.emitted.extend(part.root for part in sent if part.serves is None)
        threads = self._threads(context, [part for part in sent if part.serves is not None])
        answers: list[PayloadPart] = []
        for part in parts:
            if part.serves is not None:
                inner = threads.pop(0)
                answers += await self._asked(context, agent, inner, part.serves, part.data)
            elif part.is_sent:
                answers += await self._of_core(context, agent, arguments or {}, part)
            else:
                answers.append(part)
        return _answer(ran, answers)

    async def _of_core(
        self, context: RequestContext, agent: Agent, arguments: dict[str, Any], part: PayloadPart
    ) -> list[PayloadPart]:
        found = await self.primitives.perform(context, agent, arguments, part.root, part.data, self.send)
        return await self._returned(context, agent, found)

    async def _returned(
        self, context: RequestContext, emitter: Agent, answers: Sequence[EmittedPayload]
    ) -> list[PayloadPart]:
        """The parts of answers to what ``emitter`` sent. Those that it takes, or of ``core`` its file, go back there."""
        found: list[PayloadPart] = []
        for one in answers:
            taker = self._taker(emitter, one)
            value = _value(taker.listener, one) if taker is not None else None
            if taker is None or value is None:
                found.append(_part(one))
                continue
            self._count(context, 1)
            context.emitted.append(taker.name)
            found += _answered(await self._call(taker, context, value, None))
        return found

    def _taker(self, emitter: Agent, answer: EmittedPayload) -> Agent | None:
        if not answer.core:
            return emitter
        of_file = (one for one in self._serving() if (one.origin, one.file) == (emitter.origin, emitter.file))
        for one in of_file:
            if (
                one.listener is not None
                and one.listener.category == CORE
                and one.listener.root == answer.root
            ):
                return one
        return None

    @staticmethod
    def _count(context: RequestContext, more: int) -> None:
        if len(context.emitted) + more > MOST_PAYLOADS:
            raise TooManyCallsError(
                f"More than {MOST_PAYLOADS} payloads would be sent in one turn.", do="Ask for less at once."
            )

    def _threads(self, context: RequestContext, calls: list[PayloadPart]) -> list[RequestContext]:
        """A thread for each call, before the first is made: N payloads fork N paths."""
        names: Counter[str] = Counter()
        found = []
        for part in calls:
            assert part.serves is not None
            name, before = part.serves.name, names[part.serves.name]
            names[name] += 1
            inner = self._dispatcher.fork(context, f"{name}-{before}" if before else name)
            found.append(replace(inner, forked=name))
        context.emitted.extend(names.elements())
        return found

    async def _asked(
        self,
        context: RequestContext,
        emitter: Agent,
        inner: RequestContext,
        asked: Agent,
        data: dict[str, Any],
    ) -> list[PayloadPart]:
        """The parts of the answer to a call. What of it the emitting handler takes goes back to that one."""
        ran = await self._call(asked, inner, data, None)
        if not ran.ok:
            return [PayloadPart(f"Error: {ran.result}")]
        if not ran.payloads:
            return [PayloadPart(ran.result)]
        return await self._returned(context, emitter, ran.payloads)

    async def _parts(self, context: RequestContext, emitted: EmittedPayload) -> list[PayloadPart]:
        def find(namespace: str, root: str) -> Endpoint[Call] | None:
            return self._endpoints.listener(self._workspace, namespace, root, context.caller)

        if emitted.text is None:
            data = _data(emitted)
            if emitted.core:
                return [PayloadPart(_shown(emitted), emitted.root, data, core=True)]
            serves = self._served(find, emitted.root, data)
            return [
                PayloadPart(
                    _shown(emitted), emitted.root, data if serves is None else serves[1], serves and serves[0]
                )
            ]
        if "<" not in emitted.text:
            return [PayloadPart(emitted.text)]
        return await asyncio.to_thread(self._parts_of_text, find, emitted.text)

    def _parts_of_text(self, find: Find, text: str) -> list[PayloadPart]:
        from envelopes.payloads.xml import (  # only those pay for lxml whose handlers write XML
            parts_of,
            value_as_it_is,
            value_of,
        )

        found = []
        for one in parts_of(text):
            if is_privileged(one.namespace):  # handler output included: structure is no listener's to change
                log.warning("security: a handler's answer held a privileged message, which was dropped")
                found.append(PayloadPart(_REFUSED))  # in its place: the answer must not carry it on as text
                continue
            part = PayloadPart(one.text, one.root)
            if one.namespace == CORE_NS and (form := PRIMITIVES.get(one.root)) is not None:
                part.core, part.data = True, value_as_it_is(form, one.element)
                found.append(part)
                continue
            found_one = find(one.namespace, one.root) if one.element is not None else None
            listener = found_one.agent if found_one is not None else None
            if listener is not None and listener.listener is not None:
                try:
                    part.data, part.serves = value_of(listener.listener, one.element), listener
                except MistypedPayloadError:
                    part.serves = None  # it has the name alone: part of the answer
            found.append(part)
        return found

    @staticmethod
    def _served(find: Find, root: str, data: Any) -> tuple[Agent, dict[str, Any]] | None:
        """The listener that serves a payload, and its checked value; None where there is none."""
        found = find("", root)
        if found is None or found.agent is None or found.agent.listener is None:
            return None
        try:
            return found.agent, check(found.agent.listener, data)
        except MistypedPayloadError:
            return None


def _holds_another(part: PayloadPart) -> bool:
    """True for the beginning of a thread with a payload, which is sent in the same turn."""
    return part.core and part.root == SPAWN_THREAD and isinstance(part.data, dict) and "payload" in part.data


def _value(form: PayloadForm | None, payload: EmittedPayload) -> dict[str, Any] | None:
    """The value of an answer that a listener takes; None where it does not."""
    if form is None or payload.text is not None or payload.root != form.root:
        return None
    try:
        return check(form, _data(payload))
    except MistypedPayloadError:
        return None


def _data(payload: EmittedPayload) -> Any:
    return orjson.loads(bytes(payload.data))


def _shown(payload: EmittedPayload) -> str:
    return payload.text if payload.text is not None else bytes(payload.data).decode()


def _emitted(part: PayloadPart) -> EmittedPayload:
    if part.root and part.data is not None:
        return EmittedPayload(root=part.root, data=msgspec.Raw(orjson.dumps(part.data)), core=part.core)
    return EmittedPayload(text=part.text)


def _texts(answers: list[EmittedPayload]) -> str:
    return "\n".join(_shown(one) for one in answers)


def _answered(ran: AgentResult) -> list[PayloadPart]:
    """The parts of an answer of a listener that nobody else gets."""
    if not ran.ok:
        return [PayloadPart(f"Error: {ran.result}")]
    return [_part(one) for one in ran.payloads] or [PayloadPart(ran.result)]


def _part(payload: EmittedPayload) -> PayloadPart:
    """A payload of an answer that goes to nobody but the caller."""
    if payload.core and payload.root == TIMER_ANSWER:
        return PayloadPart(text_of(payload))
    return PayloadPart(_shown(payload), payload.root, _data(payload), core=payload.core)


def _answer(ran: AgentResult, parts: list[PayloadPart]) -> AgentResult:
    """The result of the whole: its payloads, and their text."""
    payloads = [_emitted(part) for part in parts]
    alone = len(parts) == 1
    texts = [
        part.text if alone or not part.root or part.text.startswith("<") else f'{{"{part.root}":{part.text}}}'
        for part in parts
    ]
    return replace(ran, result="\n".join(text.strip() for text in texts) or ran.result, payloads=payloads)
