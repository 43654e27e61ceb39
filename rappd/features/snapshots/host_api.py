"""The neighborhood's operations that agents call: ``neighborhood.<verb>`` of ``utils.host``.

An agent's call ends after a while: work that lasts longer goes on, ``status`` tells how far it is, and its
end becomes a notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neighborhoods.snapshot.errors import NoSuchSnapshotError
from rappd.errors import NotFoundError
from rappd.features.snapshots.operations import DaemonSnapshots, ended_line
from rappd.features.snapshots.snapshot_view import writes_elsewhere
from rappd.features.snapshots.work import SnapshotWork

WAIT_SECONDS = 15.0
"""Half of what an agent's call may take by default."""


class NeighborhoodHostApi:
    """Verbs by their names. Answers are JSON objects; raises ``ReportableError``.

    A restore that would write to other machines begins only when the same restore was planned here before, and
    ``confirm`` is true: what is approved is the digest of the plan that was shown.
    """

    def __init__(
        self,
        snapshots: DaemonSnapshots,
        schedule: Callable[[], dict[str, Any]],
        places: Callable[[], dict[str, Any]],
    ) -> None:
        """``schedule`` gives the schedule of snapshots as screens show it, ``places`` the neighborhoods that lie here."""
        self._places = places
        self._snapshots = snapshots
        self._schedule = schedule
        self._shown: dict[tuple[str, str], str] = {}
        """Digests of the plans that were shown, by snapshot and options."""

    async def perform(self, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A verb by its name."""
        options = given.get("options")
        chosen = dict(options) if isinstance(options, dict) else {}
        text = {key: value for key, value in given.items() if isinstance(value, str)}
        match verb:
            case "snapshot":
                work = await self._snapshots.begin_snapshot(chosen, name=text.get("name", ""))
                return await self._so_far(work)
            case "status":
                return {"work": self._snapshots.under_way()}
            case "places":
                return await asyncio.to_thread(self._places)
            case "schedule":
                return self._schedule()
            case "snapshots":
                return await asyncio.to_thread(self._snapshots.verbs.snapshots)
            case "inspect":
                path = await self._path(text.get("egg", ""))
                return await self._snapshots.verbs.inspect(path)
            case "plan":
                return await self._plan(await self._path(text.get("egg", "")), chosen)
            case "hatch":
                path = await self._path(text.get("egg", ""))
                return await self._hatch(path, chosen, text.get("approved", ""), given.get("confirm") is True)
        raise NotFoundError(f'There is no operation "neighborhood.{verb[:40]}".')

    async def _path(self, egg: str) -> Path:
        """The snapshot of that name or path; the newest without one."""
        folder = self._snapshots.verbs.folder
        if egg:
            return await asyncio.to_thread(folder.find, egg)
        for record in await asyncio.to_thread(folder.listing):
            if record.is_there:
                return Path(record.path)
        raise NoSuchSnapshotError("There is no snapshot yet.", do="rappd neighborhood snapshot")

    async def _plan(self, path: Path, options: dict[str, Any]) -> dict[str, Any]:
        found = await self._snapshots.plan(str(path), options)
        self._shown[_key(path, found["plan"])] = found["plan"]["digest"]
        return found

    async def _hatch(
        self, path: Path, options: dict[str, Any], approved: str, confirm: bool
    ) -> dict[str, Any]:
        planned = (await self._snapshots.plan(str(path), options))["plan"]
        key = _key(path, planned)
        if not approved and writes_elsewhere(planned):
            if not confirm or key not in self._shown:
                self._shown[key] = planned["digest"]
                return {"plan": planned, "needs_yes": True}
            approved = self._shown[key]
        work = await self._snapshots.begin_restore(str(path), options, approved=approved or planned["digest"])
        self._shown.pop(key, None)
        return await self._so_far(work)

    async def _so_far(self, work: SnapshotWork) -> dict[str, Any]:
        done = await self._snapshots.wait(work, WAIT_SECONDS)
        if done is None:
            return {"work": work.as_json()}
        return {**done, "message": ended_line(done)}


def _key(path: Path, plan: dict[str, Any]) -> tuple[str, str]:
    return str(path), repr(sorted(plan["options"].items()))
