"""The size of a workspace, and when anything in it was last touched."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from agents.contract.file_discovery import AGENT_SUFFIXES
from agents.storage.safe_walk import LinkFreeFolder, pass_over
from twins.errors import NoSuchTwinError


class DiskUsage(msgspec.Struct, frozen=True):
    """``bytes`` and ``files`` of everything, ``agents`` the agent files, ``touched`` Unix seconds."""

    bytes: int
    files: int
    agents: tuple[str, ...]
    touched: float

    def as_known(self) -> dict[str, Any]:
        """The usage as part of a record's ``last_known``."""
        return {
            "workspace_bytes": self.bytes,
            "workspace_files": self.files,
            "agents": list(self.agents),
        }


def measure(root: Path) -> DiskUsage:
    """Walks the workspace at ``root``; links are counted and never followed.

    What vanishes or cannot be read meanwhile is left out: the figures inform, nothing rests on them.
    Raises ``NoSuchTwinError`` when there is no such folder.
    """
    size = files = 0
    agents = []
    try:
        touched = root.stat().st_mtime
    except FileNotFoundError as error:
        raise NoSuchTwinError(f"{root.name[:16]} is not there any more.", do="rappd twins list") from error
    with suppress(OSError), LinkFreeFolder(root) as folder:
        for path, about in folder.walk(failed=pass_over):
            touched = max(touched, about.st_mtime)
            if stat.S_ISDIR(about.st_mode):
                continue
            size += about.st_size
            files += 1
            if path.endswith(AGENT_SUFFIXES) and path.startswith("agents/"):
                agents.append(path.rpartition("/")[2])
    return DiskUsage(size, files, tuple(sorted(agents)), touched)
