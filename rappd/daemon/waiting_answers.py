"""The list of what waits, for phones and programs of the owner: read whole, answered once, by id and hash."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import orjson

from agents.storage.safe_fs import in_file_pool
from neighborhoods.discovery.announcement import tame
from rappd.daemon.waiting_list import waiting
from rappd.errors import ConflictError, NotFoundError, RefusedError
from rappd.features.snapshots.progress import ended_line
from rappd.notices.notices import one_line
from twins.errors import NoSuchFileError
from twins.installer.errors import PlanChangedError

if TYPE_CHECKING:
    from rappd.daemon.app import Daemon
    from rappd.features.snapshots.restoring import OpenRestore
    from rappd.tenants.tenant import Tenant

log = logging.getLogger(__name__)

_MOST_SHOWN = 200_000
"""Characters of a file, or octets of a plan, on a phone: below what one message may have."""
_MOST_KEPT = 100
_RESTORE_SECONDS = 20.0
"""The time that a phone waits for the end of a restore; one that lasts longer goes on, and its end is told."""
_CODE, _EGGS, _RESTORE = ("code", "workflow", "needs"), ("egg", "plan"), "restore"
"""Kinds of rows: files that wait; eggs: those that machines sent, and those that are open on the computer; and restores
of snapshots that are open there."""


class OwnersList:
    """Code, workflows and plans are answered here; everything else is answered on the computer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._answering = WeakValueDictionary[str, asyncio.Lock]()
        """By key: of two answers to one matter the second is read once the first is done."""
        self._answered: dict[str, tuple[float, str]] = {}
        """The matters that phones answered lately: when, and in which words the second who answers one is told."""

    async def rows(self) -> list[dict[str, Any]]:
        """``key``, ``what``, ``at`` and ``news`` of each matter; ``kind`` and ``sha256`` of what may be answered."""
        return [
            {name: row[name] for name in ("key", "what", "at", "news")}
            | ({"kind": row["kind"], "sha256": _bytes_of(row)} if self._is_answered_here(row) else {})
            for row in await self._all()
        ]

    async def matter(self, key: str) -> dict[str, Any]:
        """The whole of a matter: ``key``, ``kind``, ``sha256``, ``what``, ``why``, and ``text``, or ``plan`` and, for eggs, ``egg``.

        An answer names the ``sha256``: of a file's bytes, or the digest of a plan, which covers the egg and all that
        it would touch. Raises ``NotFoundError`` for what waits no more, ``RefusedError`` for what is too much for a
        phone.
        """
        row = await self._asked(key)
        shown = {"key": key, "kind": row["kind"], "what": row["what"]}
        return {**shown, **await self._whole(row)}

    async def answer(self, key: str, sha256: str, yes: bool, by: str, device: str) -> str:
        """The owner's yes or no, from a phone, to what was shown with this hash; returns what came of it.

        Raises ``NotFoundError`` for what was answered already, and ``ConflictError`` for other bytes.
        """
        async with self._answering.setdefault(key, asyncio.Lock()):
            row = await self._asked(key)
            name = row["path"] if row["kind"] in _CODE else row["name"]
            if not sha256:
                raise ConflictError(f"{name} was not read.", do="Read it, then answer.")
            give = self._answer_file
            if row["kind"] not in _CODE:
                give = self._answer_restore if row["kind"] == _RESTORE else self._answer_egg
            try:
                did, came = await give(row, sha256, yes)
            except (NotFoundError, NoSuchFileError):
                raise self._gone(key) from None
            self._tell(key, f"{by} {did} {name} on a phone, at {time.strftime('%H:%M')}.", device)
        return came

    async def approve(self, key: str, sha256: str, by: str) -> str:
        """The owner's yes to a file's bytes with this hash, from a program of this account; returns what came of it.

        Raises what ``answer`` raises.
        """
        row = await self._asked(key)
        done = await (await self._tenant(row)).admin.approve(_name(row), sha256, waiting_only=True)
        self._daemon.tether.workflows_changed()
        log.warning("security: %s was approved in the program %s", row["path"], by)
        return str(done["message"])

    async def dismiss(self, key: str) -> None:
        """Removes one of the news, by its whole key.

        Raises ``NotFoundError``, also for what waits for an answer, and ``StoreError``: then it still waits.
        """
        if not any(row["key"] == key and row["news"] for row in await waiting(self._daemon)):
            raise NotFoundError("That is answered on the computer.", do="rappd notices list")
        await self._daemon.notices.dismiss(key)

    async def _all(self) -> list[dict[str, Any]]:
        """The rows of the owner's list, after those of eggs and restores whose plan somebody has open on the computer."""
        began, restores = time.monotonic(), self._daemon.snapshots.open_restores.all()
        opened, listed = await asyncio.gather(in_file_pool(self._opened, restores), waiting(self._daemon))
        rows = [*opened, *listed]
        for row in rows:
            if self._answered.get(row["key"], (began, ""))[0] < began:  # it waits again
                del self._answered[row["key"]]
        return rows

    def _opened(self, restores: list[OpenRestore]) -> list[dict[str, Any]]:
        rows = []
        for one in restores:
            if not one.path.exists():
                continue
            name = tame(one.path.name)
            what = one_line(f"Restoring {name} is open on the computer; nothing of it is written yet.")
            row = {"key": f"restore:{one.id}", "kind": _RESTORE, "what": what, "at": one.at, "news": False}
            rows.append({**row, "id": one.id, "sha256": one.digest, "name": name, "open": one})
        for path in self._daemon.eggs.waiting.held():
            with contextlib.suppress(FileNotFoundError):  # answered meanwhile
                what = f"{tame(path.name)} is open on the computer; nothing of it is in use yet."
                row = {"kind": "plan", "what": one_line(what), "at": path.stat().st_mtime, "news": False}
                id = path.parent.name
                rows.append({**row, "key": f"plan:{id}", "id": id, "path": str(path), "name": path.name})
        return rows

    def _is_answered_here(self, row: dict[str, Any]) -> bool:
        """Code, its needs, workflows, and the plan of an egg that a paired machine sent, or of what is open on the computer.

        The values of a ``.env`` are for no phone to see, nor its names enough to say yes to. An egg that a phone sent
        would be an installation that is begun and approved on phones.
        """
        if row["kind"] == "egg":
            return self._daemon.machines.peer_store.get(row["peer"]) is not None
        return row["kind"] in ("plan", _RESTORE) or (row["kind"] in _CODE and row["path"] != ".env")

    async def _asked(self, key: str) -> dict[str, Any]:
        found = next((row for row in await self._all() if row["key"] == key), None)
        if found is None:
            raise self._gone(key)
        if not self._is_answered_here(found):
            raise RefusedError("That is answered on the computer.", do="rappd notices list")
        return found

    async def _whole(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["kind"] in _CODE:
            return await self._file(row)
        if row["kind"] == _RESTORE:
            return await self._restore(row)
        return await self._plan(row)

    async def _file(self, row: dict[str, Any]) -> dict[str, Any]:
        source = await (await self._tenant(row)).admin.source(_name(row))
        text = str(source["source"])
        if len(text) > _MOST_SHOWN:
            raise _too_long(row["path"])
        reach = f"With your yes it {'; '.join(row['reach'])}." if row.get("reach") else ""
        why = " ".join(filter(None, (row["why"], reach)))
        return {"sha256": source["sha256"], "why": why, "text": text}

    async def _plan(self, row: dict[str, Any]) -> dict[str, Any]:
        found = await asyncio.to_thread(self._daemon.eggs.home_eggs.look, Path(row["path"]))
        plan, egg = found["plan"], found["egg"]
        if "members" in plan:
            raise RefusedError(f"{row['name']} holds eggs of its own.", do="Look at it on the computer.")
        _check_length(plan, row)
        head = {"whole": egg["whole"], "listed": egg["listed"], "files": len(egg["parts"])}
        return {"sha256": plan["digest"], "why": "", "plan": plan, "egg": head}

    async def _restore(self, row: dict[str, Any]) -> dict[str, Any]:
        """The plan of a restore as it is now: the machines are asked anew."""
        one = row["open"]
        plan = (await self._daemon.snapshots.plan(str(one.path), one.options))["plan"]
        _check_length(plan, row)
        return {"sha256": plan["digest"], "why": "", "plan": plan}

    async def _answer_file(self, row: dict[str, Any], sha256: str, yes: bool) -> tuple[str, str]:
        admin = (await self._tenant(row)).admin
        if yes:
            done = await admin.approve(_name(row), sha256, waiting_only=True)
            self._daemon.tether.workflows_changed()
            return "approved", str(done["message"])
        done = await admin.refuse(_name(row), sha256)
        return "refused", str(done["message"])

    async def _answer_egg(self, row: dict[str, Any], sha256: str, yes: bool) -> tuple[str, str]:
        if yes:
            try:
                done = await self._daemon.eggs.hatch_egg(
                    Path(row["path"]), approved=sha256, source=row["name"]
                )
            except PlanChangedError as problem:
                raise ConflictError(str(problem), do=problem.do) from problem
            words, undo, _ = str(done["message"]).partition(" Undo: ")
            return "hatched", f"{words} It can be undone on the computer." if undo else words
        await self._is_as_read(row, sha256)
        if row["kind"] == "egg":
            await self._daemon.egg_transfer.discard(row["id"])
        else:
            await asyncio.to_thread(self._daemon.eggs.waiting.discard, Path(row["path"]))
        return "threw away", f"{row['name']} was thrown away."

    async def _answer_restore(self, row: dict[str, Any], sha256: str, yes: bool) -> tuple[str, str]:
        snapshots, one = self._daemon.snapshots, row["open"]
        if not yes:
            await self._is_as_read(row, sha256)
            snapshots.open_restores.take(one.id)
            return "refused to restore", f"{row['name']} is not restored; nothing was written."
        try:
            turn = await snapshots.restore(str(one.path), sha256, one.options, id=one.id)
            done = await snapshots.so_far(turn, _RESTORE_SECONDS)
        except PlanChangedError as problem:
            raise ConflictError(str(problem), do=problem.do) from problem
        if done is None:
            return "restored", f"{row['name']} is being restored. Its end will be told under Waiting for you."
        return "restored", ended_line(done)

    async def _is_as_read(self, row: dict[str, Any], sha256: str) -> None:
        """Raises ``ConflictError`` for another plan than the one with this hash."""
        if (await self._whole(row))["sha256"] != sha256:
            raise ConflictError(f"{row['name']} is not what you read: it changed.", do="Read it again.")

    def _tell(self, key: str, words: str, device: str) -> None:
        log.warning("security: %s", words)
        self._answered[key] = time.monotonic(), words
        while len(self._answered) > _MOST_KEPT:
            del self._answered[next(iter(self._answered))]
        do = f"If that was not you: rappd devices revoke {device[:8]}"
        self._daemon.notices.add(words, do, kind="answered", subject=device)

    def _gone(self, key: str) -> NotFoundError:
        _, words = self._answered.get(key, (0.0, "That waits no more: it was answered on the computer."))
        return NotFoundError(words)

    async def _tenant(self, row: dict[str, Any]) -> Tenant:
        return await self._daemon.tenants.twin(row["twin"]) if row["twin"] else self._daemon.host


def _bytes_of(row: dict[str, Any]) -> str:
    return str(row["id"] if row["kind"] in _EGGS else row["sha256"])


def _name(row: dict[str, Any]) -> str:
    """The name by which a workspace knows the file of a row: of one that waits for its needs alone, among its agents."""
    path = str(row["path"])
    return path.removeprefix("agents/") if row["kind"] == "needs" else path


def _check_length(plan: Mapping[str, Any], row: dict[str, Any]) -> None:
    if len(orjson.dumps(plan, default=str)) > _MOST_SHOWN:
        raise _too_long(row["name"])


def _too_long(name: str) -> RefusedError:
    return RefusedError(f"{name} is too long to be read on a phone.", do="Read it on the computer.")
