"""Rules for an egg's files: allowed places, and which are code or may be overwritten."""

from __future__ import annotations

from enum import StrEnum

from twins.eggs.parsed_egg import Destination, Part, Role
from twins.eggs.readers.member_paths import is_code, is_workflow
from twins.fs.untrusted_names import folded, why_not_portable
from twins.workspace.bonds import FILE as BONDS_FILE
from twins.workspace.identity_file import FILE as IDENTITY_FILE
from twins.workspace.workspace_env import MAX_BYTES as MAX_ENV_BYTES

RECEIPT_FILE = "HATCH_RECEIPT.json"
MAX_CODE_BYTES = 5 << 20


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
_HOUSE_FOLDERS = {
    ".deps/": "packages are installed here, never carried",
    ".remote_agents/": "files of connected sources are fetched anew",
    ".brainstem_data/kept/": "what the daemon keeps about files stays its own",
}


def role_here(part: Part, destination: Destination) -> Role:
    """The role of a part at its destination: its place counts for more than its declared role."""
    if destination is Destination.INERT:
        return part.role
    path = folded(part.target)
    first, slash, _ = path.partition("/")
    if slash and first in _CODE_FOLDERS and is_code(path):
        return part.role if part.role.is_code else _CODE_FOLDERS[first]
    if is_workflow(path):
        return Role.WORKFLOW
    return _OWN_FILES.get(path, part.role)


def runs(role: Role, destination: Destination) -> bool:
    """True when a part would be run at its destination, or decides how something runs: a ``.env`` does."""
    return is_held_like_code(role) and destination is not Destination.INERT


def is_held_like_code(role: Role) -> bool:
    """True when a part of this role waits for approval when nobody trusted signed it."""
    return role.is_code or role in (Role.ENV, Role.WORKFLOW)


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
    for folder, why in _HOUSE_FOLDERS.items():
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
