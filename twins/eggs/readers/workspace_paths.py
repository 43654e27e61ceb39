"""Places of an egg's files in a workspace, by their names alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from agents.contract.file_discovery import AGENT_SUFFIXES
from twins.eggs.parsed_egg import Role
from twins.fs.untrusted_names import folded

Place = tuple[Role, str]
"""(what it is for, path below the destination)"""
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
_WORKFLOWS = "workflows"
# What only the daemon may put there: packages and sources that run unread, notes about files, receipts.
_RESERVED = frozenset({".deps", ".remote_agents", ".staging", "archived.json", "hatch_receipt.json"})
DECIDING = frozenset({"organism.yaml", "organism.yml"})
DECIDING_ENDS = ("agent.ts",)
_TOMBSTONE = "archived.json"
_CACHE = "__pycache__"
_REPOSITORY = (".git", "git~1")
_RESERVED_DATA = frozenset({"kept", "unplaced"})
_WITHIN = frozenset({*_FOLDERS, _WORKFLOWS, _DATA, "data", "rapp_ui", "rapps"})
_MEANT = frozenset({*_NAMES, *_ROSTERS, *_WITHIN})


class _Folder(NamedTuple):
    """The target of a folder's files: ``below``, in their ``role``; those that are code in that of ``code``.

    With ``each`` every file is asked for by its own name.
    """

    below: str
    role: Role
    code: Role = Role.OTHER
    each: Callable[[str], Place | None] | None = None


def in_workspace(name: str) -> Place | None:
    """The place of ``name`` in a workspace of its own: a twin's, or an empty brainstem. None: it has none.

    ``repo/x`` goes where ``x`` lies in a repository, ``data/`` is the memory, ``organs/`` are services. Other
    files keep their path.
    """
    return None if _is_barred_file(name.rpartition("/")[2]) else _unbarred_in_workspace(name)


def in_workspace_of(names: Sequence[str]) -> Callable[[str], Place | None]:
    """``in_workspace`` for many names, looked through together first: it takes half the time then."""
    text = "\n".join(names).lower()
    odd = not text.isascii() or any(one in text for one in ("git", _CACHE, *_COMPILED))
    return in_workspace if odd else _unbarred_in_workspace


def in_archived_workspace_of(names: Sequence[str]) -> Callable[[str], Place | None]:
    """``in_workspace_of`` for a twin that goes into the archive: there its ``archived.json`` has a place."""
    usual = in_workspace_of(names)
    return lambda name: (Role.OTHER, name) if name == _TOMBSTONE else usual(name)


def _unbarred_in_workspace(name: str) -> Place | None:
    folder, _, last = name.rpartition("/")
    if not folder or folder == "repo":
        return _at_root(last)
    found = _folder_in_workspace(folder)
    if found is None:
        return None
    below, role, code, each = found
    if each is not None:
        return each(last)
    if code is not Role.OTHER and is_code(last):
        role = code
    return role, below + last


def in_host(name: str) -> Place | None:
    """The place of ``name`` in the brainstem that is already there. None: it has none.

    Only what loads by its own name comes in: a module beside the agents would be imported by agents that
    were here before.
    """
    first, slash, below = name.partition("/")
    if not slash or _is_barred(name):
        return None
    if first == "agents" and below.endswith(AGENT_SUFFIXES):
        return Role.AGENT, name
    if first in ("services", "organs") and below.endswith(("_service.py", "_organ.py")):
        return Role.SERVICE, f"services/{below}"
    if first == "senses" and is_code(below):
        return Role.SLOT, name
    if first == _WORKFLOWS and "/" not in below and is_workflow(name):
        return Role.WORKFLOW, name
    if first == "data":
        place = in_memory(below)
        return (Role.MEMORY, place[1]) if place else None
    return None


def in_memory(below: str) -> Place | None:
    """The place of a file of the memory, ``below`` its folder."""
    if not below or _is_reserved(below.partition("/")[0]):
        return None
    role = Role.CONVERSATIONS if below == "frames.json" else Role.MEMORY
    return role, f"{_DATA}/{below}"


def is_code(name: str) -> bool:
    """True when a file of this name, in a folder that code is loaded from, would run."""
    return name[-3:] == ".py" or name.lower().endswith(CODE_SUFFIXES)


def is_workflow(path: str) -> bool:
    """True when a file at this path in a workspace tells what is asked of agents."""
    return path.startswith(f"{_WORKFLOWS}/") and path.lower().endswith(".json")


def decides(path: str) -> bool:
    """True when a file at this path in a workspace is going to decide what runs: it is held like code from now on."""
    plain = folded(path)
    first, slash, _ = plain.partition("/")
    name = plain.rpartition("/")[2]
    return (bool(slash) and first == ".ai") or name in DECIDING or name.endswith(DECIDING_ENDS)


def disarmed(path: str) -> str:
    """The path without a folder that git would take for a repository: its settings name programs to run."""
    if "git" not in path.lower() and path.isprintable():  # what a disk skips inside a name is not printable
        return path
    return "/".join("_git" if folded(one) in _REPOSITORY else one for one in path.split("/"))


def _at_root(name: str) -> Place | None:
    if not name or name in _WITHIN or _is_barred(name):
        return None
    return (Role.ROSTER if name in _ROSTERS else _NAMES.get(name, Role.OTHER)), name


@lru_cache(4096)
def _folder_in_workspace(folder: str) -> _Folder | None:
    in_repo = folder.startswith("repo/")
    path = folder[5:] if in_repo else folder
    first, slash, below = path.partition("/")
    if _is_barred_folder(path) or (first in _MEANT and first not in _WITHIN):
        return None
    if first in _FOLDERS:
        target, role = _FOLDERS[first]
        return _Folder(f"{target}/{below}/" if slash else f"{target}/", Role.OTHER, role)
    if first == _DATA or (first == "data" and not in_repo):
        if not slash:
            return _Folder("", Role.MEMORY, each=in_memory)
        place = in_memory(below)
        return _Folder(f"{place[1]}/", Role.MEMORY) if place else None
    if first == _WORKFLOWS:
        return _Folder("", Role.OTHER, each=partial(_of_workflows, path))
    if first == "rapp_ui" and not in_repo:
        rapp, deeper, page = below.partition("/")
        return _Folder(f"rapps/{rapp}/ui/{page}{deeper}", Role.PAGE) if slash else None
    if first == "rapps":
        return _Folder("", Role.PAGE, each=partial(_of_rapp, below))
    return _Folder(f"{path}/", Role.OTHER)


def _is_barred(path: str) -> bool:
    """True when nothing of that name is taken to its place."""
    folder, slash, last = path.rpartition("/")
    return _is_barred_file(last) or _is_barred_folder(folder if slash else last)


def _is_barred_file(name: str) -> bool:
    """True when a file of that name, in whatever folder, is left out.

    Compiled Python is run unread instead of the source beside it.
    """
    lower = name.lower()
    if lower[-4:] in _COMPILED or lower == _CACHE:
        return True
    return ("git" in lower or not lower.isprintable()) and folded(name) in _REPOSITORY


@lru_cache(4096)
def _is_barred_folder(path: str) -> bool:
    """A folder spelled ``Agents`` is the folder ``agents`` on some disks, and would escape what is asked of agents."""
    first = path.partition("/")[0]
    key = folded(first)
    if key in _RESERVED or (key in _MEANT and key != first):
        return True
    return disarmed(path) != path or _CACHE in path.lower().split("/")


@lru_cache(4096)
def _is_reserved(first: str) -> bool:
    return folded(first) in _RESERVED_DATA


def _of_workflows(folder: str, name: str) -> Place:
    path = f"{folder}/{name}"
    return (Role.WORKFLOW if is_workflow(path) else Role.OTHER), path


def _of_rapp(folder: str, name: str) -> Place | None:
    """``folder`` is below ``rapps``."""
    rapp, _, rest = f"{folder}/{name}".lstrip("/").partition("/")
    if rest == "manifest.json" or rest.startswith("ui/"):
        return Role.PAGE, f"rapps/{rapp}/{rest}"
    return None
