"""The files of workspaces that wait for the owner's approval, by their names; refused ones are kept where they can be brought back from."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from twins.errors import BadFileError, NoSuchFileError, TwinError
from twins.trust.quarantine import QuarantineList
from twins.workspace.agent_files import sha256
from twins.workspace.listing import scan
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

_ENDINGS = ("", ".py", "_agent.py", "_listener.py", "_service.py", "_organ.py", "_agent.lispy")


class QuarantinedFile(NamedTuple):
    """One file that waits for approval. ``path`` is relative to the workspace, ``file`` its place on disk."""

    path: str
    file: Path
    sha256: str
    why: str
    origin: str
    at: str


def held_files(quarantine: QuarantineList, workspace: Workspace) -> list[QuarantinedFile]:
    """Everything held in a workspace, by path. Raises ``BadFileError`` when the list is damaged."""
    found: dict[str, QuarantinedFile] = {}
    for folder, prefix in ((workspace.root, ""), (workspace.agents, "agents/")):
        key = quarantine.key_of(folder)
        for one in quarantine.listing(folder):
            below = one.path[len(key) + 1 :]
            found[one.path] = QuarantinedFile(
                prefix + below, folder / below, one.sha256, one.why, one.origin, one.at
            )
    return sorted(found.values())


def held_everywhere(
    quarantine: QuarantineList, host: Workspace, layout: TwinLayout
) -> list[tuple[Twin | None, list[QuarantinedFile]]]:
    """The held files of the brainstem (None) and of each twin that has some. Raises ``BadFileError``."""
    if not quarantine.listing():
        return []
    workspaces = [(None, host), *((twin, twin.workspace) for twin in scan(layout).twins)]
    found = [(twin, held_files(quarantine, workspace)) for twin, workspace in workspaces]
    return [(twin, files) for twin, files in found if files]


def named(files: Iterable[QuarantinedFile], name: str) -> QuarantinedFile | None:
    """The one that ``name`` means; None for none. Raises ``ambiguous``."""
    files = list(files)
    exact = [one for one in files if name in (one.path, one.path.removeprefix("agents/"))]
    short = [one for one in files if one.file.name in {name + ending for ending in _ENDINGS}]
    meant = exact or short
    if len(meant) > 1:
        raise TwinError(
            f'"{name[:80]}" fits several files: {", ".join(one.path for one in meant[:4])}.',
            do="Type its folder, too.",
            code="ambiguous",
        )
    return meant[0] if meant else None


PREFIX = "refused-"
_TOKEN = re.compile(rf"{PREFIX}\d+-[0-9a-f]{{12}}")
_AGENTS = "agents/"
_MOST_PATH = 4096


class RefusedFiles:
    """The refused files of one workspace. ``quarantine`` still binds what is brought back: it waits again, and does not run."""

    def __init__(self, workspace: Workspace, quarantine: QuarantineList) -> None:
        self._workspace, self._quarantine = workspace, quarantine
        self._files = workspace.files

    def put_aside(self, path: str) -> str:
        """Takes the file at ``path`` (relative to the workspace) out of its place; returns the token for ``bring_back``."""
        place = self._place(path)
        digest = sha256(self._files.read(place))
        entry = self._quarantine.entry(place, digest)
        if entry is not None and not self._quarantine.knows(place, digest):  # one that was changed on disk
            self._quarantine.hold_all([entry])
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
        if not self._quarantine.knows(place, sha256(self._files.read(folder / "file"))):
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
