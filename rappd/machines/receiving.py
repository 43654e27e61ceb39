"""What other machines ask of this one: each envelope checked, done once, answered on its id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from envelopes import emergence, wire
from envelopes.keys import agent_id
from envelopes.problem import Problem
from envelopes.record import (
    ACK,
    DEADLINE,
    ERROR,
    HELLO,
    HELP,
    PATH,
    PEER_THREAD,
    STREAM,
    THREAD,
    Envelope,
)
from rappd.errors import NotFound, Refused
from rappd.gate import Caller, Gate
from rappd.live import LiveTurn
from rappd.machines.catalogue import VERBS, Catalogue
from rappd.tenant import HOST, Tenant
from rappd.tenants import Tenants
from twins.errors import NoSuchTwin, TwinConflict

log = logging.getLogger(__name__)

WAIT = 30.0
LONGEST_WAIT = 300.0
DEEPEST = 6

Answered = Callable[[str, Envelope], Awaitable[bool]]
"""(fingerprint, DONE or ERROR) -> whether somebody here waited for it."""
Push = Callable[[str, Envelope], Awaitable[None]]
"""Sees to it that a peer gets an answer that it did not wait for."""


class Looped(Refused):
    """The same question came round again, or went through too many machines."""

    code = "loop"
    status = 508


@dataclass(slots=True)
class Work:
    """A HELP under way, and what it said so far."""

    task: asyncio.Task[Envelope]
    live: LiveTurn
    caller: Caller
    pushed: bool = False


class Receiver:
    """Takes envelopes in that a door has decoded and whose caller it has found out."""

    def __init__(
        self,
        gate: Gate,
        tenants: Tenants,
        catalogue: Catalogue,
        fingerprint: str,
        *,
        answered: Answered,
        push: Push,
    ) -> None:
        self._gate = gate
        self._tenants = tenants
        self._catalogue = catalogue
        self._node = fingerprint[:16]
        self._answered = answered
        self._push = push
        self._work: dict[tuple[str, str], Work] = {}
        self._later: set[asyncio.Task[None]] = set()

    async def receive(self, envelope: Envelope, caller: Caller) -> Envelope | None:
        """The reply to one envelope; None to a CANCEL on a line, which the HELP itself answers."""
        try:
            self._check(envelope, caller)
            match envelope.verb:
                case "HELP":
                    return await self._help(envelope, caller)
                case "HELLO":
                    return self._from_here(envelope, envelope.reply(HELLO, self._catalogue.hello(caller)))
                case "DONE" | "ERROR":
                    waited = await self._answered(caller.peer, envelope)
                    return envelope.reply(ACK, {"state": "done" if waited else "unknown"})
                case "CANCEL":
                    return self._cancel(envelope, caller)
                case "ACK" | "STREAM":
                    return None  # they answer; an answer to them would be answered without end
        except Problem as problem:
            return self.refuse(envelope, problem)
        return envelope.refusal(
            400, f"{envelope.verb} is not a verb of this machine ({', '.join(VERBS)}).", "unknown_verb"
        )

    async def accept(self, envelope: Envelope, caller: Caller) -> Envelope:
        """One of a batch: a HELP is kept and begun afterwards, everything else answered at once."""
        if envelope.verb != HELP:
            return await self.receive(envelope, caller) or envelope.reply(ACK, {"state": "done"})
        try:
            self._check(envelope, caller)
            if (envelope.sender, envelope.id) in self._work:
                return envelope.reply(ACK, {"state": "started"})
            inner, tenant = await self._addressed(envelope, caller)
            known = await self._gate.accept(inner)
            if known is not None:
                return self.outward(envelope, known)
            self._spawn(self._begin_later(envelope, inner, tenant, caller, begun=True))
            return envelope.reply(ACK, {"state": "accepted"})
        except Problem as problem:
            return self.refuse(envelope, problem)

    async def resume(self, sender_of: Callable[[str], Caller | None], rows: list[tuple[str, bytes]]) -> None:
        """After a start: what was accepted is begun, what was cut off is answered so.

        ``rows``: (state, the recorded HELP); ``sender_of`` gives the caller for the end of an agent id,
        or None when that machine is trusted no more: then it is answered by nobody.
        """
        for state, body in rows:
            envelope = _as_it_came(emergence.decode(body))
            caller = sender_of(envelope.sender.rpartition("_")[2])
            if caller is None:
                continue
            try:
                inner, tenant = await self._addressed(envelope, caller)
            except Problem as problem:
                await self._push(caller.peer, self.refuse(envelope, problem))
                continue
            self._spawn(self._begin_later(envelope, inner, tenant, caller, begun=state == "accepted"))

    def find(self, sender: str, id: str) -> Work | None:
        """The work of that id, if it is under way."""
        return self._work.get((sender, id))

    async def recorded(self, sender: str, id: str) -> Envelope | None:
        """The reply to a HELP of that sender, from the record, as it gets it."""
        reply = await self._gate.recorded(sender, id)
        if reply is None:
            return None
        return self.outward(Envelope(id, sender, reply.sender, HELP, {}, _claimed(reply)), reply)

    def refuse(self, envelope: Envelope, problem: Problem) -> Envelope:
        """The ERROR for an envelope that was understood."""
        reply = envelope.refusal(problem.status, str(problem), problem.code)
        if problem.do:
            reply.data["do"] = problem.do
        return self._from_here(envelope, reply)

    async def close(self) -> None:
        """Stops what is under way; after the next start it is answered as cut off."""
        self._gate.closing = True
        tasks = [work.task for work in self._work.values()] + list(self._later)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _help(self, envelope: Envelope, caller: Caller) -> Envelope:
        work = self._work.get((envelope.sender, envelope.id))
        if work is None:
            inner, tenant = await self._addressed(envelope, caller)
            work = self._work.get((envelope.sender, envelope.id)) or self._start(inner, tenant, caller)
        wait = _wait(envelope)
        done, _ = await asyncio.wait({work.task}, timeout=wait)
        if done:
            return self.outward(envelope, work.task.result())
        if not work.pushed and caller.peer:
            work.pushed = True
            self._spawn(self._push_when_done(work, envelope))
        return self._from_here(envelope, envelope.reply(ACK, {"state": "started"}))

    def _start(self, inner: Envelope, tenant: Tenant, caller: Caller, *, begun: bool = False) -> Work:
        key = (inner.sender, inner.id)
        live = LiveTurn()
        tenant.under_way += 1
        task = asyncio.ensure_future(self._gate.once(inner, caller, emit=live.append, begun=begun))
        work = self._work[key] = Work(task, live, caller)

        def ended(task: asyncio.Task[Envelope]) -> None:
            tenant.under_way -= 1
            self._work.pop(key, None)
            live.finish()
            if not task.cancelled():
                task.exception()  # told to whoever waits

        task.add_done_callback(ended)
        return work

    async def _begin_later(
        self, envelope: Envelope, inner: Envelope, tenant: Tenant, caller: Caller, *, begun: bool
    ) -> None:
        work = self._start(inner, tenant, caller, begun=begun)
        work.pushed = True
        await self._push_when_done(work, envelope)

    async def _push_when_done(self, work: Work, envelope: Envelope) -> None:
        reply = await work.task
        if work.caller.peer:
            await self._push(work.caller.peer, self.outward(envelope, reply))

    def _cancel(self, envelope: Envelope, caller: Caller) -> Envelope:
        work = self._work.get((envelope.sender, envelope.id))
        if work is not None and work.caller.peer == caller.peer:
            work.task.cancel()
        return envelope.reply(ACK, {"state": "stopped" if work else "unknown"})

    def _check(self, envelope: Envelope, caller: Caller) -> None:
        """Who it says it is from, and where it came through."""
        if caller.peer and envelope.sender.rpartition("_")[2] != caller.peer[:16]:
            log.warning("security: %s sent an envelope from %s", caller.peer[:16], envelope.sender)
            raise WrongSender("'from' is not the machine that sends this.", do="Send your own id.")
        if envelope.recipient != wire.BROADCAST and envelope.recipient.rpartition("_")[2] != self._node:
            raise Misdirected("'to' is not on this machine.", do="Send it to whom it is for.")
        if envelope.verb not in (HELLO, ERROR) and not caller.peer and not caller.caps:
            raise Stranger("Only paired machines may ask that.", do="rappd peers pair")
        path = envelope.extensions.get(PATH) or []
        if self._node in path:
            raise Looped("This question came round again.", do="Ask another machine.")
        if len(path) >= DEEPEST:
            raise Looped(f"This question went through {len(path)} machines.", do="Ask more directly.")

    async def _addressed(self, envelope: Envelope, caller: Caller) -> tuple[Envelope, Tenant]:
        """The HELP as its tenant takes it. Without the capability nobody learns what exists."""
        name = envelope.recipient.rpartition("_")[0] if envelope.recipient != wire.BROADCAST else HOST
        data = envelope.data
        tenant = self._tenants.host
        if name not in (HOST, ""):
            if tenant.roster.find(name, structural=False) is not None and "agent" not in data:
                data = {"agent": name, "args": data.get("args", data)}
            else:
                tenant = await self._twin(name, caller)
        agent = data.get("agent")
        wanted = f"{HELP}.{tenant.name}" + (f".{agent}" if isinstance(agent, str) else "")
        if not caller.may(wanted):
            log.warning("security: %s is not allowed %s", envelope.sender, wanted[:120])
            raise Refused("Not allowed.", do="Ask this machine's owner to share it.")
        extensions = {key: value for key, value in envelope.extensions.items() if key != "_x_cap"}
        return Envelope(envelope.id, envelope.sender, tenant.id, HELP, data, extensions), tenant

    async def _twin(self, name: str, caller: Caller) -> Tenant:
        try:
            tenant = await self._tenants.twin(name)
        except (NoSuchTwin, TwinConflict) as problem:
            if caller.may(f"{HELP}.anybody.anything"):  # who may ask everybody may know who is there
                raise NotFound(f'No twin "{name[:60]}" here.', do="rappd peers show") from problem
            raise Refused("Not allowed.", do="Ask this machine's owner to share it.") from problem
        return tenant

    def outward(self, asked: Envelope, reply: Envelope) -> Envelope:
        """A recorded reply as the caller gets it: on his thread, from whom he asked, without what is ours."""
        extensions = {
            key: value for key, value in reply.extensions.items() if key not in (THREAD, PEER_THREAD, PATH)
        }
        if THREAD in asked.extensions:
            extensions[THREAD] = asked.extensions[THREAD]
        data = reply.data
        if tokens := data.get("tokens"):
            extensions["_x_usage_tokens"] = tokens
        return self._from_here(
            asked, Envelope(asked.id, reply.sender, asked.sender, reply.verb, data, extensions)
        )

    def _from_here(self, asked: Envelope, reply: Envelope) -> Envelope:
        """``from`` is the gate's to say: whom it was to, or this machine when it was to everybody."""
        sender = asked.recipient if asked.recipient != wire.BROADCAST else agent_id(HOST, self._node)
        return Envelope(asked.id, sender, asked.sender, reply.verb, reply.data, reply.extensions)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._later.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._later.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an answer to another machine failed", exc_info=error)


