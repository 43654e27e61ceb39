"""The dispatcher: every envelope from every listener, agent output included, passes through it.

A HELP is submitted, and is a turn from then on: its events and its reply are read from that (``rappd.dispatch.turns``).

    decode → canonical form → schema → authenticate → thread → capability → route
           → perform → set from and thread → log → encode

Decoding, schema and encoding are the listener's codec.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from itertools import chain, count
from typing import Any

import orjson

from envelopes.codecs import emergence
from envelopes.codecs.privileged import refuse_privileged
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import DONE, ERROR, HELP, NOTE, PARENT, THREAD, THREAD_PATH, Envelope, is_uuid, new_id
from envelopes.errors import ReportableError
from envelopes.events import Emit
from envelopes.program_input import ProgramInput
from rappd.dispatch.at_most_once import AtMostOnce, Timed
from rappd.dispatch.endpoints import Endpoints
from rappd.dispatch.envelope_rows import below, may_be_below, on_thread, opened, record_of
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import KEEP_OCTETS_OF_GUESTS_TURN, Handler, Repeatable, RequestContext, Turn, Turns
from rappd.dispatch.unrecorded_replies import UnrecordedReplies, UnrecordedReplyError
from rappd.errors import ConflictError, StoreError
from rappd.store.records import ListenerState, Record, ThreadInfo
from rappd.store.store import Store

log = logging.getLogger(__name__)


Watcher = Callable[[Envelope], None]

_OWNER = "owner"
_STOPPED = {"preempted": "Interrupted by the operator; it is asked again."}


class Dispatcher:
    """Routes records to handlers and writes both sides down."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.closing = False
        self._handlers: dict[str, tuple[str, Handler, Repeatable]] = {}
        self.note_watchers: set[Watcher] = set()
        """Called with every NOTE that was written down, before ``watchers``."""
        self.watchers: set[Watcher] = set()
        """Called with every record that was written down."""
        self.endpoints = Endpoints()
        self.turns = Turns()
        self.guests_turns = Turns(KEEP_OCTETS_OF_GUESTS_TURN)
        """Turns of callers with capabilities: other machines, programs with a token, phones in a session."""
        self.operations = Turns()
        """The owner's long operations and calls of other machines; no ``/chat`` finds or stops one by its id."""
        self._unrecorded = UnrecordedReplies(store)
        self._once = AtMostOnce(self, store, self._unrecorded)
        self.passed = 0
        self.refused = 0
        self.calls = 0
        self.calls_failed = 0
        self._spawning = asyncio.Lock()

    def route(
        self, recipient: str, workspace: str, handler: Handler, *, repeatable: Repeatable = lambda _: False
    ) -> None:
        """Records to ``recipient`` go to ``handler`` and are kept under ``workspace``."""
        self._handlers[recipient] = (workspace, handler, repeatable)

    def unroute(self, recipient: str) -> None:
        """Removes the handler of ``recipient``."""
        self._handlers.pop(recipient, None)

    def submit(
        self,
        envelope: Envelope,
        caller: Caller,
        *,
        session: Any = None,
        fresh: bool = False,
        thread: str = "",
        named: bool = False,
        listed: bool = False,
        names: tuple[str, ...] = (),
        repeats: bool = True,
        recorded: Callable[[], None] | None = None,
        program: ProgramInput | None = None,
    ) -> Turn:
        """Takes a HELP in. Its turn gives the DONE or ERROR, once that is durable.

        The turn raises ``StoreError`` where the HELP cannot be written down: nothing was done then; and
        ``UnrecordedReplyError`` where its answer cannot: it is kept, and written down later. A turn that is stopped
        is recorded so, with the answer so far.

        ``named`` says that the caller chose the id. Such a turn runs by itself and tells its events; a repeat of
        (from, id) gets the one under way or lately over, and later the recorded answer. Any other begins with
        ``Turn.reply``, or ``begin``; with ``listed`` it is found and can be stopped while it runs. ``repeats`` is False
        for a new id, to which there is no answer to look for.

        ``thread``: a root that exists, in place of the session's; ``names`` come behind it in the path of this turn.
        ``fresh``: nobody used the session before.
        ``recorded`` is called once the HELP is committed, before anything of it is done. ``program`` is the further
        input of a foreign program.
        """
        if not named:

            def work(turn: Turn) -> Coroutine[Any, Any, Envelope]:
                if listed:
                    self._turns_of(caller).add(turn)
                return self._perform(turn, fresh, thread, names, recorded, program)

            return Turn(envelope, caller, work, session=session)
        # A turn of the owner's own phone is found from the page and the reverse; programs here follow no guest's.
        is_owners = bool(caller.device) and envelope.sender == DEFAULT_USER_GUID
        turns = self.turns if is_owners else self._turns_of(caller)
        return turns.lately(envelope.sender, envelope.id) or turns.begin(
            Turn(
                envelope,
                caller,
                lambda turn: (
                    self._perform_named(turn, program)
                    if repeats
                    else self._perform(turn, fresh, program=program)
                ),
                session=session,
                tells=True,
            )
        )

    def operate(
        self,
        work: Callable[[Emit], Awaitable[dict[str, Any]]],
        caller: Caller,
        *,
        id: str = "",
        stop: Callable[[], object] | None = None,
    ) -> Turn:
        """An operation of the owner's that takes a while, as a turn; what of it counts, it writes down itself.

        ``id`` is its caller's for it. ``stop``: see ``Turn``. Raises ``ConflictError`` for an id that is under way.
        """
        if self.operations.running(_OWNER, id) is not None:
            raise ConflictError("That work is under way already.", do="Give each its own id.")

        async def perform(turn: Turn) -> Envelope:
            return turn.envelope.reply(DONE, await work(turn.tell))

        asked = Envelope(id or new_id(), _OWNER, _OWNER, HELP, {})
        return self.operations.begin(Turn(asked, caller, perform, tells=True, stop=stop))

    def running(self, sender: str, id: str) -> Turn | None:
        """The turn that a user named so and that is under way, the owner's or a guest's."""
        return self.turns.running(sender, id) or self.guests_turns.running(sender, id)

    def operation(self, id: str) -> Turn | None:
        """The operation of that id that is under way."""
        return self.operations.running(_OWNER, id)

    def begin(self, turn: Turn) -> Turn:
        """Lets a turn run by itself, until it is over or this machine stops."""
        return self._turns_of(turn.caller).begin(turn)

    async def stop(self) -> None:
        """Stops all turns; those of other machines are answered after the next start."""
        self.closing = True
        for turns in (self.turns, self.guests_turns, self.operations):
            await turns.close()

    def _turns_of(self, caller: Caller) -> Turns:
        return self.turns if caller.caps is None else self.guests_turns

    async def _perform_named(self, turn: Turn, program: ProgramInput | None) -> Envelope:
        key = (turn.envelope.sender, turn.envelope.id)
        answer = await self._unrecorded.take(*key) or await self.recorded(*key)
        return answer or await self._perform(turn, program=program)

    def record_call(
        self, outer: RequestContext, *, sender: str, recipient: str, data: dict[str, Any]
    ) -> Envelope:
        """Writes down a record inside a turn (brainstem to agent), on the turn's thread; ``answer`` or ``stopped`` must follow."""
        request = _inside(outer, sender, recipient, data)
        self._write_inside(outer, request)
        self.calls += 1
        return request

    async def record_call_first(
        self, outer: RequestContext, *, sender: str, recipient: str, data: dict[str, Any]
    ) -> Envelope:
        """The same for what goes to another machine: committed before it is sent. Raises ``StoreError``."""
        refuse_privileged(data, listener="of another machine, by this one")
        request = _inside(outer, sender, recipient, data)
        outer.records.append(record_of(request, answers=False))
        await self.record_first(request)
        self.calls += 1
        return request

    def record_result(
        self,
        outer: RequestContext,
        request: Envelope,
        verb: str,
        data: dict[str, Any],
        state: ListenerState | None = None,
    ) -> None:
        """Writes down what ``request`` came to, with the ``state`` of the listener that answered.

        Who it is from is the dispatcher's to say.
        """
        self.calls_failed += verb == ERROR
        self._write_inside(outer, request.reply(verb, data), state)

    def record_within(self, outer: RequestContext, request: Envelope, data: dict[str, Any]) -> None:
        """Writes down a NOTE of what happened while ``request`` was performed, on its thread."""
        extensions: dict[str, Any] = {THREAD: request.thread, PARENT: request.id}
        self._write_inside(
            outer, Envelope(new_id(), request.recipient, request.recipient, NOTE, data, extensions)
        )

    def record_cancelled(self, outer: RequestContext, request: Envelope) -> None:
        """Writes down that nobody waits for ``request`` any more."""
        stopped = request.refusal(499, "Stopped.", "stopped")
        if "agent" in request.data:
            stopped.data["agent"] = request.data["agent"]
        self._write_inside(outer, stopped)

    def fork(self, outer: RequestContext, *names: str) -> RequestContext:
        """A request on the thread of these names below that of ``outer``: the same one each time.

        What is recorded with it stands there, on behalf of ``outer``. Raises ``TooManyCallsError``.
        """
        inner, info = below(outer, names)
        outer.records.append(info)
        self._store.thread(info)
        return inner

    async def spawn(self, outer: RequestContext, name: str) -> RequestContext:
        """The same on a thread that nobody used yet: ``name``, else with ``-1``, ``-2`` … at its end.

        Raises ``TooManyCallsError``, and ``StoreError`` where it cannot be written down.
        """
        async with self._spawning:  # else two of one name were both free
            await self._store.flush()
            used_names = await self._store.names_below(outer.envelope.thread)
            free = next(
                one for one in chain((name,), (f"{name}-{n}" for n in count(1))) if one not in used_names
            )
            inner = self.fork(outer, free)
            await self._store.flush()
        return inner

    async def flush(self, *, synced: bool = False) -> None:
        """Returns once all that was written down until now is committed: what is told to somebody stands in the record.

        ``synced``: it is on the disk, too. Raises ``StoreError``.
        """
        await (self._store.durable() if synced else self._store.flush())

    def open_thread(
        self, envelope: Envelope, workspace: str, *, session: Any = None, title: str = "", fresh: bool = False
    ) -> Envelope:
        """Puts a record on the thread that its caller's session has, and makes that thread known.

        Without a session it gets one of its own.
        """
        placed, info = opened(envelope, workspace, session, title=title, fresh=fresh)
        self._store.thread(info)
        return placed

    def submit_once(
        self,
        envelope: Envelope,
        caller: Caller,
        *,
        begun: bool = False,
        synced: bool = True,
        program: ProgramInput | None = None,
        timed: Timed | None = None,
    ) -> Turn:
        """A HELP of another machine or program, or of a timer (``timed``): its start is on the disk before it begins, its answer before it counts.

        So it is begun once and answered once, whatever is killed in between, and whenever the power is cut. (Of an
        agent that is declared repeatable the start is committed, and not waited for.) A repeat gets the turn under
        way, or the recorded answer. One that was cut off is answered ``interrupted``, or begun again where that does
        no harm. ``begun``: it was accepted earlier, and its start is written down now. Without ``synced`` its start
        and its answer are committed alone, as a turn of the owner's is: a kill harms neither, a power cut may.

        A turn that is stopped gives the recorded ERROR 499, unless this machine stops.
        """
        turns = self.guests_turns if timed is None else self._turns_of(caller)

        def work(turn: Turn) -> Coroutine[Any, Any, Envelope]:
            return self._once.perform(turn, begun, synced, program, timed)

        return turns.running(envelope.sender, envelope.id) or turns.begin(
            Turn(envelope, caller, work, tells=True)
        )

    async def accept(self, envelope: Envelope) -> Envelope | None:
        """Keeps a HELP of another machine for later: None once that is durable, or what became of it already."""
        return await self._once.accept(envelope)

    async def recorded(self, sender: str, id: str) -> Envelope | None:
        """The recorded answer to a turn, or a HELP, that its caller named."""
        found = await self._store.answer_to(sender, id)
        return emergence.from_object(orjson.loads(found)) if found is not None else None

    async def thread_named(self, caller: str, text: str) -> str | None:
        """The id by which a caller names a thread of its own: a session, or a thread below one by its id or its rendered path.

        A conversation is found by its id in the record, too: so ``thread-spawned`` names the thread above.
        """
        if is_uuid(text) and await self.has_session(caller, text):
            return text
        below = await self._store.threads_below(caller)
        found = next((one.id for one in below if text in (one.rendered, one.id)), None)
        if found is not None or not may_be_below(text):
            return found
        of_record = (one.session for one in await self._store.threads_by(caller) if one.id == text)
        session = next(of_record, None)
        named = orjson.loads(session) if session else None
        return named if is_uuid(named) else None

    async def rendered(self, caller: str, thread: str) -> str:
        """The path of a thread as its caller reads it; of a conversation, its id."""
        if may_be_below(thread):
            for one in await self._store.threads_below(caller, thread):
                return one.rendered
        return thread

    async def notes(self, thread: str, kind: str) -> list[dict[str, Any]]:
        """The data of the NOTEs of that kind on a thread, in order."""
        await self._store.flush()
        return [orjson.loads(body)["data"] for body in await self._store.notes(thread, kind)]

    async def has_session(self, caller: str, session: Any) -> bool:
        """True when a caller has begun a thread of that session."""
        await self._store.flush()
        return await self._store.has_session(caller, orjson.dumps(session).decode())

    def record_note(self, note: Envelope) -> None:
        """Writes down a NOTE, which nobody answers, on the thread that it names."""
        self._write(note)

    async def record_first(self, envelope: Envelope) -> None:
        """Commits a NOTE or a HELP before anything follows from it: before it counts, is sent, or is done.

        Raises ``StoreError``: then nothing may follow.
        """
        await self._commit(envelope, answers=False)

    async def close(self) -> None:
        """Writes down the answers that still wait for it."""
        await self._unrecorded.close()

    async def record_reply(self, reply: Envelope, thread: str, *, late: bool = False) -> None:
        """Writes down what another machine answered, on a thread of this one.

        Raises ``UnrecordedReplyError`` where it cannot be yet: it is kept, and written down later.

        ``late``: it may be the second time that it comes, and is written once. (What came to a caller that waited
        for it comes no other way, and needs no place in the index of answers.)
        """
        if late and await self._store.answer_to(reply.recipient, reply.id) is not None:
            return
        placed = on_thread(reply, thread)
        if late:  # it comes again where this fails
            await self._commit(placed, answers=True)
            return
        await self._commit_kept(placed, [], record_of(placed, answers=False))
        self.announce(placed)

    async def _perform(
        self,
        turn: Turn,
        fresh: bool = False,
        thread: str = "",
        names: tuple[str, ...] = (),
        recorded: Callable[[], None] | None = None,
        program: ProgramInput | None = None,
    ) -> Envelope:
        envelope = turn.envelope
        workspace, handler, _ = self.resolve(envelope.recipient)
        records: list[Record | ThreadInfo] = []
        if thread:
            envelope = on_thread(envelope, thread)
        else:
            envelope, info = opened(envelope, workspace, turn.session, fresh=fresh)
            records.append(info)
            self._store.thread(info)
        context = RequestContext(
            envelope, turn.caller, workspace, turn.tell if turn.tells else None, records=records,
            path=(thread, *names) if names else (), program=program, once=not thread and turn.session is None,
        )  # fmt: skip
        if recorded is not None or self._store.trouble is not None:
            await self.record_first(envelope)
            records.append(record_of(envelope, answers=False))
            if recorded is not None:
                recorded()
        else:
            self._write_inside(context, envelope)
        with self._store.group_commit.active():
            try:
                reply = await self.answer(context, handler)
            except asyncio.CancelledError:
                reason = turn.why_stopped
                stopped = envelope.refusal(499, _STOPPED.get(reason, "Stopped."), reason)
                if text := turn.said():
                    stopped.data["response"] = text
                self._write(stopped)
                raise
            record = record_of(reply, answers=turn.tells, state=context.state)
            await self._commit_kept(reply, records, record)
        self.passes(reply)
        return reply

    def resolve(self, recipient: str) -> tuple[str, Handler, Repeatable]:
        """The workspace and the handler of a recipient. Raises ``ConflictError`` where it was stopped."""
        routed = self._handlers.get(recipient)
        if routed is None:  # between its listener and here
            raise ConflictError("It was stopped before it could answer.", do="Ask again.")
        return routed

    async def answer(self, context: RequestContext, handler: Handler) -> Envelope:
        """Returns the reply of a HELP; only cancellation passes through."""
        envelope = context.envelope
        try:
            return envelope.reply(DONE, await handler(context))
        except ReportableError as problem:
            self.refused += 1
            reply = envelope.refusal(problem.status, str(problem), problem.code)
            if problem.do:
                reply.data["do"] = problem.do
            return reply
        except Exception:
            log.exception("turn %s failed", envelope.id)
            self.refused += 1
            return envelope.refusal(500, "Something went wrong inside; the log has it.", "failed")

    def _write_inside(
        self, outer: RequestContext, envelope: Envelope, state: ListenerState | None = None
    ) -> None:
        """Writes down a record of a turn, and keeps it until the turn's reply is recorded."""
        record = record_of(envelope, answers=False, state=state)
        outer.records.append(record)
        self._store.queue(record)
        self.announce(envelope)

    def _write(self, envelope: Envelope) -> None:
        self._store.queue(record_of(envelope, answers=False))
        self.announce(envelope)

    async def _commit(self, envelope: Envelope, *, answers: bool) -> None:
        await self._store.commit(record_of(envelope, answers=answers))
        self.announce(envelope)

    async def _commit_kept(self, reply: Envelope, records: list[Record | ThreadInfo], record: Record) -> None:
        """Commits a reply. Raises ``UnrecordedReplyError`` where that fails: it is kept then, with ``records``."""
        try:
            await self._store.commit(record)
        except StoreError as problem:
            self._unrecorded.keep(reply, records, lambda: self._store.commit(record))
            raise UnrecordedReplyError(problem) from problem

    def passes(self, reply: Envelope) -> None:
        """Announces the reply of a turn, and counts it."""
        self.announce(reply)
        self.passed += 1

    def announce(self, envelope: Envelope) -> None:
        """Shows a record that was written down to those who watch."""
        if envelope.verb == NOTE:
            for watcher in self.note_watchers:
                watcher(envelope)
        for watcher in self.watchers:
            watcher(envelope)


def _inside(outer: RequestContext, sender: str, recipient: str, data: dict[str, Any]) -> Envelope:
    """A HELP that is sent on behalf of another, on its thread."""
    above = outer.envelope
    extensions: dict[str, Any] = {THREAD: above.extensions[THREAD], PARENT: above.id}
    if outer.path:
        extensions[THREAD_PATH] = outer.path
    return Envelope(new_id(), sender, recipient, HELP, data, extensions)
