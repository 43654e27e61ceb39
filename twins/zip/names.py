"""Names of files as an egg may carry them: which are refused, and which two would be one file on some disk."""

from __future__ import annotations

import os
import re

from twins.errors import HostileEggError
from twins.fs.portable_names import COMPONENT_BYTES as _COMPONENT_BYTES
from twins.fs.portable_names import DEPTH as _DEPTH
from twins.fs.portable_names import PATH_BYTES as _PATH_BYTES
from twins.fs.portable_names import folded as folded
from twins.fs.portable_names import is_impossible_on_windows
from twins.fs.portable_names import shown as shown

_WINDOWS = os.name == "nt"

# Nearly all names; whatever does not match is looked at piece by piece.
_EVERYDAY = re.compile(r"(?:[\w@-]|\.(?=\w))[\w@.+=-]*(?:/(?:[\w@-]|\.(?=\w))[\w@.+=-]*)*", re.ASCII)
_DRIVE = re.compile(r".:")  # some systems take any first sign for one
# What a terminal or a page would act on instead of showing it: controls, line ends, changes of direction.
_UNSHOWABLE = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"

OUTSIDE = "This egg writes outside its folder; refused whole"
"""The sentence for every name that leads elsewhere."""
LEAVE_IT = "don't use it"
"""Advice about an egg that was made to do harm."""


def safe_path(text: str, *, windows: bool = _WINDOWS) -> str:
    """``text`` itself, if it is a relative path with ``/`` between its components that stays inside.

    Raises ``HostileEggError``. RefusedError everywhere: absolute paths, drive letters, backslashes, empty, ``.``
    and ``..`` components (also hidden by trailing dots and spaces), controls and changes of writing
    direction, more than 255 bytes in a component, 1024 in all or 64 components. Refused on Windows
    only: its reserved names, ``<>:"|?*`` and trailing dots or spaces.
    """
    deep = text.count("/") >= _DEPTH
    if len(text) <= _COMPONENT_BYTES and not deep and not windows and _EVERYDAY.fullmatch(text):
        return text
    if text.startswith("/"):
        raise HostileEggError(OUTSIDE, do=LEAVE_IT)
    if deep or _octets(text) > _PATH_BYTES:
        raise HostileEggError(f"A name in this egg is too long ({shown(text)}); refused whole", do=LEAVE_IT)
    for component in text.split("/"):
        safe_component(component, windows=windows)
    return text


def safe_component(text: str, *, windows: bool = _WINDOWS) -> str:
    """``text`` itself, if it may name one file or folder; the rules are those of ``safe_path``."""
    if not text:
        raise HostileEggError("This egg holds a file without a name; refused whole", do=LEAVE_IT)
    if "/" in text or "\\" in text or not text.strip(". ") or _DRIVE.match(text):
        raise HostileEggError(OUTSIDE, do=LEAVE_IT)
    if re.search(_UNSHOWABLE, text):
        raise HostileEggError(
            f"A name in this egg cannot be shown ({shown(text)}); refused whole", do=LEAVE_IT
        )
    if _octets(text) > _COMPONENT_BYTES:
        raise HostileEggError(f"A name in this egg is too long ({shown(text)}); refused whole", do=LEAVE_IT)
    if windows and is_impossible_on_windows(text):
        raise HostileEggError(f"Windows cannot hold a file named {shown(text)}; refused whole", do=LEAVE_IT)
    return text


def _octets(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


class NameSet:
    """Paths that can all lie in one folder, on any disk. Files and folders are told apart."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._known: set[str] = {""}

    def __contains__(self, path: str) -> bool:
        """True when this path, in this spelling, was added as a file."""
        return self._files.get(folded(path)) == path

    def add(self, path: str, *, folder: bool = False) -> None:
        """Takes in one path that ``safe_path`` let pass, and the folders above it.

        Raises ``HostileEggError`` when a file is there twice, when two spellings are one name on some disk,
        and when a file is also a folder. The same folder may come again.
        """
        if folder:
            self._add_folder(path)
            return
        key = folded(path)
        other = self._files.get(key)
        if other is not None:
            raise _collision(path, other)
        if key in self._folders:
            raise _both(path)
        above = path.rpartition("/")[0]
        if above not in self._known:
            self._add_folder(above)
        self._files[key] = path

    def _add_folder(self, path: str) -> None:
        while path not in self._known:
            key = folded(path)
            if key in self._files:
                raise _both(self._files[key])
            other = self._folders.setdefault(key, path)
            if other != path:
                raise _collision(path, other)
            self._known.add(path)
            path = path.rpartition("/")[0]


def _collision(path: str, other: str) -> HostileEggError:
    if path == other:
        return HostileEggError(f"This egg holds {shown(path)} twice; refused whole", do=LEAVE_IT)
    return HostileEggError(
        f"{shown(other)} and {shown(path)} are one file on some disks; refused whole", do=LEAVE_IT
    )


def _both(path: str) -> HostileEggError:
    return HostileEggError(f"{shown(path)} is a file and a folder in this egg; refused whole", do=LEAVE_IT)
