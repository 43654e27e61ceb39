"""At most once: a HELP whose start is on the disk before it begins, and whose answer is there before it counts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import orjson

from envelopes.codecs import emergence
from envelopes.envelope import ACK, DONE, HELP, PEER_THREAD, THREAD, Envelope
from envelopes.program_input import ProgramInput
from rappd.dispatch.envelope_rows import may_be_below, now, on_thread, placed, record_of, recordable
from rappd.dispatch.turns import Handler, RecordedCall, Repeatable, RequestContext, Turn
from rappd.dispatch.unrecorded_replies import UnrecordedReplies
from rappd.errors import StoreError
from rappd.store.records import Record, ThreadBelow, ThreadInfo
from rappd.store.store import Store
from rappd.store.write_operations import OF_TIMER, InboxClaim

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Timed(NamedTuple):
    """A HELP of a timer, on a ``thread`` of this machine. ``handler`` makes the one that performs it of its recipient's.

    ``repeatable``: it does no harm if it is performed a second time; else ``harmless`` says so of one that was cut off,
    from the calls that were made within it: each that does harm twice is on the disk before it is made.
    ``path`` is that of the thread, () for a root; ``once``: nobody comes back to it but timers.
    """

    thread: str
    handler: Callable[[Handler], Handler]
    repeatable: bool = False
    harmless: Callable[[list[RecordedCall]], bool] = lambda _: False
    path: tuple[str, ...] = ()
    once: bool = False


class Performer(Protocol):
    """The dispatcher, as far as turns need it that are begun once."""

    closing: bool

    def resolve(self, recipient: str) -> tuple[str, Handler, Repeatable]:
        """The workspace and the handler of a recipient. Raises ``ConflictError`` where it was stopped."""
        ...

    async def answer(self, context: RequestContext, handler: Handler) -> Envelope:
        """Performs a HELP. Only cancellation passes through."""
        ...

    async def recorded(self, sender: str, id: str) -> Envelope | None:
        """The recorded answer to a HELP."""
        ...

    def announce(self, envelope: Envelope) -> None:
        """Shows a record that was written down to those who watch."""
        ...

    def passes(self, reply: Envelope) -> None:
        """Announces a reply, and counts it."""
        ...


class AtMostOnce:
    """Turns of other machines, programs and timers. ``unrecorded`` keeps answers that the event log did not take."""

    def __init__(self, performer: Performer, store: Store, unrecorded: UnrecordedReplies) -> None:
        self._performer, self._store, self._unrecorded = performer, store, unrecorded

    async def perform(
        self, turn: Turn, begun: bool, synced: bool, program: ProgramInput | None, timed: Timed | None
    ) -> Envelope:
        """Performs a turn. ``begun``, ``synced`` and ``timed`` are those of ``Dispatcher.submit_once``."""
        if turn.caller.spend is not None and not begun:
            await turn.caller.spend(turn.envelope)
        with self._store.group_commit.active():
            return await self._claimed(turn, begun, synced, program, timed)

    async def accept(self, envelope: Envelope) -> Envelope | None:
        """Keeps a HELP of another machine for later: None once that is durable, or what became of it already."""
        workspace, _, _ = self._performer.resolve(envelope.recipient)
        key = (envelope.sender, envelope.id, envelope.verb)
        body = emergence.encode(envelope)
        known = await self._store.claim(InboxClaim(*key, "accepted", workspace, "", body, now(), []))
        if known is None:
            return None
        recorded = await self._store.answer_to(*key[:2]) if known.state == "done" else None
        return (
            emergence.from_object(orjson.loads(recorded))
            if recorded
            else envelope.reply(ACK, {"state": known.state})
        )

    async def _claimed(
        self, turn: Turn, begun: bool, synced: bool, program: ProgramInput | None, timed: Timed | None
    ) -> Envelope:
        envelope = turn.envelope
        workspace, handler, repeatable = self._performer.resolve(envelope.recipient)
        outer = envelope
        known: list[Record | ThreadInfo] = []
        path: tuple[str, ...] = ()
        if timed is not None:
            envelope = on_thread(envelope, timed.thread)
            handler, repeatable = timed.handler(handler), lambda _: timed.repeatable
            path = timed.path
        elif (below := await self._below(envelope, workspace)) is not None:
            envelope, path = on_thread(envelope, below.id), below.names
            envelope.extensions[PEER_THREAD] = below.id
        else:
            envelope, info = placed(envelope, workspace)
            known.append(info)
        key = (envelope.sender, envelope.id, envelope.verb)
        records = [*known, record_of(envelope, answers=False)]
        strict = synced and not repeatable(envelope)
        owner = workspace if timed is None else OF_TIMER
        state, thread, stopped = await self._claim(
            key, owner, envelope.thread, records, begun=begun, strict=strict
        )
        if state == "accepted":
            return outer.reply(ACK, {"state": "accepted"})
        if state:
            recorded = await self._performer.recorded(envelope.sender, envelope.id)
            if recorded is not None:
                return recorded
            if begun:
                return outer.reply(ACK, {"state": state})
        if thread:  # a repeat may name another: the answer counts where the question stands
            envelope = on_thread(envelope, thread)
        self._performer.announce(envelope)
        context = RequestContext(
            envelope, turn.caller, workspace, turn.tell, records=records, program=program,
            once=timed.once if timed is not None else not outer.extensions.get(THREAD),
            path=path, timer=envelope.id if timed is not None else "",
        )  # fmt: skip
        cut_off = bool(state) and not repeatable(envelope)
        if cut_off and timed is not None:
            cut_off = not timed.harmless(await self._calls_within(envelope))
        if cut_off:
            reply = envelope.refusal(500, "This was cut off before it was done.", "interrupted")
            reply.data["do"] = "Ask again if it does no harm to do it twice."
        elif stopped:
            reply = envelope.refusal(499, "Stopped.", "stopped")
        else:
            try:
                reply = await self._performer.answer(context, handler)
            except asyncio.CancelledError:
                if self._performer.closing:
                    raise
                reply = envelope.refusal(499, "Stopped.", "stopped")
        reply, record = recordable(reply, context.state)
        try:
            await self._uninterrupted(self._store.commit_reply(record, *key, strict=synced))
        except StoreError as problem:  # the work is not over before its answer is recorded
            log.error("the answer to %s waits to be written down: %s", envelope.id, problem)
            kept = self._unrecorded.keep(reply, records, lambda: self._store.commit_reply(record, *key))
            await kept.recorded.wait()
        turn.recorded_at = record.at
        self._performer.passes(reply)
        return reply

    async def _calls_within(self, envelope: Envelope) -> list[RecordedCall]:
        """The calls that were made within a turn before it was cut off, the outer before the inner."""
        found = {envelope.id: RecordedCall(envelope.id, "", "", envelope.data)}
        for event in await self._store.after_event(envelope.thread, envelope.id):
            data = orjson.loads(event.body).get("data", {})
            if event.verb == HELP and event.parent in found:
                found[event.id] = RecordedCall(event.id, event.parent, event.recipient, data)
            elif event.verb == DONE and event.id in found:
                found[event.id].answer = data
        return list(found.values())[1:]

    async def _below(self, envelope: Envelope, workspace: str) -> ThreadBelow | None:
        """The thread below one of its caller's that a HELP names by its id; None for any other."""
        claimed = envelope.extensions.get(THREAD)
        if not may_be_below(claimed):
            return None
        found = await self._store.threads_below(envelope.sender, str(claimed))
        return next((one for one in found if one.workspace == workspace), None)

    async def _claim(
        self,
        key: tuple[str, str, str],
        workspace: str,
        thread: str,
        records: list[Record | ThreadInfo],
        *,
        begun: bool,
        strict: bool,
    ) -> tuple[str, str, bool]:
        """Claims a HELP. Returns its former state and thread, "" when it starts now; and if it was cancelled meanwhile.

        ``strict``: the claim is on the disk then. Measured with power cuts: of 111 calls whose claim was only
        committed, 7 were performed twice.
        """
        if begun:
            began, stopped = await self._uninterrupted(
                self._store.start_claimed(*key, records, strict=strict)
            )
            return ("" if began else "started"), "", stopped
        taking = InboxClaim(*key, "started", workspace, thread, b"", now(), records)
        known, stopped = await self._uninterrupted(self._store.claim(taking, strict=strict))
        return (known.state, known.thread, stopped) if known is not None else ("", "", stopped)

    async def _uninterrupted(self, writing: asyncio.Future[_T]) -> tuple[_T, bool]:
        """Waits for a write also when the task is cancelled. Returns its result, and if it was cancelled."""
        try:
            return await writing, False
        except asyncio.CancelledError:
            if self._performer.closing or not writing.done():
                raise
            return writing.result(), True
