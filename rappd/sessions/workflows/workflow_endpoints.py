"""Workflows among all that can be called here: a call is a run in a session of its own, and ends with what it came to."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import orjson

from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import OnPiece
from envelopes.envelope import as_uuid
from envelopes.errors import ReportableError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import WORKFLOW, Call, Endpoint
from rappd.dispatch.rights import ANYBODY
from rappd.dispatch.turns import RequestContext
from rappd.errors import UsageProblemError
from rappd.sessions.sessions import Session, Sessions
from rappd.sessions.workflows.coordinator import Coordinator
from rappd.sessions.workflows.definition import Workflow
from rappd.sessions.workflows.library import NeededText, WorkflowFile
from rappd.sessions.workflows.run_record import RunRecord
from rappd.sessions.workflows.run_state import Status


class _Arguments(msgspec.Struct, forbid_unknown_fields=True):
    files: dict[str, str] = {}
    plays: dict[str, str] = {}


class WorkflowEndpoints:
    """The source of workflows for the registry. All calls come from the event loop."""

    def __init__(self, dispatcher: Dispatcher, sessions: Sessions, coordinator: Coordinator) -> None:
        self._dispatcher, self._sessions, self._coordinator = dispatcher, sessions, coordinator
        self._found: list[Endpoint[Call]] = []
        # Phones run workflows in their session; what they may is asked there.
        dispatcher.endpoints.add_source(ANYBODY, self._found.copy, look=self.look)

    async def look(self) -> None:
        """Reads the files anew. Those that may not run are not there."""
        found = [
            self._endpoint(file.name, file.workflow, needs)
            for file, needs in await asyncio.to_thread(self._read)
        ]
        if [one.row for one in found] != [one.row for one in self._found]:
            self._found[:] = found

    def _read(self) -> list[tuple[WorkflowFile, list[NeededText]]]:
        library = self._coordinator.library
        return [(one, library.needs(one)) for one in library.listing() if one.workflow and not one.foreign]

    def _endpoint(self, name: str, workflow: Workflow | None, needs: list[NeededText]) -> Endpoint[Call]:
        assert workflow is not None
        return Endpoint(
            f"{WORKFLOW}{name}",
            "workflow",
            "",
            f"{WORKFLOW}{name}",
            _description(workflow),
            _parameters(workflow, needs),
            None,
            ANYBODY,
            partial(self._run, name),
        )

    async def _run(
        self,
        name: str,
        context: RequestContext,
        arguments: dict[str, Any],
        upstream: dict[str, Any] | None,
        on_piece: OnPiece | None,
    ) -> AgentResult:
        """One run; what goes wrong is its result. A call that comes again after a restart goes on with its run."""
        started = time.monotonic()
        try:
            asked = msgspec.convert(arguments, _Arguments)
        except msgspec.ValidationError as error:
            raise UsageProblemError(f"{name}: {error}.", do='Send {"files": {…}, "plays": {…}}.') from None
        session = await self._sessions.open(_session_of(context))
        try:
            run = await self._settled(session, on_piece)
            if run is None:
                await self._coordinator.start(session, name, given=asked.files, plays=asked.plays)
                run = await self._settled(session, on_piece)
        except ReportableError as problem:
            return AgentResult(False, problem.with_advice(), None, time.monotonic() - started)
        except asyncio.CancelledError:
            if not self._dispatcher.closing:  # else it goes on after the next start
                await self._abort(session)
            raise
        assert run is not None
        ok, text = _outcome(run)
        return AgentResult(ok, text, None, time.monotonic() - started)

    async def _settled(self, session: Session, on_piece: OnPiece | None) -> RunRecord | None:
        on_text: Callable[[str], None] = on_piece or (lambda _: None)
        return await self._coordinator.settled(session, on_text)

    async def _abort(self, session: Session) -> None:
        try:
            await self._coordinator.control(session, "abort")
        except ReportableError:
            return  # it is over


def _session_of(context: RequestContext) -> str:
    """The session of a call: always the same, so that a repeat finds its run."""
    text = f"workflow\0{context.envelope.sender}\0{context.envelope.id}"
    return as_uuid(hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32], "8")


def _outcome(run: RunRecord) -> tuple[bool, str]:
    if run.status is Status.DONE:
        last = list(run.answers.values())[-1] if run.answers else ""
        result = {"result": last, "answers": run.answers, "session": run.session}
        return True, orjson.dumps(result).decode()
    if run.status is Status.PAUSED:
        return (
            False,
            f"{run.name} is paused at step {run.step}. Its owner lets it go on: rappd workflows resume",
        )
    return False, f"{run.name} was stopped at step {run.step}."


def _description(workflow: Workflow) -> str:
    about = workflow.about.strip() or f"{workflow.title}."
    players = ", ".join(one.name for one in workflow.asked)
    return f"A workflow of {workflow.length} in which {players} speak in turn. {about}"


def _parameters(workflow: Workflow, needs: list[NeededText]) -> dict[str, Any]:
    text, found = {"type": "string"}, {}
    if needs:
        lacking = [one["name"] for one in needs if not one["there"] and not one["optional"]]
        found["files"] = {
            "type": "object",
            "description": "Texts that it works on, by their names.",
            "properties": {one["name"]: text for one in needs},
            "required": lacking,
        }
    found["plays"] = {
        "type": "object",
        "description": "Names of twins or machines that play somebody, in place of the usual ones.",
        "properties": {one.name: text for one in workflow.asked},
    }
    required = ["files"] if needs and found["files"]["required"] else []
    return {"type": "object", "properties": found, "required": required}
