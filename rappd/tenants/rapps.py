"""Rapplications in a workspace: installing is dropping files, uninstalling is deleting them (§18.8)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import orjson

from agents.rapps.rapplication import Rapplication, read_rapplication
from agents.rapps.shipped_bundle import SHIPPED
from agents.storage.safe_fs import SafeTree, in_file_pool
from rappd.errors import ConflictError, NotFoundError
from twins.installer.planning import is_code, reach_of
from twins.workspace.workspace import Workspace

if TYPE_CHECKING:
    from rappd.tenants.tenant import Tenant

_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RECEIPT = "placed.json"
_MAX_RECORD = 1 << 20


class CodeReach(TypedDict):
    """A code file, and what it may reach, in words."""

    path: str
    may: list[str]


class RappRow(TypedDict):
    """A rapplication that can be installed, or is. ``ui`` is the address of its page, "" without one."""

    id: str
    name: str
    description: str
    version: str
    category: str
    installed: bool
    ui: str
    reach: list[CodeReach]


class RappInstalled(TypedDict):
    """A rapplication that was installed."""

    status: Literal["ok"]
    id: str
    message: str
    ui: str
    reach: list[CodeReach]


class RappRemoved(TypedDict):
    """A rapplication that was uninstalled."""

    status: Literal["ok"]
    id: str
    message: str


def listing(workspace: Workspace, port: int) -> list[RappRow]:
    """Shipped and installed rapplications, by id. What has no readable manifest is not listed."""
    rows: dict[str, RappRow] = {}
    for root, installed in ((SHIPPED, False), (workspace.rapps, True)):
        files = workspace.files if installed else SafeTree(root)
        for name in files.names(root if installed else ()):
            row = _row(files, root / name, installed=installed, port=port)
            if row is not None:
                rows[name] = row
    return [rows[name] for name in sorted(rows)]


async def install(tenant: Tenant, name: str) -> RappInstalled:
    """Installs a shipped rapplication by id, or a bundle by path. The whole is checked before the first write."""
    path = Path(name) if "/" in name else SHIPPED / name
    if not await asyncio.to_thread(_is_there, path) or ("/" not in name and not _ID.fullmatch(name)):
        raise NotFoundError(f'No rapplication "{name[:120]}".', do="rappd rapps list")
    rapp = await asyncio.to_thread(read_rapplication, path)
    await in_file_pool(_place, tenant.workspace, rapp)
    return {
        "status": "ok",
        "id": rapp.id,
        "message": f"{rapp.name} is installed.",
        "ui": "" if not rapp.has_ui else f"rapps/{rapp.id}/",
        "reach": _reach((file.path, file.content) for file in rapp.files),
    }


async def uninstall(tenant: Tenant, name: str) -> RappRemoved:
    """Deletes what the installation placed; memories under ``.brainstem_data`` stay."""
    placed = await in_file_pool(_placed, tenant.workspace, name) if _ID.fullmatch(name) else None
    if placed is None:
        raise NotFoundError(f'No rapplication "{name[:120]}" is installed.', do="rappd rapps list")
    await in_file_pool(_take_away, tenant.workspace, tenant.workspace.rapps / name, placed)
    return {"status": "ok", "id": name, "message": f"{name} is uninstalled. What it remembered stays."}


def page_folder(workspace: Workspace, name: str) -> Path:
    """Returns the folder of an installed rapplication's page. Raises ``NotFoundError``."""
    if not _ID.fullmatch(name):
        raise NotFoundError(f'No rapplication "{name[:120]}" is installed.', do="rappd rapps list")
    return workspace.rapps / name / "ui"


def _place(workspace: Workspace, rapp: Rapplication) -> None:
    files = workspace.files
    ours = set(_placed(workspace, rapp.id) or ())
    for file in rapp.files:
        if files.exists(file.path) and file.path not in ours:
            raise ConflictError(
                f"{file.path} exists already and is not {rapp.id}'s.", do="Move it away first."
            )
    for file in rapp.files:
        files.write_durably(file.path, file.content)
    _delete(workspace, ours - {file.path for file in rapp.files})  # of an earlier version
    receipt = orjson.dumps([file.path for file in rapp.files])
    files.write_durably(workspace.rapps / rapp.id / _RECEIPT, receipt)


def _placed(workspace: Workspace, name: str) -> list[str] | None:
    """The files that the installation of ``name`` placed; None when there is no (readable) receipt."""
    try:
        found = orjson.loads(workspace.files.read(workspace.rapps / name / _RECEIPT, _MAX_RECORD))
    except (OSError, orjson.JSONDecodeError):
        return None
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else None


def _take_away(workspace: Workspace, folder: Path, placed: list[str]) -> None:
    _delete(workspace, placed)
    workspace.files.remove(folder / _RECEIPT, missing_ok=True)
    workspace.files.remove_empty_folders(folder)  # the others hold files that somebody put there


def _delete(workspace: Workspace, names: Iterable[str]) -> None:
    for name in names:
        with suppress(OSError):  # a receipt that was tampered with names anything
            workspace.files.remove(name)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long
        return False


def _row(files: SafeTree, folder: Path, *, installed: bool, port: int) -> RappRow | None:
    try:
        found = orjson.loads(files.read(folder / "manifest.json", _MAX_RECORD))
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(found, dict):
        return None
    has_page = files.is_file(folder / "ui" / "index.html")
    return {
        "id": folder.name,
        "name": str(found.get("name") or folder.name),
        "description": str(found.get("description") or ""),
        "version": str(found.get("version") or ""),
        "category": str(found.get("category") or ""),
        "installed": installed,
        "ui": f"http://localhost:{port}/rapps/{folder.name}/" if has_page else "",
        "reach": [] if installed else _reach(_code_of(files, folder)),
    }


def _code_of(files: SafeTree, folder: Path) -> Iterator[tuple[str, bytes]]:
    """The code of a rapplication that is not installed: that of its agents, and of its service."""
    for part in ("singleton", "service"):
        for name in files.names(folder / part):
            yield name, files.read(folder / part / name, _MAX_RECORD)


def _reach(code: Iterable[tuple[str, bytes]]) -> list[CodeReach]:
    """``{path, may}`` of each code file, as a plan has it."""
    return [{"path": path, "may": reach_of(path, content)} for path, content in code if is_code(path)]
