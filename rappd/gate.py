"""The one gate: every record from every door, agent output included, passes here.

    decode → canonical form → schema → authenticate → thread → capability → route
           → perform → inject from and thread → transcript → encode

Decoding, schema and encoding are the door's codec; this room does what lies between.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson

from envelopes import emergence
from envelopes.problem import Problem
from envelopes.record import DONE, ERROR, HELP, THREAD, Envelope, new_id, thread_id
from rappd.errors import Conflict
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store

log = logging.getLogger(__name__)

Emit = Callable[[dict[str, Any]], None]


@dataclass(slots=True, frozen=True)
class Caller:
    """Who stands behind a record, as the door found out. Nothing in the record can change it.

    ``operator`` is true for the operator's session and the control socket alone.
    """

    door: str
    operator: bool = False


@dataclass(slots=True)
class Passage:
    """One record on its way through: who called, on which thread, and who listens for progress."""

    envelope: Envelope
    caller: Caller
    workspace: str
    emit: Emit | None = None


Handler = Callable[[Passage], Awaitable[dict[str, Any]]]
"""Performs a HELP and returns the DONE's data; raises ``Problem`` to refuse."""

Watcher = Callable[[Envelope, str], None]


class Gate:
    """Routes records to handlers and writes both sides down."""

    def __init__(self, store: Store, node: str) -> None:
        self._store = store
        self._node = node
        self._handlers: dict[str, tuple[str, Handler]] = {}
        self._watchers: list[Watcher] = []
        self._turns: dict[tuple[str, str], asyncio.Future[Envelope]] = {}
        self.passed = 0
        self.refused = 0
        self.calls = 0
        self.calls_failed = 0

    def route(self, recipient: str, workspace: str, handler: Handler) -> None:
        """Records to ``recipient`` go to ``handler`` and are kept under ``workspace``."""
        self._handlers[recipient] = (workspace, handler)

    def unroute(self, recipient: str) -> None:
        """Nobody answers for ``recipient`` any more."""
        self._handlers.pop(recipient, None)

    def watch(self, watcher: Watcher) -> None:
        """``watcher(envelope, workspace)`` sees every record that was written down."""
        self._watchers.append(watcher)

    async def turn(
        self,
        envelope: Envelope,
        caller: Caller,
        *,
        session: Any = None,
        named: bool = False,
        emit: Emit | None = None,
    ) -> Envelope:
        """Takes a HELP in and gives its DONE or ERROR back, once the answer is durable.

        ``named`` says that the caller chose the id: a repeat of (from, id) then gets the recorded
        answer, or joins the turn under way. The task may be cancelled; that too is recorded.
        """
        if not named:
            return await self._perform(envelope, caller, session, False, emit)
        key = (envelope.sender, envelope.id)
        running = self._turns.get(key)
        if running is not None:
            return await asyncio.shield(running)
        recorded = await self._store.answer_to(*key)
        if recorded is not None:
            return emergence.from_object(orjson.loads(recorded))
        if key in self._turns:  # another repeat came in while we looked
            return await asyncio.shield(self._turns[key])
        future: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._turns[key] = future
        try:
            reply = await self._perform(envelope, caller, session, True, emit)
        except BaseException as error:
            future.set_exception(error if isinstance(error, Exception) else Cancelled())
            future.exception()  # nobody may be waiting
            raise
        else:
            future.set_result(reply)
            return reply
        finally:
            del self._turns[key]

    def ask(self, outer: Passage, *, sender: str, recipient: str, data: dict[str, Any]) -> Envelope:
        """Writes down a record inside a turn (brainstem to agent), on the turn's thread; ``answer`` or
        ``stopped`` must follow."""
        thread = outer.envelope.extensions[THREAD]
        request = Envelope(new_id(), sender, recipient, HELP, data, {THREAD: thread})
        self._write(request, outer.workspace)
        self.calls += 1
        return request

    def answer(self, outer: Passage, request: Envelope, verb: str, data: dict[str, Any]) -> None:
        """Writes down what ``request`` came to. Who it is from is the gate's to say."""
        self.calls_failed += verb == ERROR
        self._write(request.reply(verb, data), outer.workspace)

    def stopped(self, outer: Passage, request: Envelope) -> None:
        """Writes down that nobody waits for ``request`` any more."""
        self._write(request.refusal(499, "Stopped.", "stopped"), outer.workspace)

    def begin(self, envelope: Envelope, workspace: str, *, session: Any = None, title: str = "") -> Envelope:
        """Puts a record on the thread that its caller's session has, and makes that thread known."""
        text = orjson.dumps(envelope.id if session is None else session, option=orjson.OPT_SORT_KEYS).decode()
        thread = thread_id(workspace, envelope.sender, text)
        self._store.thread(ThreadInfo(thread, workspace, envelope.sender, text, title[:80], _now()))
        return Envelope(
            envelope.id,
            envelope.sender,
            envelope.recipient,
            envelope.verb,
            envelope.data,
            {**envelope.extensions, THREAD: thread},
        )

    async def _perform(
        self, envelope: Envelope, caller: Caller, session: Any, named: bool, emit: Emit | None
    ) -> Envelope:
        routed = self._handlers.get(envelope.recipient)
        if routed is None:  # between its door and here
            raise Conflict("It was stopped before it could answer.", do="Ask again.")
        workspace, handler = routed
        envelope = self.begin(envelope, workspace, session=session, title=envelope.data.get("user_input", ""))
        self._write(envelope, workspace)
        passage = Passage(envelope, caller, workspace, emit)
        try:
            data = await handler(passage)
            reply = envelope.reply(DONE, data)
        except asyncio.CancelledError:
            self._write(envelope.refusal(499, "Stopped.", "stopped"), workspace)
            raise
        except Problem as problem:
            self.refused += 1
            reply = envelope.refusal(problem.status, str(problem), problem.code)
            if problem.do:
                reply.data["do"] = problem.do
        except Exception:
            log.exception("turn %s failed", envelope.id)
            self.refused += 1
            reply = envelope.refusal(500, "Something went wrong inside; the log has it.", "failed")
        await self._commit(reply, workspace, answers=named)
        self.passed += 1
        return reply

    def _write(self, envelope: Envelope, workspace: str) -> None:
        self._store.queue(_record(envelope, answers=False))
        for watcher in self._watchers:
            watcher(envelope, workspace)

    async def _commit(self, envelope: Envelope, workspace: str, *, answers: bool) -> None:
        await self._store.commit(_record(envelope, answers=answers))
        for watcher in self._watchers:
            watcher(envelope, workspace)


class Cancelled(Problem):
    """The turn was stopped by whoever started it."""

    code = "stopped"
    status = 499

    def __init__(self) -> None:
        super().__init__("Stopped.")


def _record(envelope: Envelope, *, answers: bool) -> Record:
    if envelope.verb == HELP and "conversation_history" in envelope.data:
        envelope = _recordable(envelope)
    return Record(
        envelope.extensions[THREAD],
        envelope.verb,
        envelope.sender,
        envelope.recipient,
        envelope.id,
        emergence.encode(envelope),
        time.time_ns() // 1000,
        answers,
    )


def _recordable(envelope: Envelope) -> Envelope:
    """What a client sends as history is input, not record: only its size stays."""
    history = envelope.data["conversation_history"]
    kept = {key: value for key, value in envelope.data.items() if key != "conversation_history"}
    return Envelope(
        envelope.id,
        envelope.sender,
        envelope.recipient,
        envelope.verb,
        {**kept, "history_messages": len(history)},
        envelope.extensions,
    )


def _now() -> int:
    return time.time_ns() // 1000
