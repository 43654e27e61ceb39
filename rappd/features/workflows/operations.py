"""The owner's operations on workflows: list, show, approve, run, pause, resume and abort."""

from __future__ import annotations

import asyncio
import logging
from typing import Literal, TypedDict

from rappd.features.operation import OWNER, Text, operation
from rappd.sessions.sessions import Session
from rappd.sessions.workflows.coordinator import Coordinator, RunRow
from rappd.sessions.workflows.library import NeededText, WorkflowRow
from rappd.tether.service import TetherService

log = logging.getLogger(__name__)


class Workflows(TypedDict):
    """Workflows, and the runs that are not over."""

    workflows: list[WorkflowRow]
    runs: list[RunRow]


class ShownWorkflow(WorkflowRow):
    """A workflow with the texts that it takes, and the names of all that may play in it."""

    files: list[NeededText]
    players: list[str]


class WorkflowOperations:
    """``session``: the one that a run belongs to; without one, the session used last."""

    def __init__(self, coordinator: Coordinator, tether: TetherService) -> None:
        self._coordinator, self._tether = coordinator, tether

    @operation("workflows.list", "GET", "/workflows", right=OWNER)
    async def listing(self) -> Workflows:
        """Lists workflows, and the runs that are not over."""
        found = await asyncio.to_thread(self._coordinator.library.listing)
        return {"workflows": [one.shown() for one in found], "runs": self._coordinator.running()}

    @operation(
        "workflows.control", "POST", "/workflows/{action:pause|resume|abort}", right=OWNER, answers="run"
    )
    async def control(self, action: Literal["pause", "resume", "abort"], session: str = "") -> RunRow:
        """Pauses, resumes or aborts the run of a `session`; without one, of the session used last."""
        return await self._coordinator.control(await self._session(session), action)

    @operation("workflows.show", "GET", "/workflows/{name}", right=OWNER)
    async def show(self, name: str) -> ShownWorkflow:
        """Shows a workflow with its text; `files` are the texts that it takes, `players` the names of all that may play in it."""
        library = self._coordinator.library
        file = await asyncio.to_thread(library.find, name)
        needs = await asyncio.to_thread(library.needs, file)
        return {
            **file.shown(whole=True),
            "files": needs,
            "players": await self._coordinator.players(plain=True),
        }

    @operation("workflows.approve", "POST", "/workflows/{name}/approve", right=OWNER)
    async def approve(self, name: str, sha256: Text) -> WorkflowRow:
        """Lets a foreign workflow run, exactly as it was read: the `sha256` that it was shown with."""
        found = await asyncio.to_thread(self._coordinator.library.approve, name, sha256)
        log.warning("security: the workflow %s was approved", found.name)
        self._tether.workflows_changed()
        return found.shown()

    @operation("workflows.run", "POST", "/workflows/{name}/run", right=OWNER, answers="run")
    async def run(
        self,
        name: str,
        session: str = "",
        files: dict[str, str] | None = None,
        plays: dict[str, str] | None = None,
    ) -> RunRow:
        """Starts a workflow in a `session` (or the one used last): `files` are texts in place of its files, by their names.

        `plays` are names of players by participants: a twin, a paired machine, or what that offers (`Ink@pi`).
        """
        place = await self._session(session)
        return await self._coordinator.start(place, name, given=files or {}, plays=plays or {})

    async def _session(self, id: str) -> Session:
        if not id:
            return await self._tether.current.open()
        return await self._tether.sessions.open((await self._tether.sessions.find(id)).id)
