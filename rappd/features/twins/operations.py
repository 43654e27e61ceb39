"""Twins: minted, listed, renamed, forked, booted, stopped, set aside and ended (RAPP v1 §7, §10, §18.13)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from rappd.features.operation import OWNER, Text, operation
from rappd.features.twins.buddies import BuddyOperations
from rappd.features.twins.queries import LastTalks, TwinQueries, who_is
from rappd.tenants.tenants import Tenants
from twins.cartridges.buddy_store import KIND as BUDDY
from twins.cartridges.buddy_store import BuddyStore
from twins.errors import TwinConflictError
from twins.lifecycle.lifecycle import Lifecycle
from twins.lifecycle.lookup import find_active
from twins.lifecycle.selection import Selection
from twins.trust.quarantine import QuarantineList
from twins.workspace import souls
from twins.workspace.fork import fork
from twins.workspace.identity_file import DEFAULT_KIND
from twins.workspace.listing import scan
from twins.workspace.twin import Twin, mint, rename
from twins.workspace.workspace import TwinLayout


class TwinOperations:
    """The twins of a home. Every verb answers a JSON object and raises ``ReportableError``. ``twin``: its name or rappid."""

    def __init__(
        self,
        places: TwinLayout,
        living: Tenants,
        *,
        held: QuarantineList,
        owner: str,
        last_talks: LastTalks,
        model_of: Callable[[str], Awaitable[str]],
    ) -> None:
        """``model_of``: the model that a twin, by its key, answers with; "" for everybody's."""
        self._places = places
        self._model_of = model_of
        self._living = living
        self._held = held
        self._owner = owner
        self._reading = TwinQueries(places, living, last_talks)
        self.lifecycle = Lifecycle(places, living)
        self.buddies = BuddyOperations(places, last_talks=last_talks, renamed=living.renamed)

    @operation("twins.list", "GET", "/twins", right=OWNER, agents="twins.list")
    async def listed(self, state: Literal["active", "archived", "purged"] = "active") -> dict[str, Any]:
        """Active twins, each with the `model` of its own where it has one; `?state=archived` or `purged` lists those."""
        if state == "archived":
            return {"archived": await self.lifecycle.list_archived()}
        if state == "purged":
            return {"purged": await self.lifecycle.list_purged()}
        found = await self.listing()
        return {**found, "twins": [await self._with_model(row) for row in found["twins"]]}

    async def listing(self) -> dict[str, Any]:
        """Active twins: ``{"twins": [row], "unreadable": [{folder, problem}]}``; a buddy's row has ``buddy``."""
        return await asyncio.to_thread(self._reading.listing)

    @operation("twins.show", "GET", "/twins/{twin}", right=OWNER, agents="twins.show")
    async def show(self, twin: str) -> dict[str, Any]:
        """Shows a twin, active or archived, with its soul and files, and the `model` of its own where it has one."""
        return {"twin": await self._with_model(await asyncio.to_thread(self._reading.show, twin))}

    @operation("twins.new", "POST", "/twins", right=OWNER)
    async def new(
        self, name: str = "", kind: str = "", soul: str = "", unique: bool = False
    ) -> dict[str, Any]:
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
    async def rename(self, twin: str, name: str = "") -> dict[str, Any]:
        """Gives it another `name`; identity and folder stay."""
        renamed = await asyncio.to_thread(self._rename, twin, name)
        self._living.renamed(renamed.key, renamed.name)
        return {**who_is(renamed), "message": f"It is {renamed.name} now."}

    @operation("twins.fork", "POST", "/twins/{twin}/fork", right=OWNER)
    async def fork(self, twin: str, name: str = "") -> dict[str, Any]:
        """A new twin that begins as its copy; `name` may be given. The original is stopped meanwhile, and is started again."""
        original = await asyncio.to_thread(find_active, self._places, twin)
        async with self._living.resting(original.key):
            done = await asyncio.to_thread(
                fork, self._places, original, held=self._held, owner=self._owner, name=name
            )
        left = [{"path": path, "why": why} for path, why in done.left]
        text = f"{done.twin.name} is a fork of {original.name}."
        return {**await self._newcomer(done.twin), "files": done.files, "left": left, "message": text}

    @operation("twins.boot", "POST", "/twins/{twin}/boot", right=OWNER, agents="twins.boot")
    async def boot(self, twin: str) -> dict[str, Any]:
        """Starts it on a port of its own."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        port = await self._living.boot(found.key)
        return {**who_is(found), "port": port, "message": f"{found.name} is running on port {port}."}

    @operation("twins.stop", "POST", "/twins/{twin}/stop", right=OWNER)
    async def stop(self, twin: str) -> dict[str, Any]:
        """Stops it."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        await self._living.stop(found.key)
        return {**who_is(found), "message": f"{found.name} is stopped."}

    @operation("twins.soul", "GET", "/twins/{twin}/soul", right=OWNER, agents="twins.soul")
    async def soul(self, twin: str) -> dict[str, Any]:
        """Its soul, and the souls before: `number`, `at`, `reason`, oldest first."""
        return await asyncio.to_thread(self._reading.soul, twin)

    @operation("twins.edit_soul", "PUT", "/twins/{twin}/soul", right=OWNER)
    async def edit_soul(self, twin: str, soul: Text, reason: str = "") -> dict[str, Any]:
        """Puts a `soul` in force; the one before is kept."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        kept = await asyncio.to_thread(souls.edit_soul, found.workspace, soul, reason=reason)
        has = f"has a new soul; the one before is number {kept.number}" if kept else "has this soul"
        return {**who_is(found), "kept_as": kept.number if kept else 0, "message": f"{found.name} {has}."}

    @operation(
        "twins.restore_soul", "POST", "/twins/{twin}/soul/restore", right=OWNER, agents="twins.restore_soul"
    )
    async def restore_soul(self, twin: str, number: int) -> dict[str, Any]:
        """Puts soul `number` of the history in force again."""
        found = await asyncio.to_thread(find_active, self._places, twin)
        await asyncio.to_thread(souls.restore_soul, found.workspace, number)
        return {**who_is(found), "message": f"{found.name} has soul {number} again."}

    @operation("twins.lineage", "GET", "/twins/lineage", right=OWNER, agents="twins.lineage")
    async def lineage(self, twin: str = "") -> dict[str, Any]:
        """Family trees, as rows in preorder; `?twin=` for one."""
        return {"lineage": await asyncio.to_thread(self._reading.lineage, twin)}

    @operation("twins.archive_matching", "POST", "/twins/archive", right=OWNER)
    async def archive_matching(
        self, filter: dict[str, Any] | None = None, confirm: bool = False, reason: str = ""
    ) -> dict[str, Any]:
        """Sets aside all twins that `filter` means; only says which, unless `confirm` is true."""
        selection = Selection.from_filter(filter)
        return await self.lifecycle.archive_matching(selection, confirm=confirm, reason=reason)

    @operation("twins.archive", "POST", "/twins/{twin}/archive", right=OWNER)
    async def archive(self, twin: str, reason: str = "") -> dict[str, Any]:
        """Sets it aside; a `reason` may be given."""
        return await self.lifecycle.archive(twin, reason=reason)

    @operation("twins.unarchive", "POST", "/twins/{twin}/unarchive", right=OWNER, agents="twins.unarchive")
    async def unarchive(self, twin: str) -> dict[str, Any]:
        """Brings it back; it stays stopped."""
        return await self.lifecycle.unarchive(twin)

    @operation("twins.purge", "POST", "/twins/{twin}/purge", right=OWNER, agents="twins.purge")
    async def purge(self, twin: str, confirm: bool = False, reason: str = "") -> dict[str, Any]:
        """Deletes an archived twin; only says which, unless `confirm` is true."""
        return await self.lifecycle.purge(twin, confirm=confirm, reason=reason)

    async def _with_model(self, row: dict[str, Any]) -> dict[str, Any]:
        model = await self._model_of(row["key"])
        return {**row, "model": model} if model else row

    async def _newcomer(self, twin: Twin) -> dict[str, Any]:
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
