"""Placement of an egg in a home: the folder that it hatches into, and the rules for its files there.

The folder is checked for the twin that is there already. The rules say which places are allowed, which
files are code, and which may be overwritten.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path

import msgspec

from agents.storage.safe_walk import FileKind, LinkFreeFolder
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role
from twins.eggs.readers.workspace_paths import decides, is_code, is_workflow
from twins.errors import BadEggError, BadFileError, BadRappidError, HostileEggError, TwinConflictError
from twins.fs.untrusted_names import folded, safe_component, why_not_portable
from twins.workspace.bonds import FILE as BONDS_FILE
from twins.workspace.identity_file import FILE as IDENTITY_FILE
from twins.workspace.identity_file import Identity
from twins.workspace.rappid import Rappid, same
from twins.workspace.workspace import DEFAULT_SOUL, TwinLayout, Workspace
from twins.workspace.workspace_env import MAX_BYTES as MAX_ENV_BYTES

RECEIPT_FILE = "HATCH_RECEIPT.json"
MAX_CODE_BYTES = 5 << 20

INERT_FOLDERS = {
    "swarm": "swarms",
    "factory": "factories",
    "industry": "industries",
    "estate": "estates",
    "neighborhood": "neighborhoods",
    "cubby": "cubbies",
    "organism": "organisms",
}
"""Kind of an egg to the folder of the home that keeps such eggs as data."""

_KEY = re.compile(r"[0-9a-z](?:[0-9A-Za-z._@-]{0,198}[0-9A-Za-z_-])?")
_TAIL = re.compile(r"[0-9a-f]{8,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class InstallTarget(msgspec.Struct, frozen=True):
    """The folder that an egg hatches into.

    ``new``: nothing is there yet, and the whole folder comes by one rename. A host workspace never comes
    whole, since it would go whole in a rollback. ``moved``: the parts of
    a host workspace that settings put elsewhere, by the first component of their path.
    """

    root: Path
    new: bool
    moved: dict[str, Path] = msgspec.field(default_factory=dict)
    identity: Identity | None = None
    """The twin there."""

    def locate(self, target: str) -> tuple[Path, str]:
        """(base folder, path below it) of a target."""
        first, slash, rest = target.partition("/")
        elsewhere = self.moved.get(first)
        if elsewhere is None:
            return self.root, target
        return (elsewhere, rest) if slash else (elsewhere.parent, elsewhere.name)


def install_target(opened: ParsedEgg, home: Path, host: Workspace) -> InstallTarget:
    """The ground for an egg, after every check that needs no look at single files.

    Raises ``HostileEggError``, ``BadEggError``, and ``TwinConflictError`` when who lives (or lived) there is in the way.
    """
    match opened.destination:
        case Destination.TWIN:
            return _twin_ground(opened, TwinLayout(home))
        case Destination.HOST:
            return _host_ground(host)
        case Destination.BRAINSTEM:
            return _empty_brainstem(host)
        case Destination.INERT:
            return _inert_ground(opened, home)
        case _:
            raise BadEggError(opened.answer or f"{opened.name} hatches nowhere.", do="")


def lives_at(walk: LinkFreeFolder) -> Identity | None:
    """The identity of a folder; None when it has no ``rappid.json``. Raises ``BadFileError`` for a damaged one."""
    if walk.find(IDENTITY_FILE).kind is not FileKind.FILE:
        return None
    content = walk.content(IDENTITY_FILE)
    return Identity.decode(content, where=f"{walk.base.name[:16]}/{IDENTITY_FILE}")


def _twin_ground(opened: ParsedEgg, places: TwinLayout) -> InstallTarget:
    rappid = opened.rappid
    if rappid is None:
        raise BadEggError(f"{opened.name} does not say who it is; nothing was written.", do="Get it again.")
    if opened.key != rappid.key or not _KEY.fullmatch(opened.key):
        raise HostileEggError("This egg names a folder that is not its own; refused whole", do="don't use it")
    archived = _places_of(rappid, places.archive)
    active = _places_of(rappid, places.twins)
    goes_to_archive = opened.folder.startswith(f"twins/{places.archive.name}/")
    if _places_of(rappid, places.purged, suffix=".json"):
        raise TwinConflictError(
            f"{opened.name} was purged here and stays gone; nothing was written.",
            do="Hatch it in another home: RAPP_HOME=… rappd egg hatch FILE",
        )
    if goes_to_archive and active:
        raise TwinConflictError(
            f"{opened.name} is active here and does not go to the archive.", do="rappd twins list"
        )
    if archived and not goes_to_archive:
        raise TwinConflictError(
            f"{opened.name} is archived here; nothing was written.",
            do=f"rappd twins unarchive {opened.key[:12]}",
        )
    found, above = (archived, places.archive) if goes_to_archive else (active, places.twins)
    if len(found) > 1:
        raise TwinConflictError(
            f"{opened.name} lives here twice, as {found[0][:16]} and {found[1][:16]}.",
            do="Archive one of them.",
        )
    return _inhabited(opened, Path(os.path.realpath(above)) / (found[0] if found else opened.key), rappid)


def _inhabited(opened: ParsedEgg, root: Path, rappid: Rappid) -> InstallTarget:
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise TwinConflictError(
            f"{root.name[:16]} is in the way and is no twin's folder.", do="Move it away first."
        )
    if not root.exists() or not any(root.iterdir()):
        return InstallTarget(root, new=True)
    with LinkFreeFolder(root) as walk:
        try:
            there = lives_at(walk)
        except BadFileError as error:
            raise TwinConflictError(f"{error} Nothing was written.", do=error.do) from error
    if there is None:
        raise TwinConflictError(
            f"{root.name[:16]} is there already and holds no twin; nothing was written.",
            do="Move it away first.",
        )
    if not same(there.rappid, rappid):
        raise TwinConflictError(
            f"{there.name} lives at {root.name[:16]} and is somebody else than {opened.name}; nothing was written.",
            do="rappd twins list",
        )
    return InstallTarget(root, new=False, identity=there)


def _places_of(rappid: Rappid, folder: Path, *, suffix: str = "") -> list[str]:
    """Names in ``folder`` that belong to this identity, whatever form of the rappid gave them."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith(suffix))
    return [name for name in names if _is_tail_of(rappid, name.removesuffix(suffix).lower())]


