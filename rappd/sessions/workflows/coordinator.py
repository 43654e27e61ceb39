"""The Coordinator: runs workflows in sessions, one at a time for each; performs what the state table says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from envelopes.envelope import DONE, HELP, PARTICIPANT, Envelope, new_id
from envelopes.errors import ReportableError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, RefusedError, StoreError, UsageProblemError
from rappd.sessions.errors import SessionClosedError, WorkflowError, WorkflowStateError
from rappd.sessions.events import history
from rappd.sessions.guests import Guest
from rappd.sessions.participants import WORKFLOWS, Speaker, caller_of
from rappd.sessions.sessions import Session, Sessions, Work
from rappd.sessions.workflows import run_record as noting
from rappd.sessions.workflows.definition import Workflow, cue_needs, cue_of, persona_of
from rappd.sessions.workflows.library import WorkflowLibrary
from rappd.sessions.workflows.run_record import RunRecord, is_running, last_run, plain_answer, player_of
from rappd.sessions.workflows.run_rights import RunRights
from rappd.sessions.workflows.run_state import Action, Ask, RunState, Status, Stop, Write
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

_HISTORY = 12
_RECENT_SESSIONS = 20
_RECENT_RECORDS = 500


@dataclass(slots=True)
class _Run:
    """A run of this process: the record's part, the state table, the turn under way."""

    session: Session
    workflow: Workflow
    record: RunRecord
    state: RunState
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    turn: Turn | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with each note of it."""


class RunRow(noting.RunPosition):
    """A run of a workflow, and the session in which it runs."""

    session: str
    thread: str


class Coordinator:
    """All calls come from the event loop."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        sessions: Sessions,
        library: WorkflowLibrary,
        device: Callable[[str], Speaker | None],
    ) -> None:
        """``device`` gives a registered device by its id."""
        self.library = library
        self._dispatcher, self._sessions = dispatcher, sessions
        self._rights = RunRights(sessions.participants, device)
        self._runs: dict[str, _Run] = {}
        self._starting: set[str] = set()
        self._tasks = BackgroundTasks("a workflow failed")
        self._closing = False

    def running(self) -> list[RunRow]:
        """Runs that are not over, as screens show them."""
        return [self._shown(one) for one in self._runs.values() if not one.state.is_over]

    def offered(self) -> list[dict[str, Any]]:
        """Workflows that can be started, for phones. Blocks on the disk."""
        rows = [one for one in self.library.listing() if one.workflow is not None and not one.foreign]
        return [
            {
                "name": one.name, "title": one.workflow.title, "steps": len(one.workflow.steps),
                "files": self.library.needs(one),
                "participants": [{"name": each.name, "role": each.role, "plays": each.plays} for each in one.workflow.asked],
            }
            for one in rows
            if one.workflow
        ]  # fmt: skip

    async def players(self, *, plain: bool) -> list[str]:
        """The names of all that can play; ``plain``: published brainstems, too."""
        return await self._rights.players(plain=plain)

    async def start(
        self,
        session: Session,
        name: str,
        starter: str = noting.OPERATOR,
        given: dict[str, str] | None = None,
        plays: dict[str, str] | None = None,
    ) -> RunRow:
        """Starts a workflow for the operator, or a device. ``given`` are texts in place of its files.

        ``plays`` are names of twins, machines and what they offer, in place of those that its file names.

        Raises ``no_such_workflow``, ``WorkflowError``, ``foreign_workflow``, ``WorkflowStateError``, ``RefusedError``,
        and ``StoreError`` where its beginning cannot be recorded: then it does not run.
        """
        file = await asyncio.to_thread(self.library.find, name)
        workflow = file.runnable()
        texts = await asyncio.to_thread(self.library.texts, file, given or {})
        chosen = {one.name: who for one in workflow.participants if (who := (plays or {}).get(one.name, ""))}
        if unknown := set(plays or {}) - {one.name for one in workflow.participants}:
            names = ", ".join(one.name for one in workflow.participants)
            raise WorkflowError(
                f'No "{min(unknown)[:40]}" takes part in {workflow.title}.', do=f"There are: {names}."
            )
        for step in workflow.steps:
            cue_needs(step, texts)
        for one in workflow.participants:
            await self._rights.player(one, chosen.get(one.name, one.plays), self._rights.caller(starter))
        if session.closed:
            raise SessionClosedError
        if session.id in self._starting:
            raise WorkflowStateError("A workflow starts in this session.", do="Wait until it is over.")
        self._starting.add(session.id)
        try:
            before = await self._known(session)
            if before is not None and not before.state.is_over:
                raise WorkflowStateError(
                    f"{before.workflow.title} is {before.state.status} in this session.",
                    do="Wait until it is over, or: rappd workflows abort",
                )
            record = RunRecord(new_id(), file.name, session.id, file.sha256, starter, texts, chosen)
            run = _Run(session, workflow, record, RunState(len(workflow.steps)))
            text = f"{workflow.title} starts: {workflow.length}."
            self._note(
                run, noting.WORKFLOW, text, begun=noting.beginning(record), cast=noting.cast_of(workflow)
            )
            await self._dispatcher.flush()  # it runs only once the record says so
            self._runs[session.id] = run
        finally:
            self._starting.discard(session.id)
        async with run.lock:
            await self._perform(run, run.state.start()[1:])  # the beginning is written down already
        await self._dispatcher.flush()
        return self._shown(run)

    async def control(self, session: Session, action: str, name: str = "") -> RunRow:
        """Performs ``pause``, ``resume`` or ``abort``.

        Raises ``no_such_workflow``, ``WorkflowStateError``, and ``StoreError`` for what cannot be recorded: to pause
        and to go on count once they stand in the record.
        """
        run = await self._known(session)
        if run is None or run.state.is_over or (name and name != run.record.name):
            what = f"No {'such ' if name else ''}workflow runs in this session."
            raise NotFoundError(what, do="rappd workflows list", code="no_such_workflow")
        async with run.lock:
            if action in ("pause", "resume"):
                await self._change_recorded(run, action)
            elif action == "abort":
                await self._perform(run, run.state.abort())
            else:
                raise UsageProblemError(f'"{action[:40]}" is no action.', do="start, pause, resume or abort")
        await self._dispatcher.flush()
        return self._shown(run)

    async def settled(self, session: Session, on_step: Callable[[str], None]) -> RunRecord | None:
        """The run of a session once it is over or paused, as its record has it; None where none was started.

        ``on_step`` is called with a sentence for each step.
        """
        run, step = await self._known(session), 0
        if run is None:
            return last_run(await self._sessions.record.events(session.thread), session.id)
        while run.state.status is Status.RUNNING:
            if run.record.noted_step > step:
                step = run.record.noted_step
                on_step(self._step_text(run, step))
            run.changed.clear()
            await run.changed.wait()
        return run.record

    async def from_phone(
        self,
        session: Session,
        device: Speaker,
        action: str,
        name: str,
        given: dict[str, str],
        plays: dict[str, str],
    ) -> None:
        """The same for a phone, for which only those play that it was told of.

        Raises ``RefusedError`` where it may not, and what ``start`` and ``control`` raise.
        """
        if not WORKFLOWS.admits(caller_of(device)):
            log.warning("security: %s may not run workflows", device.name)
            raise RefusedError("This phone may not run workflows.", do="Ask its owner: rappd devices scopes")
        if action == "start":
            chosen = {one: who for one, who in plays.items() if who}
            known = set(await self.players(plain=False)) if chosen else set()
            for who in chosen.values():
                if who not in known:
                    raise NotFoundError(f'Nobody here is called "{who[:60]}".', do="Choose one of the list.")
            await self.start(session, name, device.id, given, chosen)
        else:
            await self.control(session, action, name)

    def interject(self, session: Session, speak: Callable[[], Work]) -> Work | None:
        """Interrupts the run of a session for a sentence, which ``speak`` asks, and goes on afterwards.

        None where nothing runs: then the sentence is asked as any other.
        """
        run = self._runs.get(session.id)
        return None if run is None or run.state.is_over else self._interjected(run, speak)

    async def recover(self) -> None:
        """After a restart: runs of lately used sessions go on with the step that was not answered."""
        rows = sorted(await self._sessions.record.rows(), key=lambda row: -row.updated)
        for row in rows[:_RECENT_SESSIONS]:
            try:
                records = await self._sessions.record.events(row.thread, last=_RECENT_RECORDS)
                if is_running(records):
                    await self._known(await self._sessions.open(row.id))
            except ReportableError as problem:
                log.error("a workflow cannot go on: %s", problem)

    async def close(self) -> None:
        """Ends turns; their steps are asked again after the next start."""
        self._closing = True
        turns = [one.turn for one in self._runs.values() if one.turn is not None]
        self._tasks.cancel()
        for turn in turns:
            turn.cancel()
        await self._tasks.settle()
        await asyncio.gather(*(turn.over_within(None) for turn in turns))

    async def _known(self, session: Session) -> _Run | None:
        """The last run of a session, taken up from its record where this process does not know it."""
        if session.id in self._runs:
            return self._runs[session.id]
        record = last_run(await self._sessions.record.events(session.thread), session.id)
        if session.id in self._runs:  # another call took it up meanwhile
            return self._runs[session.id]
        if record is None or record.status in (Status.DONE, Status.ABORTED):
            return None
        file = await asyncio.to_thread(self._found, record.name)
        workflow = file.workflow if file is not None and file.sha256 == record.sha256 and not file.foreign else None  # fmt: skip
        if session.id in self._runs:
            return self._runs[session.id]
        if workflow is None:
            note = noting.lost(record)
            text = f"{record.name} was stopped: its file is not the one that was started."
            self._sessions.note(session, noting.WORKFLOW, by="system", text=text, workflow=note)
            return None
        state = RunState(len(workflow.steps), step=record.step, status=record.status)
        run = self._runs[session.id] = _Run(session, workflow, record, state)
        async with run.lock:
            await self._perform(run, run.state.start())
        return run

    def _found(self, name: str) -> Any:
        try:
            return self.library.find(name)
        except NotFoundError:
            return None

    async def _interjected(self, run: _Run, speak: Callable[[], Work]) -> None:
        async with run.lock:
            await self._perform(run, run.state.interject())
        try:
            await speak()
        finally:
            if not self._closing:
                async with run.lock:
                    await self._perform(run, run.state.interjection_over())

    async def _perform(self, run: _Run, actions: list[Action]) -> None:
        """Performs the actions of a step of the state table; the run's lock is held."""
        was_answered = False
        for action in actions:
            if isinstance(action, Ask):
                await self._ask(run, action.step)
            elif isinstance(action, Stop):
                was_answered = await self._stop(run, action.reason)
            elif not (action.preempted and was_answered):
                self._write(run, action)

    async def _ask(self, run: _Run, number: int) -> None:
        step = run.workflow.steps[number - 1]
        run.record.step = number
        if run.record.noted_step < number:
            run.record.noted_step = number
            self._note(run, noting.DEMO_STEP, self._step_text(run, number), label=step.participant)
        if run.session.closed:
            await self._perform(run, run.state.abort("The session was closed."))
            return
        played = run.workflow.participant(step.participant)
        try:
            caller = self._rights.caller(run.record.starter)
            player = await self._rights.player(played, player_of(run.record, played), caller)
            cue, without_model = cue_of(step, run.record.answers, run.record.files)
        except ReportableError as problem:
            await self._perform(run, run.state.failed(problem.with_advice(), final=True))
            return
        name, guid = self._rights.behalf(run.record.starter)
        data: dict[str, Any] = {
            "user_input": cue, "by": run.workflow.driver.name, "on_behalf_of": name,
            "workflow": noting.position(run.record, run.workflow),
        }  # fmt: skip
        if without_model:
            data["without_model"] = without_model
        persona = persona_of(played, run.workflow.driver)
        if isinstance(player, Guest):  # another machine gets the cue, nothing else that was said
            data |= {"guest": msgspec.to_builtins(player), "persona": persona["content"]}
            recipient = self._sessions.participants.gateway.recipient
        else:
            records = await self._sessions.record.events(run.session.thread, last=_HISTORY)
            earlier = history(records, await self._sessions.participants.names(records))
            data["conversation_history"] = [persona, *earlier]
            recipient = player.id
        envelope = Envelope(new_id(), guid, recipient, HELP, data, {PARTICIPANT: played.name})
        names, written = (run.workflow.driver.name, played.name), asyncio.Event()
        turn = self._dispatcher.submit(
            envelope, caller, thread=run.session.thread, names=names, recorded=written.set
        )
        run.turn = self._dispatcher.begin(turn)
        turn.when_over(written.set)  # it could not be written down
        self._tasks.spawn(self._await_turn(run, turn))
        await written.wait()  # a pause that comes now stands behind it: the last record says what holds

    async def _await_turn(self, run: _Run, turn: Turn) -> None:
        await turn.over_within(None)
        async with run.lock:
            if self._closing or run.turn is not turn:
                return  # it was stopped
            run.turn = None
            await self._perform(run, self._actions_after(run, turn))

    def _actions_after(self, run: _Run, turn: Turn) -> list[Action]:
        try:
            reply = turn.result()
        except ReportableError:
            return run.state.failed("It was cut off.")
        if reply.verb == DONE:
            return self._answered(run, reply.data)
        why = [str(reply.data.get("msg", "")), str(reply.data.get("do", ""))]
        return run.state.failed(" — ".join(one.rstrip(".") for one in why if one) + ".")

    async def _stop(self, run: _Run, reason: str) -> bool:
        """Stops the turn under way. Returns True when its answer is recorded already, and counts."""
        turn, run.turn = run.turn, None
        if turn is None:
            return False
        turn.cancel(reason)
        await turn.over_within(None)
        await self._dispatcher.flush()
        for record in await self._sessions.record.events(run.session.thread, last=_HISTORY):
            if record.id == turn.envelope.id and record.verb == DONE:
                await self._perform(run, self._answered(run, orjson.loads(record.body)["data"]))
                return True
        return False

    def _answered(self, run: _Run, data: dict[str, Any]) -> list[Action]:
        participant = run.workflow.steps[run.record.step - 1].participant
        run.record.answers[participant] = plain_answer(str(data.get("response") or data.get("result") or ""))
        run.record.step += 1
        return run.state.answered()

    async def _change_recorded(self, run: _Run, action: str) -> None:
        """Pauses a run, or goes on with it. Nothing is changed where it cannot be written down."""
        state, before = copy(run.state), run.record.status
        written, *others = state.pause() if action == "pause" else state.resume()
        assert isinstance(written, Write)
        run.record.status = written.status
        try:
            position = noting.position(run.record, run.workflow)
            text, by = self._status_text(run, written), run.workflow.driver.name
            await self._sessions.note_first(run.session, noting.WORKFLOW, by=by, text=text, workflow=position)
        except StoreError:
            run.record.status = before
            raise
        run.state = state
        run.changed.set()
        await self._perform(run, others)

    def _write(self, run: _Run, action: Write) -> None:
        run.record.status = action.status
        if action.preempted:
            step = min(run.record.step, len(run.workflow.steps))
            self._note(run, noting.PREEMPTED, f"Interrupted: step {step} is asked again afterwards.")
        else:
            self._note(run, noting.WORKFLOW, self._status_text(run, action))

    def _status_text(self, run: _Run, action: Write) -> str:
        title = run.workflow.title
        step = min(run.record.step, len(run.workflow.steps))
        if action.again:
            return f"Step {step} failed, and is asked once more. {action.why}".strip()
        return {
            Status.RUNNING: f"{title} goes on with step {step}.",
            Status.PAUSED: f"{title} is paused. {action.why}".strip(),
            Status.DONE: f"{title} is done.",
            Status.ABORTED: f"{title} was stopped. {action.why}".strip(),
        }[action.status]

    def _step_text(self, run: _Run, number: int) -> str:
        return f"Step {number} of {len(run.workflow.steps)}: {run.workflow.steps[number - 1].participant}"

    def _note(self, run: _Run, kind: str, text: str, **more: Any) -> None:
        position = noting.position(run.record, run.workflow)
        by = run.workflow.driver.name
        self._sessions.note(run.session, kind, by=by, text=text, workflow=position, **more)
        run.changed.set()

    def _shown(self, run: _Run) -> RunRow:
        position = noting.position(run.record, run.workflow)
        return {**position, "session": run.session.id, "thread": run.session.thread}
