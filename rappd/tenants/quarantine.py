"""The quarantine as one workspace meets it: asked of by the daemon, told to its workers with every request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from twins.errors import BadFileError
from twins.installer.quarantine import QuarantineList
from twins.workspace.workspace import Workspace

_DAMAGED = object()


class Quarantine:
    """The quarantined files of one workspace. Workers cannot read the list; each request carries it."""

    def __init__(self, held: QuarantineList, workspace: Workspace) -> None:
        self._held = held
        self._folders = (workspace.root, workspace.agents)
        self._seen: Mapping[str, Mapping[str, str]] | None = None
        self._standing: dict[str, Any] = {}

    def look(self) -> object:
        """Reads anew what is held, for workers too; another object when that changed. Blocks on the disk."""
        try:
            found = self._held.below(*self._folders)
        except BadFileError:
            return _DAMAGED  # nothing of the workspace is served now; workers go by what they were told
        if found is not self._seen:
            self._standing = {"held": orjson.Fragment(orjson.dumps(found))} if found else {}
            self._seen = found
        return found

    def reason(self, path: Path, sha256: str) -> str:
        """Returns the reason why the file must not run with the content of that hash; "" when it may.

        A list that cannot be read lets nothing run.
        """
        try:
            return self._held.why(path, sha256)
        except BadFileError as problem:
            return str(problem)

    def standing(self) -> Mapping[str, Any]:
        """Returns the fields that every request to a worker carries; empty when nothing is quarantined."""
        return self._standing
