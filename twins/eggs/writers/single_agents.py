"""One agent out of a workspace as the load of an egg."""

from __future__ import annotations

from contextlib import ExitStack

from agents.contract.file_discovery import SUFFIX
from twins.eggs.writers import exclusions
from twins.eggs.writers.contents import Load
from twins.eggs.writers.workspaces import agents_of
from twins.errors import HostileEgg, NoSuchFile
from twins.fs.source_tree import Tree
from twins.workspace.workspace import Workspace
from twins.zip.names import safe_path


def one_agent(workspace: Workspace, filename: str, held: ExitStack) -> Load:
    """A single agent file, at the root of its egg. ``filename`` is its path below the agents folder.

    Raises ``NoSuchFile``, for files that never travel too.
    """
    tree, folder = agents_of(workspace, held.enter_context(Tree(workspace.root)), held)
    name = filename.rpartition("/")[2]
    load = Load(name.removesuffix(".py"), facts={"agent_filename": name})
    path = f"{folder}/{filename}".lstrip("/")
    if not _may_travel(filename) or not load.put_file(name, tree, path, shown_as=f"agents/{filename}"):
        raise NoSuchFile(f'No agent file "{filename[:80]}".', do="rappd agents list")
    return load


def _may_travel(filename: str) -> bool:
    try:
        safe_path(filename)
    except HostileEgg:
        return False
    return filename.endswith(SUFFIX) and not any(map(exclusions.in_code, filename.split("/")))
