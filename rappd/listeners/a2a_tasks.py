"""Tasks of A2A: the turns of one program at the brainstem or a twin, begun, followed, stopped, and read from the record."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import orjson

from envelopes.codecs import a2a, a2a_tasks, emergence
from envelopes.codecs.a2a import A2AError, Sent, TaskQuery
from envelopes.codecs.a2a_tasks import TaskRecord
from envelopes.codecs.chat import ChatRequest
from envelopes.envelope import Envelope, as_uuid
from envelopes.events import Delta, Event
from rappd.dispatch.envelope_rows import now, thread_of
from rappd.dispatch.turns import RequestCancelledError, Turn
from rappd.features.calls.call_forms import call_data
from rappd.federation.errors import ShuttingDownError
from rappd.listeners import program_turns, programs
from rappd.listeners.programs import Program, Target
from rappd.listeners.recorded_program_turns import earlier, resumed
from rappd.store.conversation_table import PROGRAM_SESSION
from rappd.store.turn_table import RecordedTurn, TurnRow, recorded_turn, recorded_turns
from rappd.tenants.tenant import HOST

PROTOCOL = "a2a"
ASK = "ask"
"""The skill that is a turn."""
_CONTEXTS = f"{PROGRAM_SESSION}{PROTOCOL}:"
_CUT_OFF = "This was cut off before it was done. Send the message again if it does no harm to do it twice."
_RESUMED_SECONDS = 0.5
"""A turn that a restart cut off is mostly answered at once."""
_event = msgspec.json.Decoder(Event).decode


class Tasks:
    """The tasks of one program at one target."""

    def __init__(self, program: Program, target: Target) -> None:
        self._program, self._target = program, target
        self._daemon = program.daemon
        self._turns = program.daemon.dispatcher.guests_turns

    async def begin(self, sent: Sent) -> tuple[TaskRecord, Turn]:
        """The task that a message begins, or began before, and its turn. Raises ``ReportableError``."""
        if sent.task:
            await self._refuse_more(sent)
        id, turn, row = await self._repeated(sent)
        asked = _asked(row) if row is not None else sent.text or _call_text(sent.skill, sent.args)
        if turn is None:
            turn = await self._begun(sent, id)
        return TaskRecord(id, _context(turn.session), a2a.WORKING, now(), sent.message_id, asked), turn

    async def _repeated(self, sent: Sent) -> tuple[str, Turn | None, RecordedTurn | None]:
        """The id of a message's task, and for a repeat its turn, with all that it said, and its record.

        The same ``messageId`` in another context is another message: clients that count within each use it again.
        """
        key = f"{self._target.workspace}\0{sent.message_id}"  # to another it is another message
        for named in (key, f"{key}\0{sent.context}"):
            id = sent.task.lower() or program_turns.turn_id(self._program, named)
            turn = self._turns.lately(self._program.sender, id)
            row = await self._recorded(id) if sent.context or turn is not None else None
            known = turn or row
            if not sent.context or known is None or known.session == await self._session(sent.context):
                break
        return id, turn, row

    async def _session(self, context: str) -> str:
        return await program_turns.session_of(self._program, self._target, context)

    async def _begun(self, sent: Sent, id: str) -> Turn:
        # Its own context, told as such, is not looked for among the owner's conversations.
        digest = hashlib.sha256(f"context {id}".encode()).hexdigest()
        context = sent.context or f"{_CONTEXTS}{as_uuid(digest[:32], '8')}"
        more = {"message_id": sent.message_id}
        if sent.skill and sent.skill != ASK:
            return await program_turns.begin_call(
                self._program,
                self._target.workspace,
                sent.skill,
                await self._arguments(sent),
                session=context,
                more=more,
                recorded_id=id,
            )
        await programs.target_of(self._program, self._target.id)  # may it talk?
        history: list[dict[str, Any]] = []
        if sent.context:  # its messages carry no history: the record has it
            context = await self._session(context)
            history = await earlier(self._program, self._target, context)
        request = ChatRequest(sent.text, history, None, self._program.sender, pictures=sent.pictures)
        return await program_turns.begin(
            self._program, self._target, request, session=context, more=more, recorded_id=id
        )

    async def noted(self, found: TaskRecord, turn: Turn) -> TaskRecord:
        """The task as it is, once it is in the record: only then a client is told of it."""
        while not turn.is_over:
            row = await self._recorded(found.id)
            if row is not None:
                return msgspec.structs.replace(found, context=_context(row.session), asked=_asked(row))
            await self._daemon.dispatcher.flush()
        return await self.ended(found, turn)

    async def ended(self, found: TaskRecord, turn: Turn) -> TaskRecord:
        """The task with what its turn came to. Raises ``ReportableError`` where that is not known."""
        try:
            reply = await turn.reply()
        except RequestCancelledError as stopped:
            if self._daemon.dispatcher.closing:
                raise ShuttingDownError("This machine is stopping.", do="Ask again soon.") from stopped
            raise
        own, _ = thread_of(self._target.workspace, self._program.sender, turn.session)
        if turn.recorded_at and reply.thread == own:
            return _answered(found, reply, turn.recorded_at)
        return await self.get(found.id)  # a repeat, perhaps by another context

    async def get(self, id: str) -> TaskRecord:
        """A task of the program's; one that a restart cut off goes on if that does no harm. Raises ``A2AError``."""
        row = await self._recorded(id)
        if row is None:
            raise a2a.no_task()
        turn = self._turns.running(self._program.sender, id)
        if row.answer is None and turn is None:
            turn = await resumed(self._program, "", recorded_id=id)
            if turn is not None:
                await turn.over_within(_RESUMED_SECONDS)
            row = await self._recorded(id) or row
        return _from_record(id, row, turn)

    async def listed(self, query: TaskQuery) -> dict[str, Any]:
        """A page of the program's tasks, the latest first.

        Who shows no token may see those of a context that it names, and without one there are none: tasks of others
        here are its owner's to read, and the protocol has a list say no more than its caller may see.
        """
        rows: list[TurnRow] = []
        if query.context or self._program.control or not self._program.owners:
            rows = await recorded_turns(
                self._daemon.store,
                self._program.sender,
                self._target.workspace,
                f"{_CONTEXTS}{query.context}",
                begins=not query.context,
            )
        states = {one.id: await self._state(one) for one in rows}
        wanted = [one for one in rows if one.at >= query.after and query.state in ("", states[one.id])]
        at, _, last = query.token.partition(".")
        rest = [one for one in wanted if (one.at, one.id) < (int(at), last)] if query.token else wanted
        page = rest[: query.size]
        tasks = []
        for one in page:
            row = await self._recorded(one.id)
            if row is not None:
                found = _from_record(one.id, row, self._turns.running(self._program.sender, one.id))
                tasks.append(a2a_tasks.task(found, history=query.history, artifacts=query.artifacts))
        more = f"{page[-1].at}.{page[-1].id}" if len(rest) > len(page) else ""
        return {"tasks": tasks, "nextPageToken": more, "pageSize": query.size, "totalSize": len(wanted)}

    async def cancel(self, id: str) -> TaskRecord:
        """Stops a task. Raises ``A2AError`` for one that is over."""
        turn = self._turns.running(self._program.sender, id)
        found = await self.get(id)
        if turn is None or found.is_over:
            raise A2AError("TASK_NOT_CANCELABLE", "The task is over.", do="GetTask has what came of it.")
        turn.cancel()
        return await self.ended(found, turn)

    async def followed(self, id: str, after: int | None) -> TaskRecord:
        """A task that is to be streamed.

        Raises ``A2AError`` for one that is over, unless the client goes on after an event that it has.
        """
        found = await self.get(id)
        if found.is_over and after is None:
            raise A2AError("UNSUPPORTED_OPERATION", "The task is over.", do="GetTask has what came of it.")
        return found

    async def stream(
        self, found: TaskRecord, after: int | None, *, whole: bool, everything: bool
    ) -> AsyncIterator[tuple[int, dict[str, Any]]]:
        """Numbered stream events: those after ``after``; where that is None, the task and then its events.

        ``whole``: from its beginning, else from how it is now. Its events are kept for some minutes, its end for good.
        Raises ``ReportableError`` where the end is not known.
        """
        turn = self._turns.lately(self._program.sender, found.id)
        if turn is None and not found.is_over:  # it ended since, and is not kept: it told nothing
            found = await self.get(found.id)
            turn = self._turns.lately(self._program.sender, found.id)
        number = turn.number if turn is not None else after or 0
        text = ""
        if after is None:
            after = 0 if whole else number
            parts = _partial(turn) if turn is not None and not whole else []
            yield (
                after,
                {
                    "task": a2a_tasks.task(
                        msgspec.structs.replace(found, state=a2a.WORKING, parts=parts, status_text="")
                    )
                },
            )
        if turn is not None:
            async for number, raw in turn.events():
                event = _event(raw)
                told_of = a2a_tasks.event_of(found, event, first=not text, everything=everything)
                if isinstance(event, Delta):
                    text += event.text
                if told_of is not None and number > after:
                    yield number, told_of
            found = await self.ended(found, turn)
            number = turn.number
        endings = list(a2a_tasks.end_of(found, text))
        if not number or after > number + len(endings):
            number = max(
                number, after
            )  # from the record, which has the end alone: it is told whatever came before
        for place, ending in enumerate(endings, number + 1):
            if place > after:
                yield place, ending

    async def _state(self, row: TurnRow) -> str:
        if row.verb:
            return a2a_tasks.state_of(Envelope(row.id, "", "", row.verb, {"code": row.code}))
        if self._turns.running(self._program.sender, row.id) is not None:
            return a2a.WORKING
        # It ended since, or a restart cut it off: it goes on, or ends so.
        return (await self.get(row.id)).state

    async def _recorded(self, id: str) -> RecordedTurn | None:
        row = await recorded_turn(self._daemon.store, self._program.sender, id, self._target.workspace)
        spoken = row.asked.get("data", {}).get("program") if row is not None else None
        return row if isinstance(spoken, dict) and spoken.get("protocol") == PROTOCOL else None

    async def _refuse_more(self, sent: Sent) -> None:
        found = await self.get(sent.task.lower())
        if found.message_id == sent.message_id:
            return  # a repeat
        if sent.context not in ("", found.context):
            raise A2AError("INVALID_PARAMS", "The task is of another context.", do="Leave contextId out.")
        raise A2AError(
            "UNSUPPORTED_OPERATION",
            "A task takes one message.",
            do="Send the next one without a taskId, with the same contextId.",
        )

    async def _arguments(self, sent: Sent) -> dict[str, Any]:
        endpoints = self._daemon.dispatcher.endpoints
        agent = endpoints.named(self._target.workspace, sent.skill)
        if agent is None and self._target.workspace == HOST and self._program.direct:
            agent = await endpoints.found_in_sources(sent.skill, self._program.caller)
        if agent is not None and agent.kind == "workflow":
            return _with_text(sent, agent.input)
        known = [agent.row] if agent is not None else []
        arguments: dict[str, Any] = call_data(sent.text, sent.skill, sent.args, known)["args"]
        return arguments


