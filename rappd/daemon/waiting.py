"""Everything that waits for the owner, as one list for the page and for phones: read from what is, never from memory."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agents.storage.safe_fs import in_file_pool
from neighborhoods.discovery.announcement import tame
from rappd.notices.notices import one_line
from twins.eggs.readers.member_paths import is_workflow
from twins.errors import BadFileError
from twins.trust.quarantined_files import held_everywhere

if TYPE_CHECKING:
    from rappd.daemon.app import Daemon

_TOLD_BY_STATE = frozenset({"approval", "pairing", "egg"})
"""Kinds of notices whose matter is a row of its own as long as it is open."""


async def waiting(daemon: Daemon) -> list[dict[str, Any]]:
    """Returns a row for each matter: ``key``, ``kind``, ``what``, ``do``, ``at``, and how it is answered.

    First why this machine is not ready, then who asks right now (both have ``at`` 0), then the latest. ``news`` is
    True for what is only to be read: it ends by being dismissed. Everything else stays until it is answered.
    """
    quarantined, eggs = await asyncio.gather(in_file_pool(_quarantined, daemon), _eggs(daemon))
    later = sorted(
        [*quarantined, *_needing(daemon, quarantined), *eggs, *_news(daemon)], key=lambda row: -row["at"]
    )
    return [*await _unready(daemon), *_phone(daemon), *_pairings(daemon), *later]


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


def _needing(daemon: Daemon, quarantined: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Agents of this machine and of loaded twins that wait for what they declare, or do not declare, alone."""
    known = {(row.get("twin"), row.get("path")) for row in quarantined}
    rows = []
    for tenant in daemon.tenants.all():
        twin, of = ("", "") if tenant is daemon.host else (tenant.name, f" of {tame(tenant.title)}")
        for state in tenant.registry.states():
            path = f"agents/{state.file.rel}"
            if not state.held or (twin, path) in known:
                continue
            what = f"{state.file.rel}{of} waits for your yes to what it may reach; it is kept, and not run."
            why = state.failures[0].reason if state.failures else ""
            row = _row(f"needs:{twin}:{path}", "needs", what, "rappd agents approve", 0.0)
            rows.append({**row, "twin": twin, "path": path, "sha256": state.sha256, "why": why})
    return rows


async def _eggs(daemon: Daemon) -> list[dict[str, Any]]:
    rows = []
    for one in (await daemon.egg_transfer.arrived())["arrived"]:
        what = f"{tame(one['from'])} sent {one['name']}; nothing of it is in use yet."
        row = _row(f"egg:{one['id']}", "egg", what, "rappd egg arrived", one["at"])
        rows.append({**row, **{name: one[name] for name in ("id", "path", "name", "size", "peer")}})
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
