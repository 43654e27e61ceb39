"""Links in places of a workspace that the daemon reads or writes, and does not follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from agents.contract.file_discovery import SKIPPED_FOLDERS
from twins.workspace.workspace import TwinLayout, Workspace

MAX_LINKS = 20
"""So many links of one workspace are named."""

_FOLDERS = ("services", "organs", "senses", "rapps", ".remote_agents", ".brainstem_data/kept")
_FILES = (
    ".env",
    "voice.zip",
    "rappid.json",
    "bonds.json",
    ".repos.json",
    ".deps",
    ".brainstem_data",
    ".brainstem_data/soul_history",
    ".brainstem_data/buddy.json",
)


class RefusedLink(msgspec.Struct, frozen=True):
    """One link that is not followed: its path, the path that it holds, and what to do about it."""

    path: Path
    target: str
    do: str

    @property
    def text(self) -> str:
        """The link, and that it is not followed, in one line."""
        return f"{self.path} is a link to {self.target}, and links in a workspace are not followed"


def refused_links(workspace: Workspace, *, is_host: bool = False) -> list[RefusedLink]:
    """The links of a workspace that the daemon would have to follow, ``MAX_LINKS`` at most.

    ``is_host``: settings can name another place for its soul and its agents. Blocks on the disk.
    """
    found: list[RefusedLink] = []
    for path in _places_of_links(workspace):
        try:
            target = workspace.files.link_target(path)
        except OSError:  # it went away meanwhile
            continue
        found.append(RefusedLink(path, target, _advice(workspace, path, target, is_host=is_host)))
        if len(found) == MAX_LINKS:
            break
    return found


def refused_links_of_home(home: Path, host: Workspace) -> Iterator[RefusedLink]:
    """The same for the brainstem and every active twin of a home."""
    yield from refused_links(host, is_host=True)
    places = TwinLayout(home)
    try:
        keys = sorted(path.name for path in places.twins.iterdir() if not path.name.startswith("."))
    except OSError:
        return
    for key in keys:
        yield from refused_links(Workspace.at(places.twins / key))


def _places_of_links(workspace: Workspace) -> Iterator[Path]:
    files = workspace.files
    for path in (workspace.soul, *(workspace.root / name for name in _FILES)):
        yield from (path for _ in [0] if files.links(path) == [""])
    for folder in (workspace.agents, *(workspace.root / name for name in _FOLDERS)):
        yield from (folder / rel if rel else folder for rel in files.links(folder, _is_looked_at))


def _is_looked_at(name: str) -> bool:
    return name not in SKIPPED_FOLDERS


def _advice(workspace: Workspace, path: Path, target: str, *, is_host: bool) -> str:
    where = path.parent / target
    if is_host and path == workspace.soul:
        return f"Put the text itself there, or: rappd config set soul_path {where}"
    if is_host and path == workspace.agents:
        return f"Put the folder itself there, or: rappd config set agents_path {where}"
    return "Put what it points at in its place, or remove the link if it is not yours."
