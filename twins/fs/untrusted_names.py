"""File names from elsewhere: which are refused, which two are one file on some disk, how they are shown.

An egg with a name that leads elsewhere is refused whole (``safe_path``). The installer, imported agent files,
sources, received eggs and restored checkpoints leave out single files that some system cannot hold
(``why_not_portable``). What a home has already stays as it is: it opens, and is packed.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable

from twins.errors import HostileEggError

COMPONENT_BYTES = 255
PATH_BYTES = 1024
DEPTH = 64

OUTSIDE = "This egg writes outside its folder; refused whole"
"""The sentence for every name that leads elsewhere."""
LEAVE_IT = "don't use it"
"""Advice about an egg that was made to do harm."""

_WINDOWS = os.name == "nt"

# Nearly all names, for the two rules; whatever does not match is looked at piece by piece.
_PLAINLY_SAFE = re.compile(r"(?:[\w@-]|\.(?=\w))[\w@.+=-]*(?:/(?:[\w@-]|\.(?=\w))[\w@.+=-]*)*", re.ASCII)
_PLAINLY_PORTABLE = re.compile(r"[\w@-][\w@.+=-]{4,58}\w(?:/[\w@.-]{0,58}[\w@-])*", re.ASCII)
_DRIVE = re.compile(r".:")  # some systems take any first sign for one
_DEVICE = re.compile(r"(?is)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ .]*(?:[.:].*)?")
_SIGNS = re.compile(r'[<>:"|?*\\]')
# What a terminal or a page would act on instead of showing it: controls, line ends, changes of direction.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# HFS+ does not see these inside a name.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SHORT = re.compile(r"(?i)(?=.{3,8}(?:\.|\Z))[^.~]{1,6}~[1-9][0-9]{0,5}(?:\.[^.]{0,3})?")
_TRAILING = re.compile(r"[. ]+(?=/|\Z)")
_SHOWN = 60


def safe_path(text: str, *, windows: bool = _WINDOWS) -> str:
    """``text`` itself, if it is a relative path with ``/`` between its components that stays inside.

    Raises ``HostileEggError``. Refused everywhere: absolute paths, drive letters, backslashes, empty, ``.``
    and ``..`` components (also hidden by trailing dots and spaces), controls and changes of writing
    direction, more than 255 bytes in a component, 1024 in all or 64 components. Refused on Windows
    only: its reserved names, ``<>:"|?*`` and trailing dots or spaces.
    """
    deep = text.count("/") >= DEPTH
    if len(text) <= COMPONENT_BYTES and not deep and not windows and _PLAINLY_SAFE.fullmatch(text):
        return text
    if text.startswith("/"):
        raise HostileEggError(OUTSIDE, do=LEAVE_IT)
    if deep or _octets(text) > PATH_BYTES:
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
    if _CONTROLS.search(text):
        raise HostileEggError(
            f"A name in this egg cannot be shown ({shown(text)}); refused whole", do=LEAVE_IT
        )
    if _octets(text) > COMPONENT_BYTES:
        raise HostileEggError(f"A name in this egg is too long ({shown(text)}); refused whole", do=LEAVE_IT)
    if windows and is_impossible_on_windows(text):
        raise HostileEggError(f"Windows cannot hold a file named {shown(text)}; refused whole", do=LEAVE_IT)
    return text


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


def why_not_portable(path: str) -> str:
    """Reason for which some system cannot hold a file at this relative path, naming it; "" when all can.

    Refused: device names of Windows (``CON``, ``nul.txt``, ``COM¹``), streams (``x.py:y``), the signs
    ``<>:"|?*`` and backslashes, controls, names that end in a dot or a blank, short names of 8.3 disks
    (``PROGRA~1``), and what is too long or too deep.
    """
    if len(path) < COMPONENT_BYTES and "~" not in path and _PLAINLY_PORTABLE.fullmatch(path):
        parts = path.split("/")
        if not any(_DEVICE.fullmatch(part) for part in parts) and len(parts) <= DEPTH:
            return ""
    if _octets(path) > PATH_BYTES:
        return f"the path {shown(path)} is longer than {PATH_BYTES} bytes"
    parts = path.split("/")
    if len(parts) > DEPTH:
        return f"{shown(path)} lies more than {DEPTH} folders deep"
    return next(filter(None, map(why_no_component, parts)), "")


def why_no_component(name: str) -> str:
    """``why_not_portable`` for the name of one file or folder."""
    if not _IGNORED.sub("", name).strip(". "):
        return "a file or folder without a name"
    name_shown = shown(name)
    if _CONTROLS.search(name):
        return f"{name_shown} holds a sign that cannot be shown"
    if _octets(name) > COMPONENT_BYTES:
        return f"the name {name_shown} is longer than {COMPONENT_BYTES} bytes"
    if _DEVICE.fullmatch(name):
        return f"{name_shown} is the name of a device on Windows"
    if sign := _SIGNS.search(name):
        return f"{name_shown} holds {sign[0]}, which Windows allows in no name"
    if name.endswith((".", " ")):
        return f"{name_shown} ends in a {'dot' if name.endswith('.') else 'blank'}, which Windows leaves away"
    if _SHORT.fullmatch(name):
        return f"{name_shown} may be the short name of another file on Windows"
    return ""


def is_impossible_on_windows(name: str) -> bool:
    """True when Windows can have no file or folder of this name."""
    return bool(_DEVICE.fullmatch(name) or _SIGNS.search(name)) or name.endswith((".", " "))


def folded(path: str) -> str:
    """The same text for all paths that are one file on some disk in use.

    Disks differ: macOS joins case and the ways to compose a letter, HFS+ also skips invisible signs,
    Windows joins case and drops trailing dots and spaces. Compare targets by this, never by spelling.
    """
    if path.isascii():
        key = path.lower()
    else:
        key = _IGNORED.sub("", path)
        key = unicodedata.normalize("NFD", unicodedata.normalize("NFD", key).casefold())
    loose = key.endswith((".", " ")) or "./" in key or " /" in key
    return _TRAILING.sub("", key) if loose else key


def other_spelling(name: str, present: Iterable[str]) -> str:
    """One of the names ``present`` in a folder that is the same file as ``name`` on some disk, but is spelled otherwise; "" for none."""
    key = folded(name)
    return next((one for one in present if one != name and folded(one) == key), "")


def shown(name: str) -> str:
    """A name from elsewhere as a person may read it: what cannot be shown is escaped, the middle is lost."""
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in name)
    half = _SHOWN // 2
    return text if len(text) <= _SHOWN else f"{text[:half]}…{text[1 - half :]}"


def _octets(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _collision(path: str, other: str) -> HostileEggError:
    if path == other:
        return HostileEggError(f"This egg holds {shown(path)} twice; refused whole", do=LEAVE_IT)
    return HostileEggError(
        f"{shown(other)} and {shown(path)} are one file on some disks; refused whole", do=LEAVE_IT
    )


def _both(path: str) -> HostileEggError:
    return HostileEggError(f"{shown(path)} is a file and a folder in this egg; refused whole", do=LEAVE_IT)
