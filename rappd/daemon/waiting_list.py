"""Everything that waits for the owner, as one list for the page and for phones: read from what is, never from memory."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, NotRequired, TypedDict

from agents.runtimes.python.sandbox.needs import in_words
from agents.storage.safe_fs import in_file_pool
from neighborhoods.discovery.announcement import tame
from neighborhoods.pairing.pairing_states import PairingRow
from rappd.notices.notices import one_line
from twins.eggs.readers.workspace_paths import is_workflow
from twins.errors import BadFileError
from twins.trust.quarantined_files import held_everywhere

if TYPE_CHECKING:
    from agents.contract.agent import FileState
    from rappd.daemon.app import Daemon
    from rappd.tenants.rapplication_services import ServiceFile
    from rappd.tenants.tenant import Tenant

_TOLD_BY_STATE = frozenset({"approval", "pairing", "egg"})
"""Kinds of notices whose matter is a row of its own as long as it is open."""


class WaitingRow(TypedDict):
    """A matter that waits. Code has ``twin``, ``path``, ``sha256`` and ``why``, an egg what it is, a pairing its row."""

    key: str
    kind: str
    what: str
    do: str
    at: float
    news: bool
    twin: NotRequired[str]
    path: NotRequired[str]
    sha256: NotRequired[str]
    why: NotRequired[str]
    reach: NotRequired[list[str]]
    id: NotRequired[str]
    name: NotRequired[str]
    size: NotRequired[int]
    peer: NotRequired[str]
    pairing: NotRequired[PairingRow]
    subject: NotRequired[str]


async def waiting(daemon: Daemon) -> list[WaitingRow]:
    """Returns a row for each matter: ``key``, ``kind``, ``what``, ``do``, ``at``, and how it is answered.

    First why this machine is not ready, then who asks right now (both have ``at`` 0), then the latest. ``news`` is
    True for what is only to be read: it ends by being dismissed. Everything else stays until it is answered.
    """
    quarantined, services, eggs = await asyncio.gather(
        in_file_pool(_quarantined, daemon), in_file_pool(_services, daemon), _eggs(daemon)
    )
    needing = _needing(daemon, quarantined, services)
    later = sorted([*quarantined, *needing, *eggs, *_news(daemon)], key=lambda row: -row["at"])
    return [*await _unready(daemon), *_phone(daemon), *_pairings(daemon), *later]


async def _unready(daemon: Daemon) -> list[WaitingRow]:
    problems = await daemon.readiness.problems()
    return [_row(f"unready:{one['what']}", "unready", one["what"], one["do"], 0.0) for one in problems]


def _quarantined(daemon: Daemon) -> list[WaitingRow]:
    try:
        found = held_everywhere(daemon.trust.quarantine, daemon.host.workspace, daemon.tenants.layout)
    except BadFileError as problem:
        return [_row("quarantine", "fault", str(problem), problem.do, 0.0)]
    rows: list[WaitingRow] = []
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


def _needing(
    daemon: Daemon, quarantined: list[WaitingRow], services: list[tuple[Tenant, ServiceFile]]
) -> list[WaitingRow]:
    """Code of this machine and of loaded twins that waits for what it declares, or does not declare, alone.

    Rows of agents and services that are quarantined besides get their ``reach``, which a yes to them gives, too.
    """
    known = {(row.get("twin"), row.get("path")): row for row in quarantined}
    found = [
        (tenant, f"agents/{state.file.rel}", state.sha256, state.needs, _why(state))
        for tenant in daemon.tenants.all()
        for state in tenant.registry.states()
        if state.is_quarantined
    ]
    found += [(tenant, one.path, one.sha256, one.needs, one.waits) for tenant, one in services]
    rows: list[WaitingRow] = []
    for tenant, path, sha256, needs, why in found:
        twin, of = ("", "") if tenant is daemon.host else (tenant.name, f" of {tame(tenant.title)}")
        reach = in_words(needs)
        if (known_row := known.get((twin, path))) is not None:
            if known_row["sha256"] == sha256:
                known_row["reach"] = reach
            continue
        what = f"{path.removeprefix('agents/')}{of} waits for your yes to what it may reach; it is kept, and not run."
        row = _row(f"needs:{twin}:{path}", "needs", what, "rappd agents approve", 0.0)
        rows.append({**row, "twin": twin, "path": path, "sha256": sha256, "why": why, "reach": reach})
    return rows


def _why(state: FileState) -> str:
    return state.failures[0].reason if state.failures else ""


def _services(daemon: Daemon) -> list[tuple[Tenant, ServiceFile]]:
    return [(tenant, one) for tenant in daemon.tenants.all() for one in tenant.services.waiting()]


async def _eggs(daemon: Daemon) -> list[WaitingRow]:
    rows: list[WaitingRow] = []
    for one in await daemon.egg_transfer.arrived():
        what = f"{tame(one['from'])} sent {one['name']}; nothing of it is in use yet."
        row = _row(f"egg:{one['id']}", "egg", what, "rappd egg arrived", one["at"])
        rows.append(
            {
                **row,
                "id": one["id"],
                "path": one["path"],
                "name": one["name"],
                "size": one["size"],
                "peer": one["peer"],
            }
        )
    return rows


def _pairings(daemon: Daemon) -> list[WaitingRow]:
    rows: list[WaitingRow] = []
    for asking in daemon.machines.owner_notices.asking():
        name = tame(asking["peer"]) or "A machine"
        what, do = f"{name} wants to pair with this machine.", f"rappd peers pair {name}"
        rows.append({**_row(f"pairing:{asking['attempt']}", "pairing", what, do, 0.0), "pairing": asking})
    return rows


def _phone(daemon: Daemon) -> list[WaitingRow]:
    window = daemon.tether.window_state()
    if window["state"] != "compare":
        return []
    what = f"{tame(window['name']) or 'A phone'} wants to join; compare its number."
    return [_row(f"phone:{window['id']}", "phone", what, "rappd pair", 0.0)]


def _news(daemon: Daemon) -> list[WaitingRow]:
    return [
        {**_row(one.key, one.kind, one.what, one.do, one.at), "news": True, "subject": one.subject}
        for one in daemon.notices.waiting()
        if one.kind not in _TOLD_BY_STATE
    ]


def _row(key: str, kind: str, what: str, do: str, at: float) -> WaitingRow:
    return {"key": key, "kind": kind, "what": one_line(what), "do": do, "at": at, "news": False}
