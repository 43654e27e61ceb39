"""Quarantined files that the owner refused: out of their places, and kept so that a refusal can be undone."""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path, PurePosixPath

from twins.errors import BadFileError, NoSuchFileError
from twins.trust.quarantine import QuarantineList
from twins.workspace.agent_files import sha256
from twins.workspace.workspace import Workspace

PREFIX = "refused-"
_TOKEN = re.compile(rf"{PREFIX}\d+-[0-9a-f]{{12}}")
_AGENTS = "agents/"
_MOST_PATH = 4096


class RefusedFiles:
    """The refused files of one workspace. ``held`` still binds what is brought back: it waits again, and does not run."""

    def __init__(self, workspace: Workspace, held: QuarantineList) -> None:
        self._workspace, self._held = workspace, held
        self._files = workspace.files

    def put_aside(self, path: str) -> str:
        """Takes the file at ``path`` (relative to the workspace) out of its place; returns the token for ``bring_back``."""
        place = self._place(path)
        digest = sha256(self._files.read(place))
        entry = self._held.entry(place, digest)
        if entry is not None and not self._held.knows(place, digest):  # one that was changed on disk
            self._held.hold_all([entry])
        token = f"{PREFIX}{int(time.time())}-{secrets.token_hex(6)}"
        folder = self._folder(token)
        self._files.write_durably(folder / "path", path.encode())
        self._files.rename(place, folder / "file")
        return token

    def bring_back(self, token: str) -> str:
        """Puts a refused file back, quarantined as it was; returns its path.

        Raises ``NoSuchFileError`` for an unknown token or a file that is not quarantined as it lies there,
        ``BadFileError`` when another file has its place.
        """
        folder = self._folder(token)
        if not _TOKEN.fullmatch(token) or not self._files.is_file(folder / "file"):
            raise NoSuchFileError("That cannot be brought back any more.", do="Open the egg again.")
        path = self._files.read(folder / "path", _MOST_PATH).decode("utf-8", "replace")
        place = self._place(path)
        if not self._held.knows(place, sha256(self._files.read(folder / "file"))):
            raise NoSuchFileError("That was changed since it was refused.", do="Open the egg again.")
        if self._files.exists(place):
            raise BadFileError(
                f"{path} exists again; the refused one stays kept.", do="Remove the new one first."
            )
        self._files.rename(folder / "file", place)
        return path

    def _folder(self, token: str) -> Path:
        return self._workspace.kept / "refused" / token

    def _place(self, path: str) -> Path:
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/"):
            raise BadFileError(f'"{path[:80]}" is not in this workspace.', do="")
        if path.startswith(_AGENTS):
            return self._workspace.agents / path.removeprefix(_AGENTS)
        return self._workspace.root / path
