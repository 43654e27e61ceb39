"""The list of what waits, for phones and programs of the owner: read whole, answered once, by id and hash."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import orjson

from agents.storage.safe_fs import in_file_pool
from neighborhoods.discovery.announcement import tame
from rappd.daemon.waiting import waiting
from rappd.errors import ConflictError, NotFoundError, RefusedError
from rappd.notices.notices import one_line
from twins.errors import NoSuchFileError
from twins.installer.errors import PlanChangedError

if TYPE_CHECKING:
    from rappd.daemon.app import Daemon
    from rappd.tenants.tenant import Tenant

log = logging.getLogger(__name__)

_MOST_SHOWN = 200_000
"""Characters of a file, or octets of a plan, on a phone: below what one message may have."""
_MOST_KEPT = 100
_CODE, _EGGS = ("code", "workflow"), ("egg", "plan")
"""Kinds of rows: files that wait, and eggs: those that machines sent, and those that are open on the computer."""


class OwnersList:
    """Code, workflows and plans are answered here; everything else is answered on the computer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._answering = WeakValueDictionary[str, asyncio.Lock]()
        """By key: of two answers to one matter the second is read once the first is done."""
        self._answered: dict[str, str] = {}
        """The matters that phones answered lately, and in which words the second who answers one is told."""

    async def rows(self) -> list[dict[str, Any]]:
        """``key``, ``what``, ``at`` and ``news`` of each matter; ``kind`` and ``sha256`` of what may be answered."""
        return [
            {name: row[name] for name in ("key", "what", "at", "news")}
            | ({"kind": row["kind"], "sha256": _bytes_of(row)} if self._is_answered_here(row) else {})
            for row in await self._all()
        ]

    async def matter(self, key: str) -> dict[str, Any]:
        """The whole of a matter: ``key``, ``kind``, ``sha256``, ``what``, ``why``, and ``text``, or ``plan`` and ``egg``.

        An answer names the ``sha256``: of a file's bytes, or the digest of a plan, which covers the egg and all that
        it would touch. Raises ``NotFoundError`` for what waits no more, ``RefusedError`` for what is too much for a
        phone.
        """
        row = await self._asked(key)
        shown = {"key": key, "kind": row["kind"], "what": row["what"]}
        return {**shown, **(await self._plan(row) if row["kind"] in _EGGS else await self._file(row))}

    async def answer(self, key: str, sha256: str, yes: bool, by: str, device: str) -> str:
        """The owner's yes or no, from a phone, to what was shown with this hash; returns what came of it.

        Raises ``NotFoundError`` for what was answered already, and ``ConflictError`` for other bytes.
        """
        async with self._answering.setdefault(key, asyncio.Lock()):
            row = await self._asked(key)
            name = row["name"] if row["kind"] in _EGGS else row["path"]
            if not sha256:
                raise ConflictError(f"{name} was not read.", do="Read it, then answer.")
            give = self._answer_egg if row["kind"] in _EGGS else self._answer_file
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
        done = await (await self._tenant(row)).admin.approve(row["path"], sha256, waiting_only=True)
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
        """The rows of the owner's list, after those of eggs whose plan somebody has open on the computer."""
        opened, listed = await asyncio.gather(in_file_pool(self._opened), waiting(self._daemon))
        return [*opened, *listed]

    def _opened(self) -> list[dict[str, Any]]:
        rows = []
        for path in self._daemon.eggs.waiting.held():
            with contextlib.suppress(FileNotFoundError):  # answered meanwhile
                what = f"{tame(path.name)} is open on the computer; nothing of it is in use yet."
                row = {"kind": "plan", "what": one_line(what), "at": path.stat().st_mtime, "news": False}
                id = path.parent.name
                rows.append({**row, "key": f"plan:{id}", "id": id, "path": str(path), "name": path.name})
        return rows

    def _is_answered_here(self, row: dict[str, Any]) -> bool:
        """Code, workflows, and the plan of an egg that a paired machine sent, or that is open on the computer.

        The values of a ``.env`` are for no phone to see, nor its names enough to say yes to. An egg that a phone sent
        would be an installation that is begun and approved on phones.
        """
        if row["kind"] == "egg":
            return self._daemon.federation.peer_store.get(row["peer"]) is not None
        return row["kind"] == "plan" or (row["kind"] in _CODE and row["path"] != ".env")

    async def _asked(self, key: str) -> dict[str, Any]:
        found = next((row for row in await self._all() if row["key"] == key), None)
        if found is None:
            raise self._gone(key)
        if not self._is_answered_here(found):
            raise RefusedError("That is answered on the computer.", do="rappd notices list")
        return found

    async def _file(self, row: dict[str, Any]) -> dict[str, Any]:
        source = await (await self._tenant(row)).admin.source(row["path"])
        text = str(source["source"])
        if len(text) > _MOST_SHOWN:
            raise _too_long(row["path"])
        return {"sha256": source["sha256"], "why": row["why"], "text": text}

    async def _plan(self, row: dict[str, Any]) -> dict[str, Any]:
        found = await asyncio.to_thread(self._daemon.eggs.home_eggs.look, Path(row["path"]))
        plan, egg = found["plan"], found["egg"]
        if "members" in plan:
            raise RefusedError(f"{row['name']} holds eggs of its own.", do="Look at it on the computer.")
        if len(orjson.dumps(plan, default=str)) > _MOST_SHOWN:
            raise _too_long(row["name"])
        head = {"whole": egg["whole"], "listed": egg["listed"], "files": len(egg["parts"])}
        return {"sha256": plan["digest"], "why": "", "plan": plan, "egg": head}

    async def _answer_file(self, row: dict[str, Any], sha256: str, yes: bool) -> tuple[str, str]:
        admin = (await self._tenant(row)).admin
        if yes:
            done = await admin.approve(row["path"], sha256, waiting_only=True)
            self._daemon.tether.workflows_changed()
            return "approved", str(done["message"])
        done = await admin.refuse(row["path"], sha256)
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
        if (await self._plan(row))["sha256"] != sha256:
            raise ConflictError(f"{row['name']} is not what you read: it changed.", do="Read it again.")
        if row["kind"] == "egg":
            await self._daemon.egg_transfer.discard(row["id"])
        else:
            await asyncio.to_thread(self._daemon.eggs.waiting.discard, Path(row["path"]))
        return "threw away", f"{row['name']} was thrown away."

    def _tell(self, key: str, words: str, device: str) -> None:
        log.warning("security: %s", words)
        self._answered[key] = words
        while len(self._answered) > _MOST_KEPT:
            del self._answered[next(iter(self._answered))]
        do = f"If that was not you: rappd devices revoke {device[:8]}"
        self._daemon.notices.add(words, do, kind="answered", subject=device)

    def _gone(self, key: str) -> NotFoundError:
        return NotFoundError(
            self._answered.get(key) or "That waits no more: it was answered on the computer."
        )

    async def _tenant(self, row: dict[str, Any]) -> Tenant:
        return await self._daemon.tenants.twin(row["twin"]) if row["twin"] else self._daemon.host


def _bytes_of(row: dict[str, Any]) -> str:
    return str(row["id"] if row["kind"] in _EGGS else row["sha256"])


def _too_long(name: str) -> RefusedError:
    return RefusedError(f"{name} is too long to be read on a phone.", do="Read it on the computer.")
