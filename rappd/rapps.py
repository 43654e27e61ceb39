"""Rapplications in a workspace: installing is dropping files, uninstalling is deleting them (§18.8)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import agents.rapps
from agents.rapps.rapplication import Rapplication, read_rapplication
from rappd.errors import Conflict, NotFound
from twins.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from rappd.tenant import Tenant

SHIPPED = Path(agents.rapps.__path__[0])

_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RECEIPT = "placed.json"


def listing(workspace: Workspace, port: int) -> list[dict[str, Any]]:
    """Shipped and installed rapplications, by id. What has no readable manifest is not listed."""
    rows: dict[str, dict[str, Any]] = {}
    for root, installed in ((SHIPPED, False), (workspace.rapps, True)):
        for folder in sorted(root.iterdir()) if root.is_dir() else ():
            row = _row(folder, installed=installed, port=port)
            if row is not None:
                rows[folder.name] = row
    return [rows[name] for name in sorted(rows)]


async def install(tenant: Tenant, name: str) -> dict[str, Any]:
    """Installs a shipped rapplication by id, or a bundle by path. The whole is checked before the first write."""
    path = Path(name) if "/" in name else SHIPPED / name
    if not await asyncio.to_thread(_is_there, path) or ("/" not in name and not _ID.fullmatch(name)):
        raise NotFound(f'No rapplication "{name[:120]}".', do="rappd rapps list")
    rapp = await asyncio.to_thread(read_rapplication, path)
    await asyncio.to_thread(_place, tenant.workspace, rapp)
    return {
        "status": "ok",
        "id": rapp.id,
        "message": f"{rapp.name} is installed.",
        "ui": "" if not rapp.has_ui else f"rapps/{rapp.id}/",
    }


async def uninstall(tenant: Tenant, name: str) -> dict[str, Any]:
    """Deletes what the installation placed; memories under ``.brainstem_data`` stay."""
    placed = await asyncio.to_thread(_placed, tenant.workspace, name) if _ID.fullmatch(name) else None
    if placed is None:
        raise NotFound(f'No rapplication "{name[:120]}" is installed.', do="rappd rapps list")
    await asyncio.to_thread(_take_away, tenant.workspace, tenant.workspace.rapps / name, placed)
    return {"status": "ok", "id": name, "message": f"{name} is uninstalled. What it remembered stays."}


def page_folder(workspace: Workspace, name: str) -> Path:
    """Where an installed rapplication's page lies. Raises ``NotFound``."""
    if not _ID.fullmatch(name):
        raise NotFound(f'No rapplication "{name[:120]}" is installed.', do="rappd rapps list")
    return workspace.rapps / name / "ui"


def _place(workspace: Workspace, rapp: Rapplication) -> None:
    root = workspace.root
    ours = set(_placed(workspace, rapp.id) or ())
    for file in rapp.files:
        if (root / file.path).exists() and file.path not in ours:
            raise Conflict(f"{file.path} exists already and is not {rapp.id}'s.", do="Move it away first.")
    for file in rapp.files:
        write_atomically(root / file.path, file.content)
    _delete(workspace, ours - {file.path for file in rapp.files})  # of an earlier version
    receipt = orjson.dumps([file.path for file in rapp.files])
    write_atomically(workspace.rapps / rapp.id / _RECEIPT, receipt)


def _placed(workspace: Workspace, name: str) -> list[str] | None:
    """The files that the installation of ``name`` placed; None when there is no (readable) receipt."""
    try:
        found = orjson.loads((workspace.rapps / name / _RECEIPT).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else None


def _take_away(workspace: Workspace, folder: Path, placed: list[str]) -> None:
    _delete(workspace, placed)
    (folder / _RECEIPT).unlink(missing_ok=True)
    for path in sorted((folder, *folder.rglob("*")), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # somebody put a file of their own there
                path.rmdir()


def _delete(workspace: Workspace, names: Iterable[str]) -> None:
    root = workspace.root.resolve()
    for name in names:
        path = root / name
        if path.parent.resolve().is_relative_to(root) and not path.is_dir():
            path.unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long
        return False


def _row(folder: Path, *, installed: bool, port: int) -> dict[str, Any] | None:
    try:
        found = orjson.loads((folder / "manifest.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(found, dict):
        return None
    has_page = (folder / "ui" / "index.html").is_file()
    return {
        "id": folder.name,
        "name": str(found.get("name") or folder.name),
        **{key: str(found.get(key) or "") for key in ("description", "version", "category")},
        "installed": installed,
        "ui": f"http://localhost:{port}/rapps/{folder.name}/" if has_page else "",
    }
