"""Files that are never packed: the union of every published list, in any spelling, and this machine's own (``exclusions.toml``).

By name alone, at any depth; what a file holds is looked at by the secret scan.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path


class ExclusionReason(StrEnum):
    """The reason why something stayed behind, as a person reads it after its path."""

    SECRET = "may hold secrets"  # noqa: S105 - a reason, not a secret
    PRIVATE = "is private"
    MADE_ANEW = "is made anew where it is needed"
    LOCAL = "belongs to this machine"
    LINK = "is a link, and links are not followed"
    OTHER_NAMES = "has another name on this disk (a hard link); a copy of it would travel"
    NO_FILE = "is no regular file"
    NOT_UTF8 = "has a name that is not UTF-8; rename it"
    MEMORY = "is memory, which was to stay"
    BLANKED = "goes without its secret values"
    NO_PLACE = "has no place in this kind of egg"
    HELD = "is quarantined, and nobody signs what nobody has read"
    ELSEWHERE = "goes in by another way"
    """Not left out at all: only skipped by the walk."""


_LISTS: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
_SECRET_NAMES = frozenset(_LISTS["secret"]["names"])
_SECRET_SUFFIXES = tuple(_LISTS["secret"]["ends"])
_SECRET_STARTS = tuple(_LISTS["secret"]["starts"])
_SECRET_SHAPE = re.compile(
    r"(?:[\w.-]*[_.-])?(?:credentials?|secrets?)\.(?:json|ya?ml|toml|ini|cfg|conf|txt|csv|xml|db|enc|properties)"
    r"|(?:[\w.-]*[_.-])?service[_-]?account(?:[_.-][\w.-]*)?\.json|client_secrets?[\w.-]*\.json"
    r"|[\w.-]*-firebase-adminsdk-[\w.-]*\.json|(?:[\w.-]*[_.-])?kubeconfig(?:\.ya?ml|\.json)?"
)
_PRIVATE_NAMES = frozenset({"private"})
_MADE_ANEW_NAMES = frozenset(_LISTS["made_anew"]["names"])
_LOCAL_NAMES = frozenset(_LISTS["local"]["names"])
_LOCAL_AT_ROOT = frozenset(_LISTS["local"]["at_root"])
_LOCAL_MEMORY = frozenset(_LISTS["local"]["in_memory"])
_TOMBSTONE = "archived.json"
_KERNEL_FILES = frozenset({"basic_agent.py", "__init__.py"})
_HALF_WRITTEN = re.compile(r"\..*\.tmp")
# Editors and people keep copies beside the file: the copy of a key is a key.
_COPY = re.compile(
    r"^[#~]+|(?:\.(?:bak|old|orig|save|backup|copy|swp|swo|tmp|[0-9]+)|[~#]+| \([0-9]+\)| copy)$"
)


def by_name(name: str) -> ExclusionReason | None:
    """The reason why a file or folder of this name stays behind wherever it lies; None when it may travel."""
    key = _plain(name)
    if key in _MADE_ANEW_NAMES or key.endswith((".pyc", ".pyo")) or key.startswith("._"):
        return ExclusionReason.MADE_ANEW
    if key in _PRIVATE_NAMES:
        return ExclusionReason.PRIVATE
    if key in _LOCAL_NAMES or _HALF_WRITTEN.fullmatch(key):
        return ExclusionReason.LOCAL
    while True:
        if key in _SECRET_NAMES or key.endswith(_SECRET_SUFFIXES) or key.startswith(_SECRET_STARTS):
            return ExclusionReason.SECRET
        if _SECRET_SHAPE.fullmatch(key):
            return ExclusionReason.SECRET
        shorter = _COPY.sub("", key)
        if shorter == key or not shorter:
            return None
        key = shorter


def at_root(name: str, *, archived: bool = False) -> ExclusionReason | None:
    """The same for what lies directly in a workspace, where dot-names are the daemon's own.

    ``archived``: the twin travels as an archived one, whose state its ``archived.json`` is.
    """
    key = _plain(name)
    if archived and name == _TOMBSTONE:
        return None
    if key in _LOCAL_AT_ROOT or key == _TOMBSTONE:
        return ExclusionReason.LOCAL
    return by_name(name) or (ExclusionReason.LOCAL if key.startswith(".") else None)


def in_memory(name: str) -> ExclusionReason | None:
    """The same for what lies directly in the memory folder: what the daemon keeps about files stays."""
    return by_name(name) or (ExclusionReason.LOCAL if _plain(name) in _LOCAL_MEMORY else None)


def in_code(name: str) -> ExclusionReason | None:
    """The same for what lies directly in a folder of agents or services: the kernel has its own copy."""
    return by_name(name) or (ExclusionReason.MADE_ANEW if _plain(name) in _KERNEL_FILES else None)


def _plain(name: str) -> str:
    """The name as some disk or program would take it: without case, width, or trailing dots and spaces."""
    return unicodedata.normalize("NFKC", name).casefold().strip().rstrip(". ")
