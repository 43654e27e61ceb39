"""Code that may change structure: files whose exact bytes the owner approved, by SHA-256, in ``$RAPP_HOME/approved.json``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson

from agents.storage.atomic_write import write_atomically
from twins.errors import BadFileError
from twins.trust.quarantine import CachedFile
from twins.workspace.workspace import exclusive_lock


class Approvals:
    """The file of approvals. No worker can write where it lies, so that no agent approves itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: CachedFile[dict[str, Any]] = CachedFile(path, _decode, dict)

    def covers(self, digest: str) -> bool:
        """True when files of that SHA-256 may change structure. Raises ``BadFileError`` when the file is damaged."""
        return digest in self._file.content()

    def add(self, filename: str, digest: str) -> None:
        """Remembers the owner's approval of exactly these bytes."""
        with exclusive_lock(self._path.parent):
            known = {**self._file.content(), digest: {"file": filename, "at": int(time.time())}}
            write_atomically(self._path, orjson.dumps(known, option=orjson.OPT_INDENT_2))
            self._file.forget()


def _decode(content: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise BadFileError(
            "approved.json is damaged; no approval counts until it is whole.", do="Restore it from a backup."
        )
    return found