def _context(session: Any) -> str:
    return str(session or "").removeprefix(_CONTEXTS)


def _from_record(id: str, row: RecordedTurn, turn: Turn | None) -> TaskRecord:
    message_id = str(row.asked.get("data", {}).get("message_id", id))
    found = TaskRecord(id, _context(row.session), a2a.WORKING, row.at, message_id, _asked(row))
    if row.answer is not None:
        return _answered(found, emergence.from_object(row.answer), row.at)
    if turn is None:
        return msgspec.structs.replace(found, state=a2a.FAILED, status_text=_CUT_OFF)
    return msgspec.structs.replace(found, parts=_partial(turn))


def _asked(row: RecordedTurn) -> str:
    data = row.asked.get("data", {})
    return str(data.get("user_input") or _call_text(str(data.get("agent", "")), data.get("args")))


def _answered(found: TaskRecord, reply: Envelope, at: int) -> TaskRecord:
    return msgspec.structs.replace(
        found,
        state=a2a_tasks.state_of(reply),
        at=at,
        parts=a2a_tasks.parts_of(reply),
        status_text=a2a_tasks.said_of(reply),
    )


def _partial(turn: Turn) -> list[dict[str, Any]]:
    text = turn.said()
    return [{"text": text}] if text else []


def _with_text(sent: Sent, schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a workflow: a text is the one file that it lacks."""
    lacking = schema["properties"].get("files", {}).get("required", [])
    given = sent.args.get("files", {})
    if not sent.text.strip() or len(lacking) != 1 or not isinstance(given, dict):
        return sent.args
    return {**sent.args, "files": {lacking[0]: sent.text, **given}}


def _call_text(skill: str, args: object) -> str:
    return f"{skill} {orjson.dumps(args).decode()}" if args else skill
