"""One agent out of a workspace as the load of an egg."""

from __future__ import annotations

from contextlib import ExitStack

from agents.contract.file_discovery import SUFFIX
from twins.eggs.writers import exclusions
from twins.eggs.writers.contents import EggContents
from twins.eggs.writers.workspaces import agents_of
from twins.errors import HostileEggError, NoSuchFileError
from twins.fs.source_tree import SourceTree
from twins.workspace.workspace import Workspace
from twins.zip.names import safe_path


def one_agent(workspace: Workspace, filename: str, held: ExitStack) -> EggContents:
    """A single agent file, at the root of its egg. ``filename`` is its path below the agents folder.

    Raises ``NoSuchFileError``, for files that never travel too.
    """
    tree, folder = agents_of(workspace, held.enter_context(SourceTree(workspace.root)), held)
    name = filename.rpartition("/")[2]
    load = EggContents(name.removesuffix(".py"), facts={"agent_filename": name})
    path = f"{folder}/{filename}".lstrip("/")
    if not _may_travel(filename) or not load.put_file(name, tree, path, shown_as=f"agents/{filename}"):
        raise NoSuchFileError(f'No agent file "{filename[:80]}".', do="rappd agents list")
    return load


def _may_travel(filename: str) -> bool:
    try:
        safe_path(filename)
    except HostileEggError:
        return False
    return filename.endswith(SUFFIX) and not any(map(exclusions.in_code, filename.split("/")))
