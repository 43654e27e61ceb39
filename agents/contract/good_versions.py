"""Copies of the last good version of each agent file, which work on while the file has a fault, also after a restart."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from agents.contract.may_run import Origin
from agents.storage.safe_fs import SafeTree

log = logging.getLogger(__name__)


class GoodVersions:
    """The copies of a workspace, below ``kept``. All methods block on the disk."""

    def __init__(self, files: SafeTree, kept: Path) -> None:
        self._files = files
        self._kept = kept

    def newest(self, origin: Origin, rel: str) -> Path:
        """The newest copy of a file, which need not be there."""
        folder = self._folder(origin, rel)
        found = self._files.files(folder, lambda name: name.endswith(".py"), lambda _: False)
        newest = max(found, key=lambda one: one[1].st_mtime_ns, default=None)
        return folder / newest[0] if newest else _single(folder)

    def keep(self, origin: Origin, rel: str, sha256: str, content: bytes) -> str:
        """The path of a copy of this version, "" for none. The one before stays: a call of it may have begun."""
        folder = self._folder(origin, rel)
        target = folder / f"{sha256[:16]}.py"
        stay = {target.name, self.newest(origin, rel).name}
        try:
            self._files.write_unsynced(target, content)
            for name in self._files.names(folder):
                if name not in stay:
                    self._files.remove(folder / name, missing_ok=True)
            self._files.remove(_single(folder), missing_ok=True)
        except OSError as error:
            log.warning("no copy of %s kept: %s", rel, error)
            return ""
        return str(target)

    def _folder(self, origin: Origin, rel: str) -> Path:
        return self._kept / hashlib.sha256(f"{origin}\n{rel}".encode()).hexdigest()[:16]


def _single(folder: Path) -> Path:
    """The only copy of a file, as earlier versions of rappd kept it."""
    return folder.with_suffix(".py")
