"""A whole workspace as the load of an egg: members at the root, the memory under ``data/``."""

from __future__ import annotations

import hashlib
import unicodedata
from contextlib import ExitStack
from pathlib import Path

from twins.eggs.frames import MEMBER, ConversationSource, encoded
from twins.eggs.writers import exclusions
from twins.eggs.writers.contents import EggContents, IsHeld
from twins.eggs.writers.env_blanking import MAX_BYTES as MAX_ENV_BYTES
from twins.eggs.writers.env_blanking import blanked
from twins.eggs.writers.exclusions import ExclusionReason
from twins.eggs.writers.source_tree import SourceTree
from twins.errors import NoSuchTwinError
from twins.fs.untrusted_names import folded
from twins.workspace.identity_file import FILE as IDENTITY
from twins.workspace.identity_file import MAX_BYTES as MAX_IDENTITY_BYTES
from twins.workspace.identity_file import Identity
from twins.workspace.workspace import Workspace

SOUL = "soul.md"
MEMORY = ".brainstem_data"
TOOLS = "tools"
QUICKSTART = "lan-quickstart.sh"
CODE_FOLDERS = ("agents", "services", "senses", "organs")

_PUBLISHED = frozenset({*CODE_FOLDERS, TOOLS, QUICKSTART})
_MEANT = frozenset({*CODE_FOLDERS, IDENTITY, SOUL, "utils", "rapps", "members.json", "neighbors.json"})
# Names at the root that some reader of eggs takes for something else.
_TAKEN = frozenset(
    {"data", "repo", "rapp_ui", "manifest.json", "integrity.json", "egg.json", "egg-manifest.json"}
)
_ENV = ".env"
_RECEIPT = "placed.json"


def whole_workspace(
    workspace: Workspace,
    open_trees: ExitStack,
    *,
    conversations: ConversationSource | None,
    exclude_memory: bool,
    published_only: bool = False,
    is_held: IsHeld | None = None,
    archived: bool = False,
) -> EggContents:
    """Everything that lives in a workspace. Its trees stay open as long as ``open_trees``.

    ``published_only`` leaves out what the organism egg has no place for, and takes the ``.env`` in, without
    its secrets, unless it is held. ``archived`` takes the record of an archived twin in.
    Raises ``NoSuchTwinError`` where nobody lives, ``BadFileError``.
    """
    tree = open_trees.enter_context(SourceTree(workspace.root))
    identity_file = tree.read(IDENTITY, MAX_IDENTITY_BYTES)
    if identity_file is None:
        raise NoSuchTwinError(
            "This workspace has no rappid.json, so nobody lives in it.", do="rappd twins list"
        )
    identity = Identity.decode(identity_file)
    load = EggContents(identity.name, identity)
    load.put(IDENTITY, identity_file)

    # Settings may have moved the soul and the agents; in an egg they are where everybody looks for them.
    agents, soul = _below(workspace.agents, workspace), _below(workspace.soul, workspace)
    passed_over = {IDENTITY, agents, soul}

    def verdict(path: str) -> ExclusionReason | None:
        if path in passed_over or (published_only and path == _ENV):
            return ExclusionReason.ELSEWHERE
        first, slash, rest = path.partition("/")
        if slash:
            deep = published_only and first == TOOLS and "/" in rest
            return _within(first, rest) or (ExclusionReason.NO_PLACE if deep else None)
        if first == MEMORY:
            return ExclusionReason.MEMORY if exclude_memory else None
        return _at_root(first, archived) or (
            ExclusionReason.NO_PLACE if published_only and first not in _PUBLISHED else None
        )

    load.put_folder(tree, "", verdict, _name)
    _put_soul(load, workspace.soul, soul, tree, open_trees)
    _put_agents(load, workspace, tree, open_trees)
    if published_only:
        env = tree.read(_ENV, MAX_ENV_BYTES)
        if (
            env is not None
            and is_held is not None
            and is_held(workspace.env_file, hashlib.sha256(env).hexdigest())
        ):
            load.leave(
                _ENV, ExclusionReason.HELD
            )  # blanked and signed by this home it would be another content
        elif env is not None:
            load.put(_ENV, blanked(env))
            load.leave(_ENV, ExclusionReason.BLANKED)
    if conversations is not None and not exclude_memory:
        _put_conversations(load, conversations, identity.rappid.key)
    return load


def in_nfc(load: EggContents) -> None:
    """Brings the members' names into the one form that RAPP/1 admits."""
    load.members = [one.named(unicodedata.normalize("NFC", one.name)) for one in load.members]


def _at_root(name: str, archived: bool) -> ExclusionReason | None:
    key = folded(name)
    # What is called Agents is the folder agents on some disks only; no reader takes it for that.
    misplaced = key in _TAKEN or key in ("agents", SOUL) or (key in _MEANT and key != name)
    return exclusions.at_root(name, archived=archived) or (ExclusionReason.NO_PLACE if misplaced else None)


def _within(first: str, rest: str) -> ExclusionReason | None:
    above, _, name = rest.rpartition("/")
    if first == MEMORY and not above:
        return exclusions.in_memory(name)
    if first in CODE_FOLDERS and not above:
        return exclusions.in_code(name)
    if first == "rapps" and name == _RECEIPT and above and "/" not in above:
        return ExclusionReason.LOCAL
    return exclusions.by_name(name)


def _name(path: str) -> str:
    return f"data{path[len(MEMORY) :]}" if path.startswith(f"{MEMORY}/") else path


def _put_soul(load: EggContents, path: Path, below: str, tree: SourceTree, open_trees: ExitStack) -> None:
    if below:
        load.put_file(SOUL, tree, below)
    elif path.parent.is_dir():
        load.put_file(SOUL, open_trees.enter_context(SourceTree(path.parent)), path.name)


def agents_of(workspace: Workspace, tree: SourceTree, open_trees: ExitStack) -> tuple[SourceTree, str]:
    """(tree, path in it) of the agents folder.

    One inside the workspace is reached without following links, one that settings name elsewhere is taken at
    its word. ``tree`` is the workspace's.
    """
    below = _below(workspace.agents, workspace)
    return (tree, below) if below else (open_trees.enter_context(SourceTree(workspace.agents)), "")


def _put_agents(load: EggContents, workspace: Workspace, tree: SourceTree, open_trees: ExitStack) -> None:
    if not workspace.agents.is_dir():
        return
    source, start = agents_of(workspace, tree, open_trees)
    prefix = f"{start}/" if start else ""

    def verdict(path: str) -> ExclusionReason | None:
        return _within("agents", path.removeprefix(prefix))

    load.put_folder(source, start, verdict, lambda path: f"agents/{path.removeprefix(prefix)}")


def _put_conversations(load: EggContents, conversations: ConversationSource, key: str) -> None:
    if next(iter(conversations.frames(key)), None) is None:
        return
    if load.holds(MEMBER):
        load.members = [one for one in load.members if one.name != MEMBER]
        load.leave(f"{MEMORY}/frames.json", ExclusionReason.NO_PLACE)
    load.put_stream(MEMBER, lambda: encoded(conversations.frames(key)))


def _below(path: Path, workspace: Workspace) -> str:
    """The path below the workspace's root; "" when it lies elsewhere."""
    try:
        found = path.relative_to(workspace.root).as_posix()
    except ValueError:
        return ""
    return "" if found == "." or ".." in found.split("/") else found
