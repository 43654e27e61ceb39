"""Where the files of an egg belong in a workspace, by their names alone."""

from __future__ import annotations

from functools import lru_cache

from twins.eggs.archive.names import folded
from twins.eggs.opened import Role

Place = tuple[Role, str]
"""(what it is for, path below the workspace)"""

CODE_SUFFIXES = (".py", ".pyw", ".so", ".pyd", ".dll", ".dylib", ".lispy", ".lispy.json")
_COMPILED = (".pyc", ".pyo", ".pth")
_ROSTERS = ("members.json", "neighbors.json")
_NAMES = {"rappid.json": Role.IDENTITY, "soul.md": Role.SOUL, ".env": Role.ENV}
_FOLDERS = {
    "agents": ("agents", Role.AGENT),
    "utils": ("utils", Role.AGENT),  # agents import from it
    "services": ("services", Role.SERVICE),
    "organs": ("services", Role.SERVICE),
    "senses": ("senses", Role.SLOT),
}
_DATA = ".brainstem_data"
# What only the house may put there: packages and sources that run unread, notes about files, receipts.
_RESERVED = frozenset({".deps", ".remote_agents", ".staging", "archived.json", "hatch_receipt.json"})
_REPOSITORY = (".git", "git~1")
_RESERVED_DATA = frozenset({"kept", "unplaced"})
_WITHIN = frozenset({*_FOLDERS, _DATA, "data", "rapp_ui", "rapps"})
_MEANT = frozenset({*_NAMES, *_ROSTERS, *_WITHIN})


def in_workspace(name: str) -> Place | None:
    """The place of ``name`` in a workspace of its own: a twin's, or an empty brainstem. None: it has none.

    ``repo/x`` goes where ``x`` lies in a repository, ``data/`` is the memory, ``organs/`` are services. Other
    files keep their path.
    """
    in_repo = name.startswith("repo/")
    path = name[5:] if in_repo else name
    first, slash, below = path.partition("/")
    if not path or _is_barred(path, first):
        return None
    if bool(slash) != (first in _WITHIN) and first in _MEANT:
        return None  # a file in a folder's place, or the other way round
    if not slash:
        return (Role.ROSTER if path in _ROSTERS else _NAMES.get(path, Role.OTHER)), path
    if first in _FOLDERS:
        folder, role = _FOLDERS[first]
        return (role if is_code(below) else Role.OTHER), f"{folder}/{below}"
    if first == _DATA or (first == "data" and not in_repo):
        return in_memory(below)
    if first == "rapp_ui" and not in_repo:
        rapp, slash, page = below.partition("/")
        return (Role.PAGE, f"rapps/{rapp}/ui/{page}") if slash else None
    if first == "rapps":
        return _of_rapp(below)
    return Role.OTHER, path


def in_host(name: str) -> Place | None:
    """The place of ``name`` in the brainstem that is already there. None: it has none.

    Only what loads by its own name comes in: a module beside the agents would be imported by agents that
    were here before.
    """
    first, slash, below = name.partition("/")
    if not slash or _is_barred(name, first):
        return None
    if first == "agents" and below.endswith("_agent.py"):
        return Role.AGENT, name
    if first in ("services", "organs") and below.endswith(("_service.py", "_organ.py")):
        return Role.SERVICE, f"services/{below}"
    if first == "senses" and is_code(below):
        return Role.SLOT, name
    if first == "data":
        place = in_memory(below)
        return (Role.MEMORY, place[1]) if place else None
    return None


def in_memory(below: str) -> Place | None:
    """The place of a file of the memory, ``below`` its folder."""
    if not below or _is_the_houses(below.partition("/")[0]):
        return None
    role = Role.CONVERSATIONS if below == "frames.json" else Role.MEMORY
    return role, f"{_DATA}/{below}"


def is_code(name: str) -> bool:
    """Whether a file of this name, in a folder that code is loaded from, would run."""
    return name[-3:] == ".py" or name.lower().endswith(CODE_SUFFIXES)


def disarmed(path: str) -> str:
    """The path without a folder that git would take for a repository: its settings name programs to run."""
    if path.isascii() and "git" not in path.lower():
        return path
    return "/".join("_git" if folded(one) in _REPOSITORY else one for one in path.split("/"))


def _is_barred(path: str, first: str) -> bool:
    """Whether nothing of that name is taken to its place.

    Compiled Python is run unread instead of the source beside it.
    """
    if _is_barred_folder(first):
        return True
    lower = path.lower()
    if ("git" in lower or not path.isascii()) and disarmed(path) != path:
        return True
    return lower[-4:] in _COMPILED or ("__pycache__" in lower and "__pycache__" in lower.split("/"))


@lru_cache(4096)
def _is_barred_folder(first: str) -> bool:
    """A folder spelled ``Agents`` is the folder ``agents`` on some disks, and would escape what is asked of
    agents."""
    key = folded(first)
    return key in _RESERVED or (key in _MEANT and key != first)


@lru_cache(4096)
def _is_the_houses(first: str) -> bool:
    return folded(first) in _RESERVED_DATA


def _of_rapp(below: str) -> Place | None:
    rapp, _, rest = below.partition("/")
    if rest == "manifest.json" or rest.startswith("ui/"):
        return Role.PAGE, f"rapps/{rapp}/{rest}"
    return None