def _is_tail_of(rappid: Rappid, name: str) -> bool:
    if name == rappid.key:
        return True
    try:
        return bool(_TAIL.fullmatch(name)) and same(Rappid.parse(f"rappid:{name}"), rappid)
    except BadRappidError:
        return False


def _host_ground(host: Workspace) -> InstallTarget:
    root = Path(os.path.realpath(host.root))
    moved = {
        name: Path(os.path.realpath(path.parent)) / path.name
        if name == "soul.md"
        else Path(os.path.realpath(path))
        for name, path in (("agents", host.agents), ("soul.md", host.soul))
        if path != host.root / name
    }
    if root.exists() and not root.is_dir():
        raise TwinConflictError(f"{root.name} is in the way and is no folder.", do="Move it away first.")
    return InstallTarget(root, False, moved)


def _empty_brainstem(host: Workspace) -> InstallTarget:
    ground = _host_ground(host)
    with LinkFreeFolder(ground.root) as walk:
        there = walk.files() if ground.root.exists() else []
        untouched = not ground.moved and all(
            path == "soul.md" and walk.content(path) == DEFAULT_SOUL.encode() for path in there
        )
    if not untouched:
        raise TwinConflictError(
            "A brainstem lives in this home already; nothing was written.",
            do="Hatch it into an empty home: RAPP_HOME=… rappd egg hatch FILE",
        )
    return InstallTarget(ground.root, new=not there and not _has_folders(ground.root))


def _has_folders(root: Path) -> bool:
    return root.exists() and any(root.iterdir())


def _inert_ground(opened: ParsedEgg, home: Path) -> InstallTarget:
    folder = INERT_FOLDERS.get(opened.family.kind)
    if folder is None:
        raise BadEggError(
            f"{opened.name} is of no kind that is kept as data here; nothing was written.", do=""
        )
    key = safe_component(opened.key)
    if key.startswith("."):
        raise HostileEggError("This egg names a hidden folder; refused whole", do="don't use it")
    root = Path(os.path.realpath(home / folder)) / key
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise TwinConflictError(f"{key[:16]} is in the way and is no folder.", do="Move it away first.")
    if not root.exists() or not any(root.iterdir()):
        return InstallTarget(root, new=True)
    with LinkFreeFolder(root) as walk:
        try:
            there = lives_at(walk)
        except BadFileError:  # data may hold anything
            there = None
    if there is not None and opened.rappid is not None and not same(there.rappid, opened.rappid):
        raise TwinConflictError(
            f"{there.name} lies at {key[:16]} and is something else than {opened.name}; nothing was written.",
            do="Move it away first.",
        )
    return InstallTarget(root, new=False, identity=there)


