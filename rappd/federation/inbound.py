"""Requests of other machines: each envelope is checked, handled once, and answered under its id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from msgspec.structs import replace

from agents.contract.agent import is_structural
from envelopes.codecs import emergence, wire
from envelopes.codecs.privileged import refuse_privileged
from envelopes.envelope import (
    ACK,
    CAP,
    DEADLINE,
    HELLO,
    HELP,
    PATH,
    PEER_THREAD,
    STREAM,
    THREAD,
    Envelope,
    agent_id,
)
from envelopes.errors import ReportableError
from envelopes.payloads.core import CORE_NS, PRIMITIVES
from envelopes.payloads.form import MistypedPayloadError, Typed, typed_of
from neighborhoods.transport.replies import StreamedReply
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import Endpoints
from rappd.dispatch.envelope_rows import as_it_came
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestCancelledError, Turn
from rappd.errors import ConflictError, NotFoundError, RefusedError
from rappd.federation.advertised_capabilities import VERBS, CapabilityCatalog
from rappd.federation.errors import ShuttingDownError, not_allowed
from rappd.store.inbox_table import Unfinished
from rappd.tenants.primitives import CORE_ID
from rappd.tenants.tenant import HOST, Tenant
from rappd.tenants.tenants import Tenants
from twins.background_tasks import BackgroundTasks
from twins.errors import NoSuchTwinError, TwinConflictError
from twins.lifecycle.lookup import find_addressed

log = logging.getLogger(__name__)

WAIT = 30.0
LONGEST_WAIT = 300.0
DEEPEST = 6
"""Of messages that change structure: they belong to the control socket, and are never passed on."""

Answered = Callable[[str, Envelope], Awaitable[bool]]
"""(fingerprint, DONE or ERROR) -> whether somebody here waited for it."""
Push = Callable[[str, Envelope], Awaitable[None]]
"""Sees to it that a peer gets an answer that it did not wait for."""

Greeted = Callable[[str, dict[str, Any]], dict[str, Any]]
"""(fingerprint, data of its HELLO): what a peer says it can do now; what the reply has to bring beside."""


class InboundHandler:
    """Takes envelopes in that a listener has decoded and whose caller it has found out."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        tenants: Tenants,
        catalogue: CapabilityCatalog,
        fingerprint: str,
        *,
        answered: Answered,
        push: Push,
        greeted: Greeted,
    ) -> None:
        self._dispatcher = dispatcher
        self._catalogue = catalogue
        self._node = fingerprint[:16]
        self._addressing = Addressing(tenants, dispatcher.endpoints, self._node)
        self._answered = answered
        self._push = push
        self._greeted = greeted
        self._turns = dispatcher.guests_turns
        self._pushed: set[Turn] = set()
        """Turns whose end goes to their caller's own listener."""
        self._later = BackgroundTasks("an answer to another machine failed")

    async def receive(
        self, envelope: Envelope, caller: Caller, *, stream: bool | None = None
    ) -> Envelope | None:
        """The reply to one envelope; None where nothing is to be said back.

        To a HELP it is ``StreamedReply`` when ``stream`` says so, or, where that is None, its own data.
        """
        try:
            self._check(envelope, caller)
            match envelope.verb:
                case "HELP":
                    return await self._help(envelope, caller, stream)
                case "HELLO":
                    more = self._greeted(caller.peer, envelope.data)
                    greeting = {**self._catalogue.hello(caller), **more}
                    return self._from_here(envelope, envelope.reply(HELLO, greeting))
                case "DONE" | "ERROR":
                    waited = await self._answered(caller.peer, envelope)
                    return self._from_here(
                        envelope, envelope.reply(ACK, {"state": "done" if waited else "unknown"})
                    )
                case "CANCEL":
                    return self._cancel(envelope, caller)
                case "ACK" | "STREAM":
                    return None  # they answer; an answer to them would be answered without end
        except ReportableError as problem:
            return self.refuse(envelope, problem)
        message = f"{envelope.verb} is not a verb of this machine ({', '.join(VERBS)})."
        return self._from_here(envelope, envelope.refusal(400, message, "unknown_verb"))

    async def accept(self, envelope: Envelope, caller: Caller) -> Envelope:
        """One of a batch: a HELP is kept and begun afterwards, everything else answered at once."""
        if envelope.verb != HELP:
            return await self.receive(envelope, caller) or envelope.reply(ACK, {"state": "done"})
        try:
            self._check(envelope, caller)
            inner, tenant = await self._addressing.of(envelope, caller)
            if self._turns.running(inner.sender, inner.id) is not None:
                return envelope.reply(ACK, {"state": "started"})
            if not caller.peer or CAP in envelope.extensions:
                # What it may do is not known any more after a crash: it begins now, and not later.
                return await self._answered_within(0.0, envelope, inner, tenant, caller)
            known = await self._dispatcher.accept(inner)
            if known is not None:
                return self.outward(envelope, known)
            self._push_later(self._start(inner, tenant, caller, begun=True), envelope)
            return envelope.reply(ACK, {"state": "accepted"})
        except ReportableError as problem:
            return self.refuse(envelope, problem)

    async def resume(self, sender_of: Callable[[str], Caller | None], rows: list[Unfinished]) -> None:
        """After a start: what was accepted is begun, what was cut off is answered so.

        ``sender_of`` gives the caller for the end of an agent id, or None when that machine is trusted no more:
        then it is answered by nobody.
        """
        for row in rows:
            envelope = emergence.decode(row.body)
            envelope = envelope if row.as_it_came else as_it_came(envelope)
            caller = sender_of(envelope.sender.rpartition("_")[2])
            if caller is None:
                continue
            try:
                inner, tenant = await self._addressing.of(envelope, caller)
                inner = replace(inner, id=envelope.id)  # as it was recorded
            except ReportableError as problem:
                await self._push(caller.peer, self.refuse(envelope, problem))
                continue
            self._push_later(self._start(inner, tenant, caller, begun=row.state == "accepted"), envelope)

    def find(self, sender: str, id: str) -> Turn | None:
        """The turn of that id, if it is under way."""
        return self._turns.running(sender, id.lower())

    async def pieces(
        self, sender: str, id: str, after: int = 0
    ) -> AsyncIterator[tuple[int, Envelope]] | None:
        """A HELP of that sender as numbered STREAMs, from ``after`` on, and its end; None when it is unknown.

        What was said on the way is kept for some minutes, the end for good.
        """
        turn = self._turns.lately(sender, id.lower())
        if turn is not None:
            asked = Envelope(id, sender, turn.envelope.recipient, HELP, {}, _claimed_thread(turn.envelope))
            return self._pieces(turn, asked, after=after)
        reply = await self.recorded(sender, id)
        return _alone(after + 1, reply) if reply is not None else None

    async def recorded(self, sender: str, id: str) -> Envelope | None:
        """The reply to a HELP of that sender, from the record, as it gets it."""
        reply = await self._dispatcher.recorded(sender, id.lower())
        if reply is None:
            return None
        return self.outward(Envelope(id, sender, reply.sender, HELP, {}, _claimed(reply)), reply)

    def refuse(self, envelope: Envelope, problem: ReportableError) -> Envelope:
        """The ERROR for an envelope that was understood."""
        reply = envelope.refusal(problem.status, str(problem), problem.code)
        if problem.do:
            reply.data["do"] = problem.do
        return self._from_here(envelope, reply)

    async def close(self) -> None:
        """Pushes nothing more. Turns are stopped by the dispatcher; after the next start they are answered as cut off."""
        await self._later.close()

    async def _help(self, envelope: Envelope, caller: Caller, stream: bool | None) -> Envelope:
        inner, tenant = await self._addressing.of(envelope, caller)
        wait = _wait(envelope)
        if not (envelope.data.get("stream") is True if stream is None else stream):
            return await self._answered_within(wait, envelope, inner, tenant, caller)
        turn = self._start(inner, tenant, caller)
        patience = None if stream and DEADLINE not in envelope.extensions else wait
        begun = self._from_here(envelope, envelope.reply(ACK, {"state": "started"}))
        return StreamedReply(
            begun.id,
            begun.sender,
            begun.recipient,
            begun.verb,
            begun.data,
            begun.extensions,
            pieces=lambda: self._pieces(turn, envelope, wait=patience),
        )

    async def _answered_within(
        self,
        wait: float,
        envelope: Envelope,
        inner: Envelope,
        tenant: Tenant,
        caller: Caller,
    ) -> Envelope:
        """The reply, or an ACK when it takes longer; then the reply goes to the caller's own listener."""
        turn = self._start(inner, tenant, caller)
        await turn.over_within(wait)
        return self._end_of(turn, envelope) if turn.is_over else self._not_yet(turn, envelope)

    async def _pieces(
        self, turn: Turn, asked: Envelope, *, after: int = 0, wait: float | None = None
    ) -> AsyncIterator[tuple[int, Envelope]]:
        until = None if wait is None else asyncio.get_running_loop().time() + wait
        following = turn.events(after)
        while True:
            try:
                async with asyncio.timeout_at(until):
                    number, event = await anext(following)
            except StopAsyncIteration:
                break
            except TimeoutError:
                yield turn.number + 1, self._not_yet(turn, asked)
                return
            yield number, self._from_here(asked, stream_envelope(asked, number, orjson.loads(event)))
        yield turn.number + 1, self._end_of(turn, asked)

    def _not_yet(self, turn: Turn, envelope: Envelope) -> Envelope:
        if turn.caller.peer:
            self._push_later(turn, envelope)
        return self._from_here(envelope, envelope.reply(ACK, {"state": "started"}))

    def _end_of(self, turn: Turn, envelope: Envelope) -> Envelope:
        """Returns the reply of a turn that is over."""
        try:
            return self.outward(envelope, turn.result())
        except RequestCancelledError:
            if self._dispatcher.closing:
                return self.refuse(
                    envelope, ShuttingDownError("This machine is stopping.", do="Ask again soon.")
                )
            return self.refuse(envelope, ConflictError("Stopped.", code="stopped"))
        except ReportableError as problem:
            return self.refuse(envelope, problem)

    def _start(self, inner: Envelope, tenant: Tenant, caller: Caller, *, begun: bool = False) -> Turn:
        """The turn of a HELP: the one under way, or a new one."""
        if (known := self._turns.running(inner.sender, inner.id)) is not None:
            return known
        tenant.active_requests += 1

        def ended() -> None:
            tenant.active_requests -= 1

        turn = self._dispatcher.submit_once(inner, caller, begun=begun)
        turn.when_over(ended)
        return turn

    def _push_later(self, turn: Turn, envelope: Envelope) -> None:
        if turn not in self._pushed:
            self._pushed.add(turn)
            self._later.spawn(self._push_when_done(turn, envelope))

    async def _push_when_done(self, turn: Turn, envelope: Envelope) -> None:
        try:
            await turn.over_within(None)
            if turn.caller.peer and not (turn.was_stopped and self._dispatcher.closing):
                await self._push(turn.caller.peer, self._end_of(turn, envelope))
        finally:
            self._pushed.discard(turn)

    def _cancel(self, envelope: Envelope, caller: Caller) -> Envelope:
        turn = self.find(envelope.sender, envelope.id)
        if turn is not None and turn.caller.peer == caller.peer:
            turn.cancel()
        return self._from_here(envelope, envelope.reply(ACK, {"state": "stopped" if turn else "unknown"}))

    def _check(self, envelope: Envelope, caller: Caller) -> None:
        """Checks the claimed sender, the recipient and the path of an envelope."""
        refuse_privileged(envelope.data, listener=f"for other machines, from {envelope.sender}")
        if not caller.peer and not caller.caps and envelope.verb != HELLO:
            raise RefusedError("Only paired machines may ask that.", do="rappd peers pair", code="not_paired")
        if caller.peer and envelope.sender.rpartition("_")[2] != caller.peer[:16]:
            log.warning("security: %s sent an envelope from %s", caller.peer[:16], envelope.sender)
            raise RefusedError(
                "'from' is not the machine that sends this.", do="Send your own id.", code="wrong_sender"
            )
        if envelope.verb == HELP and self._dispatcher.closing:
            raise ShuttingDownError("This machine is stopping.", do="Ask again soon.")
        if envelope.recipient != wire.BROADCAST and envelope.recipient.rpartition("_")[2] != self._node:
            raise RefusedError(
                "'to' is not on this machine.", do="Send it to whom it is for.", code="wrong_recipient"
            )
        path = envelope.extensions.get(PATH) or []
        if self._node in path:
            raise RefusedError("This question came round again.", do="Ask another machine.", code="loop")
        if len(path) > DEEPEST:
            raise RefusedError(
                f"This question went through {len(path)} machines.", do="Ask more directly.", code="too_deep"
            )

    def outward(self, asked: Envelope, reply: Envelope) -> Envelope:
        """A recorded reply as the caller gets it: on his thread, from whom he asked, without what is ours."""
        extensions = {
            key: value for key, value in reply.extensions.items() if key not in (THREAD, PEER_THREAD, PATH)
        }
        if THREAD in asked.extensions:
            extensions[THREAD] = asked.extensions[THREAD]
        data = reply.data
        return self._from_here(
            asked, Envelope(asked.id, reply.sender, asked.sender, reply.verb, data, extensions)
        )

    def _from_here(self, asked: Envelope, reply: Envelope) -> Envelope:
        """``from`` is the dispatcher's to say: whom it was to, or this machine when it was to everybody."""
        sender = asked.recipient if asked.recipient != wire.BROADCAST else agent_id(HOST, self._node)
        return Envelope(asked.id, sender, asked.sender, reply.verb, reply.data, reply.extensions)


