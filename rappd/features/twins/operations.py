"""Twins: minted, listed, renamed, forked, booted, stopped, set aside and ended (RAPP v1 §7, §10, §18.13)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypedDict

from rappd.features.operation import OWNER, Text, operation
from rappd.features.twins.buddies import BuddyOperations
from rappd.features.twins.queries import (
    LastTalks,
    ShownTwin,
    SoulShown,
    TwinList,
    TwinQueries,
    TwinRow,
    UnreadableTwin,
    WhoIs,
    who_is,
)
from rappd.tenants.tenants import Tenants
from twins.cartridges.buddy_store import KIND as BUDDY
from twins.cartridges.buddy_store import BuddyStore
from twins.errors import TwinConflictError
from twins.lifecycle.lifecycle import Lifecycle, LifecycleResult
from twins.lifecycle.lookup import find_active
from twins.lifecycle.selection import Selection
from twins.trust.quarantine import QuarantineList
from twins.workspace import souls
from twins.workspace.fork import fork
from twins.workspace.identity_file import DEFAULT_KIND
from twins.workspace.lineage import RelativeRow
from twins.workspace.listing import scan
from twins.workspace.twin import Twin, mint, rename
from twins.workspace.workspace import TwinLayout


class TwinsListed(TypedDict, total=False):
    """Active twins and folders that cannot be read, or the records of those that were archived or purged."""

    twins: list[TwinRow]
    unreadable: list[UnreadableTwin]
    archived: list[dict[str, Any]]
    purged: list[dict[str, Any]]


class _Newcomer(WhoIs):
    namesakes: int


class NewTwin(_Newcomer):
    """A new twin, and the number of others that have its name."""

    message: str


class TwinSaid(WhoIs):
    """A twin, and what became of it in words."""

    message: str


class LeftFile(TypedDict):
    """A file that a fork does not have, and why."""

    path: str
    why: str


class Forked(NewTwin):
    """A fork: the number of its files, and what it does not have of the original."""

    files: int
    left: list[LeftFile]


class Booted(TwinSaid):
    """A twin that answers on a port of its own."""

    port: int


class SoulChanged(TwinSaid):
    """A twin with another soul; the one before is kept under that number, 0 for none."""

    kept_as: int


class TwinOperations:
    """The twins of a home. Every verb answers a JSON object and raises ``ReportableError``. ``twin``: its name or rappid."""

    def __init__(
        self,
        places: TwinLayout,
        tenants: Tenants,
        *,
        quarantine: QuarantineList,
        owner: str,
        last_talks: LastTalks,
        model_of: Callable[[str], Awaitable[str]],
    ) -> None:
        """``model_of``: the model that a twin, by its key, answers with; "" for everybody's."""
        self._places = places
        self._model_of = model_of
        self._tenants = tenants
        self._quarantine = quarantine
        self._owner = owner
        self._reading = TwinQueries(places, tenants, last_talks)
        self.lifecycle = Lifecycle(places, tenants)
        self.buddies = BuddyOperations(places, last_talks=last_talks, renamed=tenants.renamed)

    @operation("twins.list", "GET", "/twins", right=OWNER, agents="twins.list")
    async def listed(self, state: Literal["active", "archived", "purged"] = "active") -> TwinsListed:
        """Active twins, each with the `model` of its own where it has one; `?state=archived` or `purged` lists those."""
        if state == "archived":
            return {"archived": await self.lifecycle.list_archived()}
        if state == "purged":
            return {"purged": await self.lifecycle.list_purged()}
        found = await self.listing()
        for row in found["twins"]:
            await self._add_model(row)
        return {"twins": found["twins"], "unreadable": found["unreadable"]}

    async def listing(self) -> TwinList:
        """Active twins: ``{"twins": [row], "unreadable": [{folder, problem}]}``; a buddy's row has ``buddy``."""
        return await asyncio.to_thread(self._reading.listing)

    @operation("twins.show", "GET", "/twins/{twin}", right=OWNER, agents="twins.show", answers="twin")
    async def show(self, twin: str) -> ShownTwin:
        """Shows a twin, active or archived, with its soul and files, and the `model` of its own where it has one."""
        shown = await asyncio.to_thread(self._reading.show, twin)
        await self._add_model(shown)
        return shown

    @operation("twins.new", "POST", "/twins", right=OWNER)
    async def new(self, name: str = "", kind: str = "", soul: str = "", unique: bool = False) -> NewTwin:
        """Mints a twin: `name`, and perhaps `kind` and `soul`. With `unique`, not beside another of that name.

        ``kind`` is ``personal`` and ``soul`` the kind's own when empty.
        Raises ``TwinConflictError`` when it must be ``unique`` and another has its name.
        """
        if unique and await self._called(name.strip()):
            raise TwinConflictError(
                f"A twin called {name.strip()} lives here already.",
                do="choose another name; --force makes a second one of this name",
            )
        twin = await asyncio.to_thread(
            mint, self._places, name, owner=self._owner, kind=kind or DEFAULT_KIND, soul=soul
        )
        return {**await self._newcomer(twin), "message": f"{twin.name} is created."}

    @operation("twins.rename", "POST", "/twins/{twin}/rename", right=OWNER, agents="twins.rename")
    async def rename(self, twin: str, name: str = "") -> TwinSaid:
        """Gives it another `name`; identity and folder stay."""
        renamed = await asyncio.to_thread(self._rename, twin, name)
        self._tenants.renamed(renamed.key, renamed.name)
        return {**who_is(renamed), "message": f"It is {renamed.name} now."}

    @operation("twins.fork", "POST", "/twins/{twin}/fork", right=OWNER)
    async def fork(self, twin: str, name: str = "") -> Forked:
        """A new twin that begins as its copy; `name` may be given. The original is stopped meanwhile, and is started again."""
        original = await asyncio.to_thread(find_active, self._places, twin)
        async with self._tenants.resting(original.key):
            done = await asyncio.to_thread(
                fork, self._places, original, quarantine=self._quarantine, owner=self._owner, name=name
            )
        left: list[LeftFile] = [{"path": path, "why": why} for path, why in done.left]
        text = f"{done.twin.name} is a fork of {original.name}."
        return {**await self._newcomer(done.twin), "files": done.files, "left": left, "message": text}

    @operation("twins.boot", "POST", "/twins/{twin}/boot", right=OWNER, agents="twins.boot")
    async def boot(self, twin: str) -> Booted:
        """Starts it on a port of its own."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        port = await self._tenants.boot(found.key)
        return {**who_is(found), "port": port, "message": f"{found.name} is running on port {port}."}

    @operation("twins.stop", "POST", "/twins/{twin}/stop", right=OWNER)
    async def stop(self, twin: str) -> TwinSaid:
        """Stops it."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        await self._tenants.stop(found.key)
        return {**who_is(found), "message": f"{found.name} is stopped."}

    @operation("twins.soul", "GET", "/twins/{twin}/soul", right=OWNER, agents="twins.soul")
    async def soul(self, twin: str) -> SoulShown:
        """The soul of a twin, and the souls before: `number`, `at`, `reason`, oldest first."""
        return await asyncio.to_thread(self._reading.soul, twin)

    @operation("twins.edit_soul", "PUT", "/twins/{twin}/soul", right=OWNER)
    async def edit_soul(self, twin: str, soul: Text, reason: str = "") -> SoulChanged:
        """Puts a `soul` in force; the one before is kept."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        kept = await asyncio.to_thread(souls.edit_soul, found.workspace, soul, reason=reason)
        has = f"has a new soul; the one before is number {kept.number}" if kept else "has this soul"
        return {**who_is(found), "kept_as": kept.number if kept else 0, "message": f"{found.name} {has}."}

    @operation(
        "twins.restore_soul", "POST", "/twins/{twin}/soul/restore", right=OWNER, agents="twins.restore_soul"
    )
    async def restore_soul(self, twin: str, number: int) -> TwinSaid:
        """Puts soul `number` of the history in force again."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        await asyncio.to_thread(souls.restore_soul, found.workspace, number)
        return {**who_is(found), "message": f"{found.name} has soul {number} again."}

    @operation(
        "twins.lineage", "GET", "/twins/lineage", right=OWNER, agents="twins.lineage", answers="lineage"
    )
    async def lineage(self, twin: str = "") -> list[RelativeRow]:
        """Family trees, as rows in preorder; `?twin=` for one."""
        return await asyncio.to_thread(self._reading.lineage, twin)

    @operation("twins.archive_matching", "POST", "/twins/archive", right=OWNER)
    async def archive_matching(
        self, filter: dict[str, Any] | None = None, confirm: bool = False, reason: str = ""
    ) -> LifecycleResult:
        """Sets aside all twins that `filter` means; only says which, unless `confirm` is true."""
        selection = Selection.from_filter(filter)
        return await self.lifecycle.archive_matching(selection, confirm=confirm, reason=reason)

    @operation("twins.archive", "POST", "/twins/{twin}/archive", right=OWNER)
    async def archive(self, twin: str, reason: str = "") -> LifecycleResult:
        """Sets it aside; a `reason` may be given."""
        return await self.lifecycle.archive(twin, reason=reason)

    @operation("twins.unarchive", "POST", "/twins/{twin}/unarchive", right=OWNER, agents="twins.unarchive")
    async def unarchive(self, twin: str) -> LifecycleResult:
        """Brings it back; it stays stopped."""
        return await self.lifecycle.unarchive(twin)

    @operation("twins.purge", "POST", "/twins/{twin}/purge", right=OWNER, agents="twins.purge")
    async def purge(self, twin: str, confirm: bool = False, reason: str = "") -> LifecycleResult:
        """Deletes an archived twin; only says which, unless `confirm` is true."""
        return await self.lifecycle.purge(twin, confirm=confirm, reason=reason)

    async def _add_model(self, row: TwinRow | ShownTwin) -> None:
        if model := await self._model_of(row["key"]):
            row["model"] = model

    async def _newcomer(self, twin: Twin) -> _Newcomer:
        """Describes a new twin, with ``namesakes``: the number of others that have its name."""
        same = [one for one in await self._called(twin.name) if one.key != twin.key]
        return {**who_is(twin), "namesakes": len(same)}

    async def _called(self, name: str) -> list[Twin]:
        """The active twins of that name, however it is capitalised."""
        found = (await asyncio.to_thread(scan, self._places)).twins
        return [one for one in found if one.name.casefold() == name.casefold()]

    def _rename(self, selector: str, name: str) -> Twin:
        twin = rename(find_active(self._places, selector), name)
        if twin.kind == BUDDY:
            BuddyStore(twin.workspace).rename(name=twin.name)
        return twin
