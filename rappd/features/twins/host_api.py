"""The twin operations that agents call: ``twins.<verb>`` of ``utils.host``.

The caller may be the very twin that is concerned: what would end its workers waits until it has answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.twins.checkpoints import CheckpointOperations
from rappd.features.twins.operations import TwinOperations, number
from rappd.features.twins.queries import who_is
from rappd.features.twins.supervisor import TwinSupervisor
from twins.lifecycle.lookup import find_active
from twins.lifecycle.selection import Selection
from twins.workspace.identity_file import proper_name
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout


class TwinHostApi:
    """Verbs on one home's twins by their names. Answers are JSON objects; raises ``ReportableError``.

    Work that waits until a twin has answered its active requests is named under ``put_off``, as
    ``[{hash, name, kind}]``.
    """

    def __init__(
        self,
        places: TwinLayout,
        verbs: TwinOperations,
        checkpoints: CheckpointOperations,
        living: TwinSupervisor,
    ) -> None:
        self._places = places
        self._verbs = verbs
        self._checkpoints = checkpoints
        self._living = living

    async def perform(self, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A verb by its name."""
        text = {key: value for key, value in given.items() if isinstance(value, str)}
        selector, confirm = text.get("twin", ""), given.get("confirm") is True
        reason, verbs = text.get("reason", ""), self._verbs
        match verb:
            case "list":
                return await verbs.listing()
            case "archived":
                return {"archived": await verbs.lifecycle.list_archived()}
            case "purged":
                return {"purged": await verbs.lifecycle.list_purged()}
            case "lineage":
                return await verbs.lineage(selector)
            case "new":
                kind, soul = text.get("kind", ""), text.get("text", "")
                return await verbs.new(_said(text, "name"), kind=kind, soul=soul)
            case "archive":
                matching = given.get("filter")
                return await self._archive(selector, matching, confirm=confirm, reason=reason)
        selector = _said(text, "twin")
        match verb:
            case "show":
                return await verbs.show(selector)
            case "rename":
                return await verbs.rename(selector, _said(text, "name"))
            case "fork":
                return await self._fork(selector, text.get("name", ""))
            case "boot":
                return await verbs.boot(selector)
            case "stop":
                return await self._stop(selector)
            case "soul":
                return await verbs.soul(selector)
            case "edit_soul":
                return await verbs.edit_soul(selector, _said(text, "text"), reason=reason)
            case "restore_soul":
                return await verbs.restore_soul(selector, number(given, "number"))
            case "checkpoint":
                return await self._checkpoints.make(selector, note=text.get("note", ""))
            case "checkpoints":
                return await self._checkpoints.listing(selector)
            case "rollback":
                return await self._roll_back(selector, text.get("checkpoint", ""), confirm=confirm)
            case "unarchive":
                return await verbs.unarchive(selector)
            case "purge":
                return await verbs.purge(selector, confirm=confirm, reason=reason)
        raise NotFoundError(f'There is no operation "twins.{verb[:40]}".')

    async def _stop(self, selector: str) -> dict[str, Any]:
        twin = await self._twin(selector)
        when = "" if await self._living.let_sleep(twin.key) else " as soon as it has answered"
        return {**who_is(twin), "message": f"{twin.name} is stopped{when}."}

    async def _fork(self, selector: str, name: str) -> dict[str, Any]:
        twin = await self._twin(selector)
        if not self._living.is_answering(twin.key):
            return await self._verbs.fork(twin.key, name)
        name = name and proper_name(name)
        work = partial(self._verbs.fork, twin.key, name)
        self._living.once_answered(twin.key, f"the fork {name}".rstrip(), work)
        called = f"{name}, a fork of {twin.name}, is" if name else f"A fork of {twin.name} is"
        return _put_off(twin, f"{called} made as soon as {twin.name} has answered.")

    async def _roll_back(self, selector: str, checkpoint: str, *, confirm: bool) -> dict[str, Any]:
        twin = await self._twin(selector)
        work = partial(self._checkpoints.rollback, twin.key, checkpoint=checkpoint, confirm=confirm)
        if not confirm or not self._living.is_answering(twin.key):
            return await work()
        looked = await self._checkpoints.rollback(twin.key, checkpoint=checkpoint)  # that there is such a one
        at = looked["checkpoint"]["at"]
        self._living.once_answered(twin.key, f"the way back to {at}", work)
        return _put_off(twin, f"{twin.name} is as it was at {at} as soon as it has answered.")

    async def archive_matching(
        self, selection: Selection, *, confirm: bool, reason: str = "", by: str = "operator"
    ) -> dict[str, Any]:
        """Archives all that a selection means; those that are answering, afterwards. A dry run unless confirmed."""
        found = await self._verbs.lifecycle.archive_matching(
            selection, confirm=confirm, reason=reason, by=by, put_off=self._living.is_answering
        )
        return self._archived_later(found, reason, by)

    async def _archive(
        self, selector: str, matching: object, *, confirm: bool, reason: str
    ) -> dict[str, Any]:
        if not selector:
            return await self.archive_matching(
                Selection.from_filter(matching), confirm=confirm, reason=reason
            )
        answering = self._living.is_answering
        found = await self._verbs.lifecycle.archive(selector, reason=reason, put_off=answering)
        return self._archived_later(found, reason, "operator")

    def _archived_later(self, found: dict[str, Any], reason: str, by: str) -> dict[str, Any]:
        waiting = found.get("put_off", [])
        for twin in waiting:
            work = partial(self._verbs.lifecycle.archive, twin["hash"], reason=reason, by=by)
            self._living.once_answered(twin["hash"], "the archiving", work)
        if not waiting:
            return found
        named = " and ".join(twin["name"] for twin in waiting)
        told = "is archived as soon as it has" if len(waiting) == 1 else "are archived as soon as they have"
        return {**found, "message": f"{named} {told} answered."}

    async def _twin(self, selector: str) -> Twin:
        return await asyncio.to_thread(find_active, self._places, selector)


def _put_off(twin: Twin, message: str) -> dict[str, Any]:
    return {"put_off": [{"hash": twin.key, "name": twin.name, "kind": twin.kind}], "message": message}


def _said(text: Mapping[str, str], field: str) -> str:
    if not text.get(field, "").strip():
        raise UsageProblemError(f"{field} is missing.", do=f"Say the {field}.")
    return text[field]
