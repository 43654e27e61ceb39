"""The files of workspaces that wait for the owner's approval, by their names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from twins.errors import AmbiguousFileError
from twins.trust.quarantine import QuarantineList
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


def held_files(held: QuarantineList, workspace: Workspace) -> list[QuarantinedFile]:
    """Everything held in a workspace, by path. Raises ``BadFileError`` when the list is damaged."""
    found: dict[str, QuarantinedFile] = {}
    for folder, prefix in ((workspace.root, ""), (workspace.agents, "agents/")):
        key = held.key_of(folder)
        for one in held.listing(folder):
            below = one.path[len(key) + 1 :]
            found[one.path] = QuarantinedFile(
                prefix + below, folder / below, one.sha256, one.why, one.origin, one.at
            )
    return sorted(found.values())


def held_everywhere(
    held: QuarantineList, host: Workspace, layout: TwinLayout
) -> list[tuple[Twin | None, list[QuarantinedFile]]]:
    """The held files of the brainstem (None) and of each twin that has some. Raises ``BadFileError``."""
    if not held.listing():
        return []
    workspaces = [(None, host), *((twin, twin.workspace) for twin in scan(layout).twins)]
    found = [(twin, held_files(held, workspace)) for twin, workspace in workspaces]
    return [(twin, files) for twin, files in found if files]


def named(files: Iterable[QuarantinedFile], name: str) -> QuarantinedFile | None:
    """The one that ``name`` means; None for none. Raises ``AmbiguousFileError``."""
    files = list(files)
    exact = [one for one in files if name in (one.path, one.path.removeprefix("agents/"))]
    short = [one for one in files if one.file.name in {name + ending for ending in _ENDINGS}]
    meant = exact or short
    if len(meant) > 1:
        raise AmbiguousFileError(
            f'"{name[:80]}" fits several files: {", ".join(one.path for one in meant[:4])}.',
            do="Type its folder, too.",
        )
    return meant[0] if meant else None
