"""Twins: minted, listed, renamed, forked, booted, stopped, set aside and ended (RAPP v1 §7, §10, §18.13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from agents.discovery import find_sense_files, find_service_files
from rappd.errors import Mistyped, NotFound, NotRunning
from rappd.operations.buddies import BuddyVerbs
from rappd.wakes import Wakes
from twins import souls
from twins.cartridges.glance import Glances
from twins.cartridges.nest import KIND as BUDDY
from twins.cartridges.nest import Nest
from twins.errors import NoSuchTwin
from twins.forking import fork
from twins.identity_file import DEFAULT_KIND
from twins.importer.holding import Held
from twins.lifecycle.finding import active_one
from twins.lifecycle.lifecycle import Lifecycle
from twins.lifecycle.selection import Selection
from twins.lineage import Families
from twins.listing import MemoryCounter, Presence, find, list_twins, scan
from twins.places import TwinPlaces
from twins.twin import Twin, mint, rename
from twins.workspace import Workspace


class Living(Protocol):
    """Whoever runs twins. With the daemon down, nobody is awake (``Asleep``)."""

    def presence(self, key: str) -> Presence:
        """What is known of a twin now."""
        ...

    def awake(self) -> dict[str, int]:
        """Ports of the twins that have one, by key."""
        ...

    async def boot(self, selector: str) -> int:
        """Gives a twin a port."""
        ...

    async def stop(self, key: str) -> None:
        """Ends it."""
        ...

    async def let_sleep(self, key: str) -> bool:
        """Ends it once it has answered whoever talks with it; whether it has ended already."""
        ...

    def apart(self, key: str) -> AbstractAsyncContextManager[None]:
        """Nothing of it begins to run until the block is left."""
        ...

    def resting(self, key: str) -> AbstractAsyncContextManager[None]:
        """Nothing of it runs meanwhile; one that was awake is woken again."""
        ...

    def renamed(self, key: str, name: str) -> None:
        """Tells what people call it from now on."""
        ...


class Asleep:
    """Twins while no daemon runs: one that was awake when it ended can only be kept from waking again."""

    def __init__(self, wakes: Wakes) -> None:
        self._wakes = wakes
        self._ports = wakes.all()

    def presence(self, key: str) -> Presence:
        return Presence(port=self._ports.get(key) or None)

    def awake(self) -> dict[str, int]:
        return {}

    async def boot(self, selector: str) -> int:
        raise NotRunning("rappd isn't running here.", do="rappd start")

    async def stop(self, key: str) -> None:
        await asyncio.to_thread(self._wakes.forget, key)

    async def let_sleep(self, key: str) -> bool:
        await self.stop(key)
        return True

    @asynccontextmanager
    async def apart(self, key: str) -> AsyncIterator[None]:
        yield

    resting = apart

    def renamed(self, key: str, name: str) -> None:
        return None


LastTalks = Callable[[], Mapping[str, float]]
"""When each workspace last talked, in seconds since 1970; blocks on the record."""


class TwinVerbs:
    """One home's twins. Every verb answers a JSON object and raises ``Problem``."""

    def __init__(
        self, places: TwinPlaces, living: Living, *, held: Held, owner: str, last_talks: LastTalks
    ) -> None:
        self._places = places
        self._living = living
        self._held = held
        self._owner = owner
        self._last_talks = last_talks
        self._memories = MemoryCounter()
        self._glances = Glances()
        self.lifecycle = Lifecycle(places, living)
        self.buddies = BuddyVerbs(places, last_talks=last_talks, renamed=living.renamed)

    async def listing(self) -> dict[str, Any]:
        """Active twins: ``{"twins": [row], "unreadable": [{folder, problem}]}``; a buddy's row has ``buddy``."""
        return await asyncio.to_thread(self._list)

    async def show(self, selector: str) -> dict[str, Any]:
        """One twin, active or archived: its row, ``path``, ``soul``; ``agents``, ``services``, ``organs`` and ``senses`` by file."""
        return {"twin": await asyncio.to_thread(self._show, selector)}

    async def new(self, name: str, *, kind: str = "", soul: str = "") -> dict[str, Any]:
        """Mints a twin. ``kind`` is ``personal`` and ``soul`` the kind's own when empty."""
        twin = await asyncio.to_thread(
            mint, self._places, name, owner=self._owner, kind=kind or DEFAULT_KIND, soul=soul
        )
        return {**await self._newcomer(twin), "message": f"{twin.name} is born."}

    async def rename(self, selector: str, name: str) -> dict[str, Any]:
        """Another name; identity and folder stay."""
        twin = await asyncio.to_thread(self._rename, selector, name)
        self._living.renamed(twin.key, twin.name)
        return {**self._who(twin), "message": f"It is {twin.name} now."}

    async def fork(self, selector: str, name: str = "") -> dict[str, Any]:
        """A new twin that begins as a copy; the original sleeps meanwhile, and is woken again."""
        original = await asyncio.to_thread(active_one, self._places, selector)
        async with self._living.resting(original.key):
            done = await asyncio.to_thread(
                fork, self._places, original, held=self._held, owner=self._owner, name=name
            )
        left = [{"path": path, "why": why} for path, why in done.left]
        text = f"{done.twin.name} is a fork of {original.name}."
        return {**await self._newcomer(done.twin), "files": done.files, "left": left, "message": text}

    async def boot(self, selector: str) -> dict[str, Any]:
        """Wakes a twin on a port of its own."""
        twin = await asyncio.to_thread(active_one, self._places, selector)
        port = await self._living.boot(twin.key)
        return {**self._who(twin), "port": port, "message": f"{twin.name} is awake on port {port}."}

    async def stop(self, selector: str) -> dict[str, Any]:
        """Lets a twin sleep."""
        twin = await asyncio.to_thread(active_one, self._places, selector)
        await self._living.stop(twin.key)
        return {**self._who(twin), "message": f"{twin.name} sleeps."}

    async def let_sleep(self, selector: str) -> dict[str, Any]:
        """The same, but whoever talks with it is answered first: it may be the twin itself that asks."""
        twin = await asyncio.to_thread(active_one, self._places, selector)
        when = "" if await self._living.let_sleep(twin.key) else " as soon as it has answered"
        return {**self._who(twin), "message": f"{twin.name} sleeps{when}."}

    async def soul(self, selector: str) -> dict[str, Any]:
        """The soul in force, and its history: ``{number, at, reason}``, oldest first."""
        return await asyncio.to_thread(self._soul, selector)

    async def edit_soul(self, selector: str, text: str, *, reason: str = "") -> dict[str, Any]:
        """Puts a text in force; the one before joins the history."""
        twin = await asyncio.to_thread(active_one, self._places, selector)
        kept = await asyncio.to_thread(souls.edit_soul, twin.workspace, text, reason=reason)
        has = f"has a new soul; the one before is number {kept.number}" if kept else "has this soul"
        return {
            **self._who(twin),
            "kept_as": kept.number if kept else 0,
            "message": f"{twin.name} {has}.",
        }

    async def restore_soul(self, selector: str, number: int) -> dict[str, Any]:
        """Puts an earlier soul in force again."""
        twin = await asyncio.to_thread(active_one, self._places, selector)
        await asyncio.to_thread(souls.restore_soul, twin.workspace, number)
        return {**self._who(twin), "message": f"{twin.name} has soul {number} again."}

    async def lineage(self, selector: str = "") -> dict[str, Any]:
        """Family trees as rows in preorder, each with its ``depth``; of one twin, or of all."""
        return {"lineage": await asyncio.to_thread(self._lineage, selector)}

    async def archive(
        self, *, selector: str = "", matching: object = None, confirm: bool = False, reason: str = ""
    ) -> dict[str, Any]:
        """Sets one twin aside, or all that a filter means (a dry run unless confirmed)."""
        if selector:
            return await self.lifecycle.archive(selector, reason=reason)
        selection = Selection.from_filter(matching)
        return await self.lifecycle.archive_matching(selection, confirm=confirm, reason=reason)

    async def unarchive(self, selector: str) -> dict[str, Any]:
        """Brings one back; it stays asleep."""
        return await self.lifecycle.unarchive(selector)

    async def purge(self, selector: str, *, confirm: bool = False, reason: str = "") -> dict[str, Any]:
        """Ends an archived twin for good; without ``confirm`` it only says whom."""
        return await self.lifecycle.purge(selector, confirm=confirm, reason=reason)

    async def perform(self, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A verb by its name, for agents: ``twins.<verb>`` of ``utils.host``."""
        text = {key: value for key, value in given.items() if isinstance(value, str)}
        selector, confirm = text.get("twin", ""), given.get("confirm") is True
        reason = text.get("reason", "")
        match verb:
            case "list":
                return await self.listing()
            case "archived":
                return {"archived": await self.lifecycle.list_archived()}
            case "purged":
                return {"purged": await self.lifecycle.list_purged()}
            case "lineage":
                return await self.lineage(selector)
            case "new":
                return await self.new(
                    _said(text, "name"), kind=text.get("kind", ""), soul=text.get("text", "")
                )
            case "archive":
                return await self.archive(
                    selector=selector, matching=given.get("filter"), confirm=confirm, reason=reason
                )
        selector = _said(text, "twin")
        match verb:
            case "show":
                return await self.show(selector)
            case "rename":
                return await self.rename(selector, _said(text, "name"))
            case "fork":
                return await self.fork(selector, text.get("name", ""))
            case "boot":
                return await self.boot(selector)
            case "stop":
                return await self.let_sleep(selector)
            case "soul":
                return await self.soul(selector)
            case "edit_soul":
                return await self.edit_soul(selector, _said(text, "text"), reason=reason)
            case "restore_soul":
                return await self.restore_soul(selector, number(given, "number"))
            case "unarchive":
                return await self.unarchive(selector)
            case "purge":
                return await self.purge(selector, confirm=confirm, reason=reason)
        raise NotFound(f'There is no operation "twins.{verb[:40]}".')

    async def _newcomer(self, twin: Twin) -> dict[str, Any]:
        """Who it is, and ``namesakes``: how many others answer to its name."""
        others = (await asyncio.to_thread(scan, self._places)).twins
        same = [one for one in others if one.key != twin.key and one.name.casefold() == twin.name.casefold()]
        return {**self._who(twin), "namesakes": len(same)}

    # In threads from here on.

    def _list(self) -> dict[str, Any]:
        talks, awake = self._last_talks(), self._living.awake()
        presences = {
            key: Presence(key in awake, awake.get(key), talks.get(key)) for key in awake.keys() | talks.keys()
        }
        found = list_twins(self._places, presences=presences, counter=self._memories)
        unreadable = [{"folder": str(one.folder), "problem": one.problem} for one in found.unreadable]
        rows = [{**row.as_json(), **self._life(row.kind, row.key)} for row in found.rows]
        return {"twins": rows, "unreadable": unreadable}

    def _life(self, kind: str, key: str) -> dict[str, Any]:
        """``buddy`` of a buddy's row: how it is, None where its file cannot be read."""
        if kind != BUDDY:
            return {}
        workspace = Workspace.at(self._places.active(key))
        return {"buddy": self._glances.of(workspace, datetime.now(UTC))}

    def _rename(self, selector: str, name: str) -> Twin:
        twin = rename(active_one(self._places, selector), name)
        if twin.kind == BUDDY:
            Nest(twin.workspace).rename(twin.name)
        return twin

    def _show(self, selector: str) -> dict[str, Any]:
        twin = self._active_or_archived(selector)
        presence = self._living.presence(twin.key)
        workspace = twin.workspace
        talked = self._last_talks().get(twin.key)
        return {
            **self._who(twin),
            "state": "archived" if twin.archived else "awake" if presence.awake else "asleep",
            "port": presence.port if presence.awake else None,
            "memories": self._memories.count(workspace),
            "last_talk": talked,
            "born_at": twin.born_at,
            **({} if twin.archived else self._life(twin.kind, twin.key)),
            "parent_rappid": twin.identity.parent_text,
            "incarnations": twin.identity.incarnations,
            "path": str(workspace.root),
            "soul": souls.read_soul(workspace),
            "agents": sorted(path.name for path in workspace.agents.glob("*_agent.*")),
            "services": sorted(path.name for path in workspace.services.glob("*_service.py")),
            "organs": sorted(
                file.rel
                for folder in (workspace.organs, workspace.services)
                for file in find_service_files(folder)
                if folder == workspace.organs or file.rel.endswith("_organ.py")
            ),
            "senses": [file.rel for file in find_sense_files(workspace.senses)],
        }

    def _active_or_archived(self, selector: str) -> Twin:
        for archived in (False, True):
            try:
                return find(self._places, selector, archived=archived)
            except NoSuchTwin:
                continue
        return active_one(self._places, selector)  # which says why not

    def _soul(self, selector: str) -> dict[str, Any]:
        twin = active_one(self._places, selector)
        history = [
            {"number": kept.number, "at": kept.at.strftime("%Y-%m-%dT%H:%M:%SZ"), "reason": kept.reason}
            for kept in souls.soul_history(twin.workspace)
        ]
        return {**self._who(twin), "soul": souls.read_soul(twin.workspace), "history": history}

    def _lineage(self, selector: str) -> list[dict[str, Any]]:
        families = Families(self._places)
        rappid = find(self._places, selector, archived=None).rappid if selector else None
        return [member.as_json() for member in families.tree(rappid)]

    def _who(self, twin: Twin) -> dict[str, Any]:
        return {"key": twin.key, "rappid": twin.rappid.text, "name": twin.name, "kind": twin.kind}


def number(given: Mapping[str, Any], field: str) -> int:
    """A whole number that the request must carry. Raises ``Mistyped``."""
    value = given.get(field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Mistyped(f"{field} must be a whole number.", do=f"Say which {field}.")
    return value


def _said(text: Mapping[str, str], field: str) -> str:
    if not text.get(field, "").strip():
        raise Mistyped(f"{field} is missing.", do=f"Say the {field}.")
    return text[field]
