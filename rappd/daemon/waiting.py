"""Everything that waits for the owner, as one list for the page and for phones: read from what is, never from memory."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agents.storage.safe_fs import in_file_pool
from neighborhoods.discovery.announcement import tame
from rappd.errors import NotFoundError, RefusedError
from rappd.notices.notices import one_line
from twins.eggs.readers.member_paths import is_workflow
from twins.errors import BadFileError
from twins.trust.quarantined_files import held_everywhere

if TYPE_CHECKING:
    from rappd.daemon.app import Daemon
    from rappd.tenants.tenant import Tenant

log = logging.getLogger(__name__)

_MOST_SHOWN = 200_000
"""Characters of a file on a phone, below what one message may have."""
_MOST_KEPT = 100
_TOLD_BY_STATE = frozenset({"approval", "pairing", "egg"})
"""Kinds of notices whose matter is a row of its own as long as it is open."""


async def waiting(daemon: Daemon) -> list[dict[str, Any]]:
    """Returns a row for each matter: ``key``, ``kind``, ``what``, ``do``, ``at``, and how it is answered.

    First why this machine is not ready, then who asks right now (both have ``at`` 0), then the latest. ``news`` is
    True for what is only to be read: it ends by being dismissed. Everything else stays until it is answered.
    """
    quarantined, eggs = await asyncio.gather(in_file_pool(_quarantined, daemon), _eggs(daemon))
    later = sorted([*quarantined, *eggs, *_news(daemon)], key=lambda row: -row["at"])
    return [*await _unready(daemon), *_phone(daemon), *_pairings(daemon), *later]


class OwnersList:
    """The same list as phones of the owner get it."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._answered: dict[str, str] = {}
        """The matters that phones answered lately, and in which words the second who answers one is told."""

    async def rows(self) -> list[dict[str, Any]]:
        """``key``, ``what``, ``at`` and ``news`` of each matter, and the ``sha256`` of what a phone may answer."""
        found = await waiting(self._daemon)
        told = ("key", "what", "at", "news")
        return [
            {name: row[name] for name in told} | ({"sha256": row["sha256"]} if _is_for_phones(row) else {})
            for row in found
        ]

    async def matter(self, key: str) -> dict[str, Any]:
        """The whole of a file that waits: ``key``, ``sha256``, ``what``, ``why``, ``text``.

        Raises ``NotFoundError`` for what waits no more, ``RefusedError`` for what is too much for a phone.
        """
        row = await self._asked(key)
        source = await (await self._tenant(row)).admin.source(row["path"])
        text = str(source["source"])
        if len(text) > _MOST_SHOWN:
            raise RefusedError(
                f"{row['path']} is too long to be read on a phone.", do="Read it on the computer."
            )
        return {"key": key, "sha256": source["sha256"], "what": row["what"], "why": row["why"], "text": text}

    async def answer(self, key: str, sha256: str, yes: bool, by: str, device: str) -> str:
        """The owner's yes or no, from a phone, to the bytes with this hash; returns what came of it.

        Raises ``NotFoundError`` for what was answered already, and ``ConflictError`` for other bytes.
        """
        row = await self._asked(key)
        admin = (await self._tenant(row)).admin
        try:
            if yes:
                done = await admin.approve(row["path"], sha256, waiting_only=True)
                self._daemon.tether.workflows_changed()
            else:
                done = await admin.refuse(row["path"], sha256)
        except NotFoundError:
            raise self._gone(key) from None
        did = "approved" if yes else "refused"
        log.warning("security: %s was %s by the phone %s", row["path"], did, by)
        self._answered[key] = f"{by} {did} {row['path']} on a phone, at {time.strftime('%H:%M')}."
        while len(self._answered) > _MOST_KEPT:
            del self._answered[next(iter(self._answered))]
        self._daemon.notices.add(
            self._answered[key], f"If that was not you: rappd devices revoke {device[:8]}",
            kind="answered", subject=device,
        )  # fmt: skip
        return str(done["message"])

    async def approve(self, key: str, sha256: str, by: str) -> str:
        """The owner's yes to the bytes with this hash, from a program of this account; returns what came of it.

        Raises what ``answer`` raises.
        """
        row = await self._asked(key)
        done = await (await self._tenant(row)).admin.approve(row["path"], sha256, waiting_only=True)
        self._daemon.tether.workflows_changed()
        log.warning("security: %s was approved in the program %s", row["path"], by)
        return str(done["message"])

    async def _asked(self, key: str) -> dict[str, Any]:
        found = next((row for row in await waiting(self._daemon) if row["key"] == key), None)
        if found is None:
            raise self._gone(key)
        if not _is_for_phones(found):
            raise RefusedError("That is answered on the computer.", do="rappd notices list")
        return found

    def _gone(self, key: str) -> NotFoundError:
        return NotFoundError(
            self._answered.get(key) or "That waits no more: it was answered on the computer."
        )

    async def _tenant(self, row: dict[str, Any]) -> Tenant:
        return await self._daemon.tenants.twin(row["twin"]) if row["twin"] else self._daemon.host

    async def dismiss(self, key: str) -> None:
        """Removes one of the news, by its whole key.

        Raises ``NotFoundError``, also for what waits for an answer, and ``StoreError``: then it still waits.
        """
        if key not in {row["key"] for row in _news(self._daemon)}:
            raise NotFoundError("That is answered on the computer.", do="rappd notices list")
        await self._daemon.notices.dismiss(key)


