"""Maps service names to files, for the daemon: read from the text, nothing is run."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from agents.contract.file_discovery import SERVICE_SUFFIXES, Stamp, find_service_files
from agents.runtime.services import ServiceFault, inspect_service
from agents.storage.safe_fs import SafeTree


class ServiceIndex:
    """Names of the services in some folders. A file is read again when its stamp changed."""

    def __init__(self, files: SafeTree, *folders: Path) -> None:
        """Of two folders, the later counts for more. ``files`` is the tree that they are in."""
        self._files = files
        self._folders = folders
        self._known: dict[Path, tuple[Stamp, str, ServiceFault | None]] = {}

    def find(self, name: str) -> Path | None:
        """The file of the service called ``name``; of two that claim it, the later by path. Blocks on the disk.

        A file that cannot be parsed keeps its earlier name, or goes by its file name: others stay reachable.
        """
        found = None
        for path, called, _ in self._look():
            if called == name:
                found = path
        return found

    def faults(self) -> list[ServiceFault]:
        """Files that cannot be used as they are, by path. Blocks on the disk."""
        parsed = [fault for _, _, fault in self._look() if fault is not None]
        irregular = [fault for folder in self._folders for fault in _irregular(self._files, folder)]
        return sorted({fault.path: fault for fault in (*parsed, *irregular)}.values())

    def _look(self) -> Iterator[tuple[Path, str, ServiceFault | None]]:
        for file in [file for folder in self._folders for file in find_service_files(folder, self._files)]:
            known = self._known.get(file.path)
            if known is None or known[0] != file.stamp:
                earlier = known[1] if known else ""
                found = inspect_service(file.path, unless=earlier, files=self._files)
                known = self._known[file.path] = (file.stamp, *found)
            yield file.path, known[1], known[2]


def _irregular(files: SafeTree, folder: Path) -> Iterator[ServiceFault]:
    """Entries with a service's file name that are no files: they are not served."""
    for name, mode in files.modes(folder):
        if name.endswith(SERVICE_SUFFIXES) and not name.startswith(".") and not stat.S_ISREG(mode):
            kind = (
                "a link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
            )
            yield ServiceFault(folder / name, f"it is {kind}, not a file")
