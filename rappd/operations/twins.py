"""Twins: minted, listed, renamed, forked, booted, stopped, set aside and ended (RAPP v1 §7, §10, §18.13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from rappd.errors import UsageProblemError
from rappd.operations.buddies import BuddyOperations
from rappd.operations.twin_queries import LastTalks, TwinQueries, who_is
from rappd.operations.twin_supervisor import TwinSupervisor
from twins.cartridges.buddy_store import KIND as BUDDY
from twins.cartridges.buddy_store import BuddyStore
from twins.errors import TwinConflictError
from twins.installer.quarantine import QuarantineList
from twins.lifecycle.lifecycle import Lifecycle
from twins.lifecycle.lookup import find_active
from twins.lifecycle.selection import Selection
from twins.workspace import souls
from twins.workspace.fork import fork
from twins.workspace.identity_file import DEFAULT_KIND
from twins.workspace.listing import scan
from twins.workspace.twin import Twin, mint, rename
from twins.workspace.workspace import TwinLayout


class TwinOperations:
    """One home's twins. Every verb answers a JSON object and raises ``ReportableError``."""

    def __init__(
        self,
        places: TwinLayout,
        living: TwinSupervisor,
        *,
        held: QuarantineList,
        owner: str,
        last_talks: LastTalks,
    ) -> None:
        self._places = places
        self._living = living
        self._held = held
        self._owner = owner
        self._reading = TwinQueries(places, living, last_talks)
        self.lifecycle = Lifecycle(places, living)
        self.buddies = BuddyOperations(places, last_talks=last_talks, renamed=living.renamed)

    async def listing(self) -> dict[str, Any]:
        """Active twins: ``{"twins": [row], "unreadable": [{folder, problem}]}``; a buddy's row has ``buddy``."""
        return await asyncio.to_thread(self._reading.listing)

    async def show(self, selector: str) -> dict[str, Any]:
        """One twin, active or archived: its row, ``path``, ``soul``; ``agents``, ``services``, ``organs`` and ``senses`` by file."""
        return {"twin": await asyncio.to_thread(self._reading.show, selector)}

    async def new(self, name: str, *, kind: str = "", soul: str = "", unique: bool = False) -> dict[str, Any]:
        """Mints a twin. ``kind`` is ``personal`` and ``soul`` the kind's own when empty.

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

    async def rename(self, selector: str, name: str) -> dict[str, Any]:
        """Another name; identity and folder stay."""
        twin = await asyncio.to_thread(self._rename, selector, name)
        self._living.renamed(twin.key, twin.name)
        return {**who_is(twin), "message": f"It is {twin.name} now."}

    async def fork(self, selector: str, name: str = "") -> dict[str, Any]:
        """A new twin that begins as a copy; the original is stopped meanwhile, and is started again."""
        original = await asyncio.to_thread(find_active, self._places, selector)
        async with self._living.resting(original.key):
            done = await asyncio.to_thread(
                fork, self._places, original, held=self._held, owner=self._owner, name=name
            )
        left = [{"path": path, "why": why} for path, why in done.left]
        text = f"{done.twin.name} is a fork of {original.name}."
        return {**await self._newcomer(done.twin), "files": done.files, "left": left, "message": text}

    async def boot(self, selector: str) -> dict[str, Any]:
        """Starts a twin on a port of its own."""
        twin = await asyncio.to_thread(find_active, self._places, selector)
        port = await self._living.boot(twin.key)
        return {**who_is(twin), "port": port, "message": f"{twin.name} is running on port {port}."}

    async def stop(self, selector: str) -> dict[str, Any]:
        """Stops a twin."""
        twin = await asyncio.to_thread(find_active, self._places, selector)
        await self._living.stop(twin.key)
        return {**who_is(twin), "message": f"{twin.name} is stopped."}

    async def soul(self, selector: str) -> dict[str, Any]:
        """The soul in force, and its history: ``{number, at, reason}``, oldest first."""
        return await asyncio.to_thread(self._reading.soul, selector)

    async def edit_soul(self, selector: str, text: str, *, reason: str = "") -> dict[str, Any]:
        """Puts a text in force; the one before joins the history."""
        twin = await asyncio.to_thread(find_active, self._places, selector)
        kept = await asyncio.to_thread(souls.edit_soul, twin.workspace, text, reason=reason)
        has = f"has a new soul; the one before is number {kept.number}" if kept else "has this soul"
        return {
            **who_is(twin),
            "kept_as": kept.number if kept else 0,
            "message": f"{twin.name} {has}.",
        }

    async def restore_soul(self, selector: str, number: int) -> dict[str, Any]:
        """Puts an earlier soul in force again."""
        twin = await asyncio.to_thread(find_active, self._places, selector)
        await asyncio.to_thread(souls.restore_soul, twin.workspace, number)
        return {**who_is(twin), "message": f"{twin.name} has soul {number} again."}

    async def lineage(self, selector: str = "") -> dict[str, Any]:
        """Family trees as rows in preorder, each with its ``depth``; of one twin, or of all."""
        return {"lineage": await asyncio.to_thread(self._reading.lineage, selector)}

    async def archive(
        self, *, selector: str = "", matching: object = None, confirm: bool = False, reason: str = ""
    ) -> dict[str, Any]:
        """Sets one twin aside, or all that a filter means (a dry run unless confirmed)."""
        if selector:
            return await self.lifecycle.archive(selector, reason=reason)
        selection = Selection.from_filter(matching)
        return await self.lifecycle.archive_matching(selection, confirm=confirm, reason=reason)

    async def unarchive(self, selector: str) -> dict[str, Any]:
        """Brings one back; it stays stopped."""
        return await self.lifecycle.unarchive(selector)

    async def purge(self, selector: str, *, confirm: bool = False, reason: str = "") -> dict[str, Any]:
        """Ends an archived twin for good; without ``confirm`` it only says whom."""
        return await self.lifecycle.purge(selector, confirm=confirm, reason=reason)

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


def number(given: Mapping[str, Any], field: str) -> int:
    """A whole number that the request must carry. Raises ``UsageProblemError``."""
    value = given.get(field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageProblemError(f"{field} must be a whole number.", do=f"Say which {field}.")
    return value