def _is_for_phones(row: dict[str, Any]) -> bool:
    """Code and workflows; the values of a ``.env`` are for no phone to see, nor its names enough to say yes to."""
    return row["kind"] in ("code", "workflow") and row["path"] != ".env"


async def _unready(daemon: Daemon) -> list[dict[str, Any]]:
    problems = await daemon.readiness.problems()
    return [_row(f"unready:{one['what']}", "unready", one["what"], one["do"], 0.0) for one in problems]


def _quarantined(daemon: Daemon) -> list[dict[str, Any]]:
    try:
        found = held_everywhere(daemon.trust.quarantine, daemon.host.workspace, daemon.tenants.layout)
    except BadFileError as problem:
        return [_row("quarantine", "fault", str(problem), problem.do, 0.0)]
    rows = []
    for twin, files in found:
        key, name = (twin.key, twin.name) if twin else ("", "")
        for one in files:
            of = f" of {tame(name)}" if name else ""
            verb = "used" if one.file.name == ".env" else "run"
            row = _row(
                f"code:{key}:{one.path}",
                "workflow" if is_workflow(one.path) else "code",
                f"{one.path}{of} came in {one.origin}; it is kept, and not {verb}.",
                "rappd agents approve",
                datetime.fromisoformat(one.at).timestamp(),
            )
            rows.append({**row, "twin": key, "path": one.path, "sha256": one.sha256, "why": one.why})
    return rows


async def _eggs(daemon: Daemon) -> list[dict[str, Any]]:
    rows = []
    for one in (await daemon.egg_transfer.arrived())["arrived"]:
        what = f"{tame(one['from'])} sent {one['name']}; nothing of it is in use yet."
        row = _row(f"egg:{one['id']}", "egg", what, "rappd egg arrived", one["at"])
        rows.append({**row, "id": one["id"], "path": one["path"], "name": one["name"], "size": one["size"]})
    return rows


def _pairings(daemon: Daemon) -> list[dict[str, Any]]:
    rows = []
    for asking in daemon.federation.asking():
        name = tame(asking["peer"]) or "A machine"
        what, do = f"{name} wants to pair with this machine.", f"rappd peers pair {name}"
        rows.append({**_row(f"pairing:{asking['attempt']}", "pairing", what, do, 0.0), "pairing": asking})
    return rows


def _phone(daemon: Daemon) -> list[dict[str, Any]]:
    window = daemon.tether.window_state()
    if window["state"] != "compare":
        return []
    what = f"{tame(window['name']) or 'A phone'} wants to join; compare its number."
    return [_row(f"phone:{window['id']}", "phone", what, "rappd pair", 0.0)]


def _news(daemon: Daemon) -> list[dict[str, Any]]:
    return [
        {**_row(one.key, one.kind, one.what, one.do, one.at), "news": True, "subject": one.subject}
        for one in daemon.notices.waiting()
        if one.kind not in _TOLD_BY_STATE
    ]


def _row(key: str, kind: str, what: str, do: str, at: float) -> dict[str, Any]:
    return {"key": key, "kind": kind, "what": one_line(what), "do": do, "at": at, "news": False}
