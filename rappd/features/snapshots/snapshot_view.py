"""One snapshot as screens and agents show it: its machines, their twins, and whether it can be restored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from neighborhoods.snapshot.contents import SnapshotContents
from neighborhoods.snapshot.snapshot_folder import SnapshotRecord


def snapshot_view(
    path: Path, record: SnapshotRecord | None, signer_name: Callable[[str], str]
) -> dict[str, Any]:
    """Reads and checks the whole egg. Raises what ``SnapshotContents.open`` raises. Blocks on the disk."""
    contents = SnapshotContents.open(path)
    with contents.opened as opened:
        members = opened.manifest["members"]
        local = members.get("local", {}) if isinstance(members, dict) else {}
        here = {
            "name": str(local.get("host") or opened.manifest.get("snapshotted_from") or ""),
            "self": True,
            "twins": [
                {"hash": unit.key, "name": unit.name, "archived": unit.is_archived, "captured": True}
                for unit in contents.local
                if unit.kind == "twin"
            ],
        }
        others = [
            {
                "name": block.name,
                "self": False,
                "twins": [
                    {
                        "hash": twin.hash,
                        "name": twin.name,
                        "archived": twin.is_archived,
                        "captured": twin.part is not None,
                        **({"reason": twin.reason} if twin.part is None else {}),
                    }
                    for twin in block.twins
                ],
            }
            for block in contents.peers
        ]
        return {
            "snapshot": {
                "name": opened.name,
                "file": opened.file,
                "path": str(path),
                "size": opened.size,
                "sha256": opened.digest,
                "packed_at": opened.packed_at,
                "whole": opened.seal.whole is True,
                "signer": opened.seal.signer,
                "signer_name": signer_name(opened.seal.signer),
                "machines": [here, *others],
                "missing": list(record.missing) if record else [],
                "restorable": bool(record and record.drill and record.drill.passed),
                "drill": record.as_json()["drill"] if record else None,
            }
        }


def writes_elsewhere(plan: dict[str, Any]) -> bool:
    """True when this plan, as JSON, would write twins or agents to another machine: only after a yes to it."""
    return plan["target"] == "in-place" and any(
        step["action"] in ("create", "overwrite")
        for peer in plan["peers"]
        for step in (*peer["twins"], *peer["agents"])
    )