async def _alone(number: int, reply: Envelope) -> AsyncIterator[tuple[int, Envelope]]:
    yield number, reply


def stream_envelope(asked: Envelope, number: int, event: dict[str, Any]) -> Envelope:
    """One piece of progress as a STREAM."""
    return asked.reply(STREAM, {"n": number, "event": event})


def _claimed(reply: Envelope) -> dict[str, Any]:
    claimed = reply.extensions.get(PEER_THREAD)
    return {THREAD: claimed} if claimed else {}


def _claimed_thread(inner: Envelope) -> dict[str, Any]:
    """The thread that the caller named, as an extension."""
    claimed = inner.extensions.get(PEER_THREAD) or inner.extensions.get(THREAD)
    return {THREAD: claimed} if claimed else {}


def _wait(envelope: Envelope) -> float:
    wanted = envelope.extensions.get(DEADLINE)
    if not isinstance(wanted, (int, float)) or isinstance(wanted, bool):
        return WAIT
    return min(max(0.0, float(wanted)), LONGEST_WAIT)


class Addressing:
    """Finds the tenant, and wakes it when it may be asked."""

    def __init__(self, tenants: Tenants, endpoints: Endpoints, node: str) -> None:
        self._tenants, self._endpoints = tenants, endpoints
        self._node = node

    async def of(self, envelope: Envelope, caller: Caller) -> tuple[Envelope, Tenant]:
        """The HELP as its tenant takes it. Without the capability nobody learns what exists, nor wakes it.

        Its id is in lower case: a UUID that comes again in capitals is the same one (RFC 9562 section 4).
        """
        if envelope.recipient == wire.BROADCAST:
            raise RefusedError(
                "A HELP is for one machine, not for everybody.",
                do="Send it to whom it is for.",
                code="wrong_recipient",
            )
        name = envelope.recipient.rpartition("_")[0]
        data = envelope.data
        if "stream" in data or "twin" in data:  # what the caller sent stays as it came
            data = {key: value for key, value in data.items() if key != "stream"}
        key = ""
        if name not in (HOST, ""):
            found = self._endpoints.named(HOST, name)
            offered = found.id if found is not None and found.exposure.kind == "peer" else ""
            typed = typed_of(data) if "root" in data else None
            if envelope.recipient == offered and typed is not None:
                data = self._to_listener(name, typed, data, caller)
            elif envelope.recipient == offered and "agent" not in data:
                data = {"agent": name, "args": data.get("args", data)}
            else:
                key = await self._key_of(name, caller)
        elif isinstance(twin := data.get("twin"), str) and twin.strip():
            del data["twin"]
            key = await self._key_of(twin.strip(), caller)
        if "root" in data and "agent" not in data and (typed := typed_of(data)) is not None:
            if key and _may_use_something_of(key, caller):  # a twin that sleeps has no listeners yet
                await self._tenants.twin(key)
            data = self._typed(typed, data, key or HOST, envelope.sender, caller)
        if data.get("agent") == CORE_ID and not key:
            return self._to_core(envelope, data, caller), self._tenants.host
        agent = data.get("agent")
        wanted = f"{HELP}.{key or HOST}" + (f".{agent}" if isinstance(agent, str) else "")
        if is_structural(agent if isinstance(agent, str) else name):
            log.warning("security: %s asked for %s", envelope.sender, agent or name)
        if not caller.may(wanted):
            log.warning("security: %s is not allowed %s", envelope.sender, ascii(wanted[:120]))
            raise not_allowed()
        tenant = await self._tenants.twin(key) if key else self._tenants.host
        extensions = envelope.extensions
        if CAP in extensions:
            extensions = {name: value for name, value in extensions.items() if name != CAP}
        return Envelope(envelope.id.lower(), envelope.sender, tenant.id, HELP, data, extensions), tenant

    def _typed(
        self, typed: Typed, data: dict[str, Any], workspace: str, sender: str, caller: Caller
    ) -> dict[str, Any]:
        """A payload with the listener that serves it. An unknown one, and one that the caller may not use, are the same."""
        if typed.ns == CORE_NS and typed.root in PRIMITIVES and workspace == HOST:
            return {"agent": CORE_ID, **data}
        found = self._endpoints.listener(workspace, typed.ns, typed.root, caller)
        if found is None:
            log.warning("security: nothing for %s serves %s", sender, ascii(typed.root[:60]))
            raise not_allowed()
        return {"agent": found.name, **data}

    def _to_core(self, envelope: Envelope, data: dict[str, Any], caller: Caller) -> Envelope:
        """A HELP that ``core`` answers; what it comes to takes rights of its own. Raises ``RefusedError``."""
        if "root" not in data or not any(cap.startswith(HELP) for cap in caller.caps or (HELP,)):
            raise not_allowed()
        extensions = {name: value for name, value in envelope.extensions.items() if name != CAP}
        return Envelope(envelope.id.lower(), envelope.sender, self._tenants.host.id, HELP, data, extensions)

    def _to_listener(self, name: str, typed: Typed, data: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """The same for one that ``to`` names. Its capability is asked before its payload is looked at."""
        found = self._endpoints.named(HOST, name)
        if found is None or not caller.may(f"{HELP}.{HOST}.{name}"):
            raise not_allowed()
        if not found.serves(typed.ns, typed.root):
            raise MistypedPayloadError(
                f"{name} does not take {typed.root[:60]!r}.", do="Leave <to> out, or send what it takes."
            )
        return {"agent": found.name, **data}

    async def _key_of(self, name: str, caller: Caller) -> str:
        """The key of the twin of that name; it sleeps on. Raises ``RefusedError``, ``NotFoundError``."""
        for one in self._endpoints.tenants():
            if one.id == f"{name}_{self._node}":
                return one.workspace
        try:
            return (await asyncio.to_thread(find_addressed, self._tenants.layout, name)).key
        except (NoSuchTwinError, TwinConflictError) as problem:
            if caller.may(f"{HELP}.anybody.anything"):  # who may ask everybody may know who is there
                raise NotFoundError(f'No twin "{name[:60]}" here.', do="rappd peers show") from problem
            raise not_allowed() from problem


def _may_use_something_of(key: str, caller: Caller) -> bool:
    """True where one of the caller's capabilities is of that twin, or of an agent in it."""
    whole = f"{HELP}.{key}"
    return caller.may(whole) or any(one.startswith(f"{whole}.") for one in caller.caps or ())
