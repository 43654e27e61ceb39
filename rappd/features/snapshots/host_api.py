"""The neighborhood's operations that agents call: ``neighborhood.<verb>`` of ``utils.host``.

An agent's call ends after a while: work that lasts longer goes on, ``status`` tells how far it is, and its
end becomes a notice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neighborhoods.errors import NeighborhoodError
from neighborhoods.snapshot.snapshot_folder import SnapshotRecord
from rappd.dispatch.turns import Turn
from rappd.features.operation import agent_operation
from rappd.features.snapshots.answers import RestorePlanned, RestoreSteps
from rappd.features.snapshots.operations import SnapshotOperations
from rappd.features.snapshots.progress import ended_line

WAIT_SECONDS = 15.0
"""Half of what an agent's call may take by default."""

Options = dict[str, Any] | None


class NeighborhoodHostApi:
    """Verbs by their names. Answers are JSON objects; raises ``ReportableError``.

    A restore that would write to other machines begins only when the same restore was planned here before, and
    ``confirm`` is true: what is approved is the digest of the plan that was shown. Until then it waits, for phones, too;
    one that a phone answered is shown anew.
    """

    def __init__(self, snapshots: SnapshotOperations, signer_name: Callable[[str], str]) -> None:
        self._snapshots, self._signer_name = snapshots, signer_name
        self._shown: dict[tuple[str, str], tuple[str, str]] = {}
        """By snapshot and options: digests of the plans that were shown, and the ids of those that wait for a yes."""

    @agent_operation("neighborhood.snapshot")
    async def snapshot(self, name: str = "", options: Options = None) -> dict[str, Any]:
        """Takes a snapshot of all machines."""
        return await self._so_far(await self._snapshots.take(name, options or {}))

    @agent_operation("neighborhood.inspect")
    async def inspect(self, egg: str = "") -> dict[str, Any]:
        """Describes a snapshot, the newest without a name or path."""
        path = await self._path(egg)
        known = {record.path: record for record in self._snapshots.folder.listing()}
        return await asyncio.to_thread(_snapshot_view, path, known.get(str(path)), self._signer_name)

    async def _path(self, egg: str) -> Path:
        """The snapshot of that name or path; the newest without one."""
        folder = self._snapshots.folder
        if egg:
            return await asyncio.to_thread(folder.find, egg)
        for record in await asyncio.to_thread(folder.listing):
            if record.is_there:
                return Path(record.path)
        raise NeighborhoodError(
            "There is no snapshot yet.", do="rappd neighborhood snapshot", code="no_such_snapshot"
        )

    @agent_operation("neighborhood.plan")
    async def plan(self, egg: str = "", options: Options = None) -> RestorePlanned:
        """Plans the restore of a snapshot."""
        path = await self._path(egg)
        found = await self._snapshots.plan(str(path), options or {})
        self._shown[_key(path, found["plan"])] = found["plan"]["digest"], ""
        return found

    @agent_operation("neighborhood.hatch")
    async def hatch(
        self, egg: str = "", options: Options = None, approved: str = "", confirm: bool = False
    ) -> dict[str, Any]:
        """Restores a snapshot."""
        path, options = await self._path(egg), options or {}
        planned = (await self._snapshots.plan(str(path), options))["plan"]
        key = _key(path, planned)
        from neighborhoods.snapshot.plan import writes_elsewhere

        if not approved and writes_elsewhere(planned):
            waits = {one.id for one in self._snapshots.open_restores.all()}
            if not confirm or key not in self._shown or self._shown[key][1] not in {"", *waits}:
                id = hashlib.sha256(repr(key).encode()).hexdigest()
                self._shown[key] = planned["digest"], id
                self._snapshots.open_restores.hold(id, path, options, planned["digest"])
                return {"plan": planned, "needs_yes": True}
            approved = self._shown[key][0]
        _, id = self._shown.pop(key, ("", ""))
        turn = await self._snapshots.restore(str(path), approved or planned["digest"], options, id=id)
        return await self._so_far(turn)

    async def _so_far(self, turn: Turn) -> dict[str, Any]:
        done = await self._snapshots.so_far(turn, WAIT_SECONDS)
        if done is None:
            return {"work": self._snapshots.under_way()}
        return {**done, "message": ended_line(done)}


def _key(path: Path, plan: RestoreSteps) -> tuple[str, str]:
    return str(path), repr(sorted(plan["options"].items()))


def _snapshot_view(
    path: Path, record: SnapshotRecord | None, signer_name: Callable[[str], str]
) -> dict[str, Any]:
    """Reads and checks the whole egg. Raises what ``SnapshotContents.open`` raises. Blocks on the disk."""
    from neighborhoods.snapshot.snapshot_contents import (
        SnapshotContents,  # reading eggs costs what a start must not
    )

    contents = SnapshotContents.open(path)
    with contents.opened as opened:
        members = opened.manifest["members"]
        local = members.get("local", {}) if isinstance(members, dict) else {}
        here = {
            "name": str(local.get("host") or opened.manifest.get("snapshotted_from") or ""),
            "self": True,
            "twins": [
                {"hash": unit.key, "name": unit.name, "archived": unit.is_archived, "captured": True}
                for unit in contents.local
                if unit.kind == "twin"
            ],
        }
        others = [
            {
                "name": block.name,
                "self": False,
                "twins": [
                    {
                        "hash": twin.hash,
                        "name": twin.name,
                        "archived": twin.is_archived,
                        "captured": twin.part is not None,
                        **({"reason": twin.reason} if twin.part is None else {}),
                    }
                    for twin in block.twins
                ],
            }
            for block in contents.peers
        ]
        return {
            "snapshot": {
                "name": opened.name,
                "file": opened.file,
                "path": str(path),
                "size": opened.size,
                "sha256": opened.digest,
                "packed_at": opened.packed_at,
                "whole": opened.seal.whole is True,
                "signer": opened.seal.signer,
                "signer_name": signer_name(opened.seal.signer),
                "machines": [here, *others],
                "missing": list(record.missing) if record else [],
                "restorable": bool(record and record.drill and record.drill.passed),
                "drill": record.as_json()["drill"] if record else None,
            }
        }
