"""The operator's verbs: archive, unarchive, purge, and who is archived or purged (RAPP v1 §18.13.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any, Literal, NotRequired, Protocol, TypedDict

from envelopes.errors import ReportableError
from twins.errors import TwinConflictError
from twins.lifecycle import archive_moves, state_index, tombstones
from twins.lifecycle.lookup import find_active, find_archived
from twins.lifecycle.recovery import is_locked
from twins.lifecycle.selection import Selection
from twins.lifecycle.trash_migration import migrate_trash
from twins.lifecycle.usage import measure
from twins.workspace.listing import Presence, scan
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout

PutOff = Callable[[str], bool]
"""True when the twin of that key is left alone for now; it is only told, under ``put_off``."""


def _never(key: str) -> bool:
    return False


class Runner(Protocol):
    """The supervisor of running twins, as the lifecycle needs it."""

    def presence(self, key: str) -> Presence:
        """The daemon's knowledge of the twin now; its last port also while it is stopped."""
        ...

    async def stop(self, key: str) -> None:
        """Ends the twin and all it started, and returns when they are dead. Nothing to end is no error.

        Raises when something of it will not die.
        """
        ...

    def apart(self, key: str) -> AbstractAsyncContextManager[None]:
        """Nothing of the twin begins to run until the block is left."""
        ...


class NamedTwin(TypedDict):
    """A twin by its key (``hash``)."""

    hash: str
    name: str
    kind: str


class ArchivedTwin(NamedTwin):
    """A twin that would be purged, and where it lies."""

    path: str


class MovedTwin(NamedTwin):
    """A twin that was archived or brought back, and where to."""

    moved_to: str


class PurgedTwin(NamedTwin):
    """A twin that was purged, and its tombstone."""

    tombstone: str


class FailedTwin(TypedDict):
    """A twin that could not be archived, and why."""

    hash: str
    name: str
    error: str


Action = Literal["archive", "unarchive", "purge"]
Mode = Literal["execute", "dry-run"]


class LifecycleResult(TypedDict):
    """The published shape of an answer, see ``Lifecycle``."""

    ok: bool
    action: Action
    mode: Mode
    errors: list[FailedTwin]
    archived: NotRequired[list[MovedTwin]]
    unarchived: NotRequired[list[MovedTwin]]
    purged: NotRequired[list[PurgedTwin]]
    put_off: NotRequired[list[NamedTwin]]
    would_archive: NotRequired[list[NamedTwin]]
    would_purge: NotRequired[list[ArchivedTwin]]
    message: NotRequired[str]


