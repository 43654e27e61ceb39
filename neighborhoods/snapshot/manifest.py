"""The manifest of a neighborhood snapshot, key by key as published (``rapp-egg/2.0``, scale neighborhood)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

import msgspec

SCHEMA: Final = "rapp-egg/2.0"
SCALE: Final = "neighborhood"
CREATED_BY: Final = "NeighborhoodSnapshot"
MAX_TWIN_BYTES: Final = 50_000_000
ALLOWLIST: Final = ("rappid.json", "estate.json", "self_healing_cron_state.json", "peers/**")
DENYLIST: Final = (
    *("private-estate-secret", "private-estate-map.json", "keys/", "venv/", "src/", "logs/"),
    *("brainstem.log", "lifecycle.log"),
)
CORE_FILES: Final = (
    *("brainstem.py", "local_storage.py", "port.py", "__init__.py", "VERSION", "requirements-brainstem.txt"),
)
"""Kernel files that a published brainstem has beside its agents."""

OVERSIZE, UNREADABLE, UNSTABLE, TAR_FAILED = "oversize", "unreadable", "unstable", "tar_failed"
NOT_WANTED = "not wanted"
"""Values of a twin's ``reason`` when it was not captured."""


class SnapshotOptions(msgspec.Struct, frozen=True):
    """The options of a snapshot, recorded in its manifest under these names."""

    include_twin_workspaces: bool = True
    include_stopped_twins: bool = True
    include_brainstem_core: bool = True
    include_brainstem_data: bool = True
    include_global_state: bool = True
    include_archived: bool = False
    max_twin_bytes: int = MAX_TWIN_BYTES
    global_state_allowlist: tuple[str, ...] = ALLOWLIST
    global_state_denylist: tuple[str, ...] = DENYLIST


def default_name(at: datetime) -> str:
    """The name of a snapshot that was given none."""
    return f"neighborhood-{at:%Y%m%d-%H%M%S}"


def manifest(
    name: str, at: datetime, machine: str, options: SnapshotOptions, members: dict[str, Any]
) -> dict[str, Any]:
    """The whole manifest. ``at`` carries its offset; ``members`` has ``local`` and ``peers``."""
    return {
        "schema": SCHEMA,
        "scale": SCALE,
        "name": name,
        "snapshotted_at": at.isoformat(timespec="seconds"),
        "snapshotted_from": machine,
        "created_by": CREATED_BY,
        "members": members,
        "options": msgspec.to_builtins(options),
    }


def peer_folders(names: list[str]) -> list[str]:
    """The folder of each peer in the egg: its name, unsafe characters as ``_``, a number where two would be one."""
    folders: list[str] = []
    used_names: set[str] = set()
    numbers: dict[str, int] = {}  # the last one given: thousands of one name are counted once
    for name in names:
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name[:200]).lstrip(".")[:100] or "_"
        folder, number = safe, numbers.get(safe.lower(), 1)
        while folder.lower() in used_names:
            number += 1
            folder = f"{safe}_{number}"
        numbers[safe.lower()] = number
        used_names.add(folder.lower())
        folders.append(folder)
    return folders