class Category(StrEnum):
    """Files that may be overwritten on request. Everything else only ever fills gaps."""

    SOUL = "soul"
    AGENTS = "agents"
    SERVICES = "services"
    MEMORY = "memory"
    """Memory, and whatever else an egg carries as data."""
    SLOTS = "slots"
    ENV = "env"
    PAGES = "pages"
    NO_MEMORY = "no-memory"
    """Nothing to overwrite, but the opposite: memory stays even where the egg's was merged from it."""


CATEGORIES = {
    Role.SOUL: Category.SOUL,
    Role.AGENT: Category.AGENTS,
    Role.SERVICE: Category.SERVICES,
    Role.SLOT: Category.SLOTS,
    Role.WORKFLOW: Category.AGENTS,
    Role.RULES: Category.AGENTS,
    Role.MEMORY: Category.MEMORY,
    Role.ENV: Category.ENV,
    Role.PAGE: Category.PAGES,
    Role.ROSTER: Category.MEMORY,
    Role.OTHER: Category.MEMORY,
}

# A workspace runs what lies here (neighbours of agents and the utils folder can be imported), whatever
# an egg calls it.
_CODE_FOLDERS = {
    "agents": Role.AGENT,
    "services": Role.SERVICE,
    "organs": Role.SERVICE,
    "senses": Role.SLOT,
    "slots": Role.SLOT,
    "utils": Role.AGENT,
}
_OWN_FILES = {"soul.md": Role.SOUL, ".env": Role.ENV, IDENTITY_FILE: Role.IDENTITY}
_WORKFLOWS = "workflows"
_COMPILED = (".pyc", ".pyo", ".pth")
_RAPPD_FOLDERS = {
    ".deps/": "packages are installed here, never carried",
    ".remote_agents/": "files of connected sources are fetched anew",
    ".brainstem_data/kept/": "what the daemon keeps about files stays its own",
}


def role_here(target: str, role: Role, destination: Destination) -> Role:
    """The role of a part at its destination: its place counts for more than its declared role."""
    if destination is Destination.INERT:
        return role
    path = folded(target)
    first, slash, _ = path.partition("/")
    if slash and first in _CODE_FOLDERS and is_code(path):
        return role if role.is_code else _CODE_FOLDERS[first]
    if is_workflow(path):
        return Role.WORKFLOW
    if decides(path):
        return Role.RULES
    return _OWN_FILES.get(path, role)


def runs(role: Role, destination: Destination) -> bool:
    """True when a part would be run at its destination, or decides how something runs: a ``.env`` does."""
    return is_held_like_code(role) and destination is not Destination.INERT


def is_held_like_code(role: Role) -> bool:
    """True when a part of this role waits for approval when nobody trusted signed it."""
    return role.is_code or role in (Role.ENV, Role.WORKFLOW, Role.RULES)


def to_threads(role: Role, destination: Destination, *, trusted: bool) -> bool:
    """True when a part is not a file here, but conversations for the threads of its twin, or of the brainstem.

    Nobody but a trusted signer puts words into the brainstem's own: else they are kept as a file.
    """
    if role is not Role.CONVERSATIONS:
        return False
    return destination is Destination.TWIN or (trusted and destination is Destination.HOST)


def category_of(target: str, role: Role) -> Category | None:
    """The option that lets a part replace what is there; None when nothing does."""
    return None if folded(target) == BONDS_FILE else CATEGORIES.get(role)


def why_never(part: Part, role: Role, destination: Destination) -> str:
    """The reason why a part is not placed anywhere, whatever lies there; "" when it may be."""
    if why := why_not_portable(part.target):
        return why
    path = folded(part.target)
    first = path.partition("/")[0]
    if first == folded(RECEIPT_FILE):
        return "this hatching has a receipt of its own"
    if destination is Destination.INERT:
        return ""
    for folder, why in _RAPPD_FOLDERS.items():
        if f"{path}/".startswith(folder):
            return why
    if path.endswith(_COMPILED) or "__pycache__" in path.split("/"):
        return "compiled code cannot be read before it runs"
    if first in (*_CODE_FOLDERS, _WORKFLOWS) and first != part.target.partition("/")[0]:
        return f"some disks would take its folder for {first}"
    if destination is Destination.HOST and first in (IDENTITY_FILE, BONDS_FILE):
        return "the brainstem stays who it is"
    if role is Role.ENV and part.size > MAX_ENV_BYTES:
        return f"a .env of more than {MAX_ENV_BYTES >> 10} KB is not read here"
    if runs(role, destination) and part.size > MAX_CODE_BYTES:
        return f"code of more than {MAX_CODE_BYTES >> 20} MB is not read here"
    return ""