class Lifecycle:
    """One home's verbs. They answer the shapes that are published, and raise ``ReportableError`` for a single twin.

    ``{ok, action, mode: "execute"|"dry-run", <done>: [{hash, name, kind, moved_to}], errors: [{hash, name,
    error}]}`` where ``<done>`` is ``archived``, ``unarchived`` or ``purged`` (which has ``tombstone`` instead
    of ``moved_to``). A dry run adds ``would_archive: [{hash, name, kind}]`` or ``would_purge``, with ``path``.

    ``by`` is ``operator``, ``cron:<rule>`` or ``fleet:archive_estate``; a selector whatever
    ``twins.workspace.listing.find`` takes; ``now`` has an offset, and is now when absent.
    """

    def __init__(self, places: TwinLayout, runner: Runner) -> None:
        self._places = places
        self._runner = runner
        self._turn = asyncio.Lock()

    async def archive(
        self,
        selector: str,
        *,
        reason: str = "",
        by: str = "operator",
        now: datetime | None = None,
        put_off: PutOff = _never,
    ) -> LifecycleResult:
        """Sets one active twin aside, at once; a running one is stopped first."""
        tombstones.proper_by(by)
        async with self._turn:
            twin = await asyncio.to_thread(self._active, selector)
            if put_off(twin.key):
                await asyncio.to_thread(archive_moves.refuse_taken, self._places, twin.key, twin.name)
                found = _result("archive")
                found["archived"], found["put_off"] = [], [_who(twin)]
                return found
            done = await self._archive(twin, reason=reason, by=by, now=now)
        found = _result("archive")
        found["archived"] = [done]
        return found

    async def archive_matching(
        self,
        selection: Selection,
        *,
        confirm: bool = False,
        reason: str = "",
        by: str = "operator",
        now: datetime | None = None,
        put_off: PutOff = _never,
    ) -> LifecycleResult:
        """Sets aside all active twins that the selection means; only says which, unless confirmed.

        One that cannot be archived is told under ``errors`` and stops no other.
        """
        tombstones.proper_by(by)
        twins = (await asyncio.to_thread(scan, self._places)).twins
        presences = {twin.key: self._runner.presence(twin.key) for twin in twins}
        chosen = await asyncio.to_thread(
            selection.choose,
            twins,
            quiet_since=lambda twin: _quiet_since(twin, presences[twin.key]),
            now=now or datetime.now(UTC),
        )
        if not confirm:
            dry = _result("archive", "dry-run")
            dry["archived"], dry["would_archive"] = [], [_who(twin) for twin in chosen]
            return dry
        archived: list[MovedTwin] = []
        errors: list[FailedTwin] = []
        later = [twin for twin in chosen if put_off(twin.key)]
        for twin in (twin for twin in chosen if twin not in later):
            try:
                async with self._turn:
                    archived.append(await self._archive(twin, reason=reason, by=by, now=now))
            except (ReportableError, OSError) as error:
                errors.append({"hash": twin.key, "name": twin.name, "error": str(error)})
        found = _result("archive")
        found["ok"], found["archived"], found["errors"] = not errors, archived, errors
        if later:
            found["put_off"] = [_who(twin) for twin in later]
        return found

    async def unarchive(self, selector: str) -> LifecycleResult:
        """Brings one archived twin back among the active. It is not booted."""
        async with self._turn:
            key = await asyncio.to_thread(self._archived, selector, " already")
            record, _ = await asyncio.to_thread(state_index.archived_entry, self._places, key)
            place = await asyncio.to_thread(archive_moves.unarchive_body, self._places, key)
        found = _result("unarchive")
        found["unarchived"] = [{**_recorded(record), "moved_to": str(place)}]
        return found

    async def purge(
        self,
        selector: str,
        *,
        confirm: bool = False,
        reason: str = "",
        by: str = "operator",
        now: datetime | None = None,
    ) -> LifecycleResult:
        """Ends an archived twin for good: a tombstone stays. Without ``confirm`` it only says whom."""
        tombstones.proper_by(by)
        async with self._turn:
            key = await asyncio.to_thread(self._archived, selector, "; archive first")
            record, _ = await asyncio.to_thread(state_index.archived_entry, self._places, key)
            who = _recorded(record)
            if not confirm:
                dry = _result("purge", "dry-run")
                dry["purged"], dry["would_purge"] = [], [{**who, "path": str(self._places.archived(key))}]
                return dry
            place = await asyncio.to_thread(
                archive_moves.purge_body,
                self._places,
                key,
                at=now or datetime.now(UTC),
                by=by,
                reason=tombstones.proper_reason(reason),
            )
        found = _result("purge")
        found["purged"] = [{**who, "tombstone": str(place)}]
        return found

    async def list_archived(self) -> list[dict[str, Any]]:
        """Each archived twin's ``archived.json`` and its ``path``."""
        return await asyncio.to_thread(state_index.list_archived, self._places)

    async def list_purged(self) -> list[dict[str, Any]]:
        """Every tombstone."""
        return await asyncio.to_thread(state_index.list_purged, self._places)

    async def recover(self) -> list[str]:
        """At start-up: finishes or undoes what a crash cut off; a sentence for each."""
        async with self._turn:
            return await asyncio.to_thread(self._settle)

    async def migrate(self, *, now: datetime | None = None) -> dict[str, Any]:
        """At start-up, after ``recover``: archives what older tools left in ``.trash``."""
        async with self._turn:
            return await asyncio.to_thread(migrate_trash, self._places, now=now or datetime.now(UTC))

    async def _archive(self, twin: Twin, *, reason: str, by: str, now: datetime | None) -> MovedTwin:
        await asyncio.to_thread(archive_moves.refuse_taken, self._places, twin.key, twin.name)
        async with self._runner.apart(twin.key):
            return await self._move(twin, reason=reason, by=by, now=now)

    async def _move(self, twin: Twin, *, reason: str, by: str, now: datetime | None) -> MovedTwin:
        before = self._runner.presence(twin.key)
        await self._stop(twin)
        measured = await asyncio.to_thread(measure, twin.workspace.root)
        record = tombstones.archived_record(
            rappid=twin.rappid.text,
            key=twin.key,
            name=twin.name,
            kind=twin.kind,
            at=now or datetime.now(UTC),
            by=by,
            reason=tombstones.proper_reason(reason),
            last_known={"alive_at_archive": before.running, "port": before.port, **measured.as_known()},
        )
        place = await asyncio.to_thread(archive_moves.archive_body, self._places, twin.workspace.root, record)
        if self._runner.presence(twin.key).running:  # somebody woke it between its end and its move
            await self._stop(twin)
        return {**_who(twin), "moved_to": str(place)}

    async def _stop(self, twin: Twin) -> None:
        await self._runner.stop(twin.key)
        if self._runner.presence(twin.key).running:
            raise TwinConflictError(
                f"{twin.name} does not stop; it was left as it is.", do="rappd twins stop"
            )

    # In threads from here on.

    def _settle(self) -> list[str]:
        with is_locked(self._places) as settled:
            return settled

    def _active(self, selector: str) -> Twin:
        self._settle()
        return find_active(self._places, selector, when_archived=" already")

    def _archived(self, selector: str, when_active: str) -> str:
        self._settle()
        return find_archived(self._places, selector, when_active=when_active)


def _quiet_since(twin: Twin, presence: Presence) -> datetime | None:
    if presence.running:
        return None
    touched = measure(twin.workspace.root).touched
    return datetime.fromtimestamp(max(touched, presence.last_talk or 0.0), UTC)


def _who(twin: Twin) -> NamedTwin:
    return {"hash": twin.key, "name": twin.name, "kind": twin.kind}


def _recorded(record: dict[str, Any]) -> NamedTwin:
    return {"hash": record["hash"], "name": record["name"], "kind": record["kind"]}


def _result(action: Action, mode: Mode = "execute") -> LifecycleResult:
    return {"ok": True, "action": action, "mode": mode, "errors": []}
