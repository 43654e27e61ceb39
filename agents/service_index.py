"""Which file answers under which service name, for the daemon: read from the text, nothing is run."""

from __future__ import annotations

from pathlib import Path

from agents.discovery import Stamp, find_service_files
from agents.services import service_name
from agents.storage.safe_fs import SafeTree


class ServiceIndex:
    """Names of the services in some folders. A file is read again when its stamp changed."""

    def __init__(self, files: SafeTree, *folders: Path) -> None:
        """Of two folders, the later counts for more. ``files`` is the tree that they are in."""
        self._files = files
        self._folders = folders
        self._names: dict[Path, tuple[Stamp, str]] = {}

    def find(self, name: str) -> Path | None:
        """The file of the service called ``name``; of two that claim it, the later by path. Blocks on the disk."""
        found = None
        for file in [file for folder in self._folders for file in find_service_files(folder, self._files)]:
            known = self._names.get(file.path)
            if known is None or known[0] != file.stamp:
                earlier = known[1] if known else ""
                known = self._names[file.path] = (
                    file.stamp,
                    service_name(file.path, unless=earlier, files=self._files),
                )
            if known[1] == name:
                found = file.path
        return found