class WrongSender(Refused):
    """An envelope that says it is from somebody else."""

    code = "wrong_sender"


class Misdirected(Refused):
    """An envelope for another machine."""

    code = "wrong_recipient"
    status = 404


class Stranger(Refused):
    """Whoever asks is not paired, and shows nothing that allows it."""

    code = "not_paired"
    status = 401


def stream_envelope(asked: Envelope, number: int, event: dict[str, Any]) -> Envelope:
    """One piece of progress as a STREAM."""
    return asked.reply(STREAM, {"n": number, "event": event})


def _as_it_came(recorded: Envelope) -> Envelope:
    """A recorded HELP with its caller's thread in the place of this machine's."""
    extensions = {
        key: value for key, value in recorded.extensions.items() if key not in (THREAD, PEER_THREAD)
    }
    if PEER_THREAD in recorded.extensions:
        extensions[THREAD] = recorded.extensions[PEER_THREAD]
    return Envelope(
        recorded.id, recorded.sender, recorded.recipient, recorded.verb, recorded.data, extensions
    )


def _claimed(reply: Envelope) -> dict[str, Any]:
    claimed = reply.extensions.get(PEER_THREAD)
    return {THREAD: claimed} if claimed else {}


def _wait(envelope: Envelope) -> float:
    wanted = envelope.extensions.get(DEADLINE)
    if not isinstance(wanted, (int, float)) or isinstance(wanted, bool):
        return WAIT
    return min(max(0.0, float(wanted)), LONGEST_WAIT)
