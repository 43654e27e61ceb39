"""Operations on twins that are agents' own: ``twins.…`` of ``utils.host``.

The caller may be the very twin that is concerned: what would end its workers waits until it has answered.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TypedDict

from envelopes.envelope import ERROR, HELP, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.errors import RefusedError
from rappd.features.operation import Text, agent_operation
from rappd.features.twins.checkpoints import CheckpointOperations, RolledBack
from rappd.features.twins.operations import (
    Forked,
    NewTwin,
    SoulChanged,
    TwinOperations,
    TwinSaid,
    TwinsListed,
)
from rappd.features.twins.queries import who_is
from rappd.tenants.tenants import Tenants
from twins.lifecycle.lifecycle import LifecycleResult, NamedTwin
from twins.lifecycle.lookup import find_active
from twins.lifecycle.selection import Selection
from twins.workspace.identity_file import proper_name
from twins.workspace.twin import Twin


class TwinAnswer(TypedDict):
    """The answer of a twin."""

    twin: str
    response: str


class PutOff(TypedDict):
    """Work that waits until a twin has answered its active requests."""

    put_off: list[NamedTwin]
    message: str


class TwinHostApi:
    """Operations on one home's twins that agents ask for in a way of their own. Answers are JSON objects; raises ``ReportableError``.

    Work that waits until a twin has answered its active requests is named under ``put_off``, as
    ``[{hash, name, kind}]``.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        tenants: Tenants,
        twins: TwinOperations,
        checkpoints: CheckpointOperations,
    ) -> None:
        self._dispatcher, self._tenants = dispatcher, tenants
        self._twins = twins
        self._checkpoints = checkpoints

    @agent_operation("twins.archived")
    async def archived(self) -> TwinsListed:
        """Lists those that were set aside."""
        return await self._twins.listed("archived")

    @agent_operation("twins.purged")
    async def purged(self) -> TwinsListed:
        """Lists those that were deleted."""
        return await self._twins.listed("purged")

    @agent_operation("twins.new")
    async def new(self, name: Text, kind: str = "", text: str = "") -> NewTwin:
        """Mints a twin; ``text`` is its soul."""
        return await self._twins.new(name, kind=kind, soul=text)

    @agent_operation("twins.edit_soul")
    async def edit_soul(self, twin: Text, text: Text, reason: str = "") -> SoulChanged:
        """Puts the soul ``text`` in force; the one before is kept."""
        return await self._twins.edit_soul(twin, text, reason=reason)

    @agent_operation("twins.chat")
    async def chat(self, twin: Text, text: str = "") -> TwinAnswer:
        """Asks a twin for the brainstem; the twin may change no structure in that turn."""
        tenant = await self._tenants.twin(twin)
        asked = Envelope(new_id(), self._tenants.host.id, tenant.id, HELP, {"user_input": text})
        turn = self._dispatcher.submit(asked, Caller("brainstem"), session="asked by the brainstem")
        reply = await turn.reply()
        if reply.verb == ERROR:
            raise RefusedError(str(reply.data.get("msg", "")), do=str(reply.data.get("do", "")))
        return {"twin": tenant.title, "response": reply.data.get("response", "")}

    @agent_operation("twins.stop")
    async def stop(self, twin: Text) -> TwinSaid:
        """Stops it, once it has answered."""
        found = await self._twin(twin)
        when = "" if await self._tenants.let_sleep(found.key) else " as soon as it has answered"
        return {**who_is(found), "message": f"{found.name} is stopped{when}."}

    @agent_operation("twins.fork")
    async def fork(self, twin: Text, name: str = "") -> Forked | PutOff:
        """A new twin that begins as its copy."""
        found = await self._twin(twin)
        if not self._tenants.is_answering(found.key):
            return await self._twins.fork(found.key, name)
        name = name and proper_name(name)
        work = partial(self._twins.fork, found.key, name)
        self._tenants.once_answered(found.key, f"the fork {name}".rstrip(), work)
        called = f"{name}, a fork of {found.name}, is" if name else f"A fork of {found.name} is"
        return _put_off(found, f"{called} made as soon as {found.name} has answered.")

    @agent_operation("twins.rollback")
    async def roll_back(self, twin: Text, checkpoint: str = "", confirm: bool = False) -> RolledBack | PutOff:
        """Brings a twin back to a checkpoint; only says what would change, unless ``confirm``."""
        found = await self._twin(twin)
        work = partial(self._checkpoints.rollback, found.key, checkpoint=checkpoint, confirm=confirm)
        if not confirm or not self._tenants.is_answering(found.key):
            return await work()
        looked = await self._checkpoints.rollback(
            found.key, checkpoint=checkpoint
        )  # that there is such a one
        at = looked["checkpoint"]["at"]
        self._tenants.once_answered(found.key, f"the way back to {at}", work)
        return _put_off(found, f"{found.name} is as it was at {at} as soon as it has answered.")

    async def archive_matching(
        self, selection: Selection, *, confirm: bool, reason: str = "", by: str = "operator"
    ) -> LifecycleResult:
        """Archives all that a selection means; those that are answering, afterwards. A dry run unless confirmed."""
        found = await self._twins.lifecycle.archive_matching(
            selection, confirm=confirm, reason=reason, by=by, put_off=self._tenants.is_answering
        )
        return self._archived_later(found, reason, by)

    @agent_operation("twins.archive")
    async def archive(
        self, twin: str = "", filter: dict[str, Any] | None = None, confirm: bool = False, reason: str = ""
    ) -> LifecycleResult:
        """Sets one aside, or all that a ``filter`` means."""
        if not twin:
            return await self.archive_matching(Selection.from_filter(filter), confirm=confirm, reason=reason)
        answering = self._tenants.is_answering
        found = await self._twins.lifecycle.archive(twin, reason=reason, put_off=answering)
        return self._archived_later(found, reason, "operator")

    def _archived_later(self, found: LifecycleResult, reason: str, by: str) -> LifecycleResult:
        waiting = found.get("put_off", [])
        for twin in waiting:
            work = partial(self._twins.lifecycle.archive, twin["hash"], reason=reason, by=by)
            self._tenants.once_answered(twin["hash"], "the archiving", work)
        if not waiting:
            return found
        named = " and ".join(twin["name"] for twin in waiting)
        ending = "is archived as soon as it has" if len(waiting) == 1 else "are archived as soon as they have"
        return {**found, "message": f"{named} {ending} answered."}

    async def _twin(self, selector: str) -> Twin:
        return await asyncio.to_thread(find_active, self._tenants.layout, selector)


def _put_off(twin: Twin, message: str) -> PutOff:
    return {"put_off": [{"hash": twin.key, "name": twin.name, "kind": twin.kind}], "message": message}
