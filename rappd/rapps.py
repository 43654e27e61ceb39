"""Rapplications in a workspace: installing is dropping files, uninstalling is deleting them (§18.8)."""

from __future__ import annotations

import asyncio
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


def listing(workspace: Workspace, port: int) -> list[dict[str, Any]]:
    """Shipped and installed rapplications, by id."""
    rows: dict[str, dict[str, Any]] = {}
    for folder in sorted(SHIPPED.iterdir()):
        if (folder / "manifest.json").is_file():
            rows[folder.name] = _row(folder / "manifest.json", installed=False, port=port)
    if workspace.rapps.is_dir():
        for folder in sorted(workspace.rapps.iterdir()):
            if (folder / "manifest.json").is_file():
                rows[folder.name] = _row(folder / "manifest.json", installed=True, port=port)
    return [rows[name] for name in sorted(rows)]


async def install(tenant: Tenant, name: str) -> dict[str, Any]:
    """Installs a shipped rapplication by id, or a bundle by path. The whole is checked before the first write."""
    path = Path(name) if "/" in name else SHIPPED / name
    if not await asyncio.to_thread(path.exists):
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
    folder = tenant.workspace.rapps / name
    if "/" in name or name.startswith(".") or not await asyncio.to_thread((folder / "placed.json").is_file):
        raise NotFound(f'No rapplication "{name[:120]}" is installed.', do="rappd rapps list")
    await asyncio.to_thread(_take_away, tenant.workspace, folder)
    return {"status": "ok", "id": name, "message": f"{name} is uninstalled. What it remembered stays."}


def _place(workspace: Workspace, rapp: Rapplication) -> None:
    root = workspace.root
    receipt = workspace.rapps / rapp.id / "placed.json"
    ours = set(orjson.loads(receipt.read_bytes())) if receipt.exists() else set()
    for file in rapp.files:
        if (root / file.path).exists() and file.path not in ours:
            raise Conflict(f"{file.path} exists already and is not {rapp.id}'s.", do="Move it away first.")
    for file in rapp.files:
        write_atomically(root / file.path, file.content)
    write_atomically(receipt, orjson.dumps([file.path for file in rapp.files]))


def _take_away(workspace: Workspace, folder: Path) -> None:
    placed = orjson.loads((folder / "placed.json").read_bytes())
    for name in placed:
        path = (workspace.root / name).resolve()
        if path.is_relative_to(workspace.root.resolve()):
            path.unlink(missing_ok=True)
    (folder / "placed.json").unlink()
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
    folder.rmdir()


def _row(manifest: Path, *, installed: bool, port: int) -> dict[str, Any]:
    found = orjson.loads(manifest.read_bytes())
    return {
        "id": found["id"],
        "name": found["name"],
        "description": found.get("description", ""),
        "version": found.get("version", ""),
        "category": found.get("category", ""),
        "installed": installed,
        "ui": f"http://localhost:{port}/rapps/{found['id']}/" if found.get("ui") else "",
    }
