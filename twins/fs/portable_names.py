"""File names that every system in use can hold: one rule for all that comes in from elsewhere.

The installer, imported agent files, sources, received eggs and restored checkpoints ask here. What a home
has already stays as it is: it opens, and is packed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

COMPONENT_BYTES = 255
PATH_BYTES = 1024
DEPTH = 64

_EVERYDAY = re.compile(r"[\w@-][\w@.+=-]{4,58}\w(?:/[\w@.-]{0,58}[\w@-])*", re.ASCII)
_DEVICE = re.compile(r"(?is)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ .]*(?:[.:].*)?")
_SIGNS = re.compile(r'[<>:"|?*\\]')
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# HFS+ does not see these inside a name.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SHORT = re.compile(r"(?i)(?=.{3,8}(?:\.|\Z))[^.~]{1,6}~[1-9][0-9]{0,5}(?:\.[^.]{0,3})?")
_TRAILING = re.compile(r"[. ]+(?=/|\Z)")
_SHOWN = 60


def why_not_portable(path: str) -> str:
    """Reason for which some system cannot hold a file at this relative path, naming it; "" when all can.

    Refused: device names of Windows (``CON``, ``nul.txt``, ``COM¹``), streams (``x.py:y``), the signs
    ``<>:"|?*`` and backslashes, controls, names that end in a dot or a blank, short names of 8.3 disks
    (``PROGRA~1``), and what is too long or too deep.
    """
    if len(path) < COMPONENT_BYTES and "~" not in path and _EVERYDAY.fullmatch(path):
        parts = path.split("/")
        if not any(_DEVICE.fullmatch(part) for part in parts) and len(parts) <= DEPTH:
            return ""
    if len(path.encode("utf-8", "surrogatepass")) > PATH_BYTES:
        return f"the path {shown(path)} is longer than {PATH_BYTES} bytes"
    parts = path.split("/")
    if len(parts) > DEPTH:
        return f"{shown(path)} lies more than {DEPTH} folders deep"
    return next(filter(None, map(why_no_component, parts)), "")


def why_no_component(name: str) -> str:
    """The same for the name of one file or folder."""
    if not _IGNORED.sub("", name).strip(". "):
        return "a file or folder without a name"
    told = shown(name)
    if _CONTROLS.search(name):
        return f"{told} holds a sign that cannot be shown"
    if len(name.encode("utf-8", "surrogatepass")) > COMPONENT_BYTES:
        return f"the name {told} is longer than {COMPONENT_BYTES} bytes"
    if _DEVICE.fullmatch(name):
        return f"{told} is the name of a device on Windows"
    if sign := _SIGNS.search(name):
        return f"{told} holds {sign[0]}, which Windows allows in no name"
    if name.endswith((".", " ")):
        return f"{told} ends in a {'dot' if name.endswith('.') else 'blank'}, which Windows leaves away"
    if _SHORT.fullmatch(name):
        return f"{told} may be the short name of another file on Windows"
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
