"""All names of an archive judged at once, by the rules of ``names``, as long as there is nothing odd about them."""

from __future__ import annotations

import os
import unicodedata
from itertools import compress, repeat
from operator import not_

_NAME_BYTES = 255
_DEPTH = 64
# ASCII that means nothing to any system: no controls, folders of Windows, drives.
_PLAIN = bytes(set(range(0x20, 0x7F)) - set(b"\\:")) + b"\n"


def all_safe(raws: list[bytes], *, marked: bool) -> list[str] | None:
    """The names, if ``safe_path`` and ``NameSet`` would take all of them as they are; None leaves that to them.

    A folder's ends in ``/`` among ``raws``, and without it here. ``marked``: every record says that its name is UTF-8.
    """
    blob = b"\n".join(raws)
    if os.name == "nt" or not (marked or blob.isascii()):
        return None
    listed: list[bool] = []
    if b"/\n" in blob or blob.endswith(b"/"):
        listed = list(map(bytes.endswith, raws, repeat(b"/")))
        blob = blob.replace(b"/\n", b"\n").removesuffix(b"/")
    longest = max(map(len, raws))
    if longest > _NAME_BYTES or (longest > _DEPTH and max(raw.count(b"/") for raw in raws) >= _DEPTH):
        return None
    try:
        text = blob.decode()
    except UnicodeDecodeError:
        return None
    is_ascii = len(text) == len(blob)
    if not (is_ascii or text.replace("\n", "").isprintable()):
        return None
    if any(sign < 0x80 for sign in blob.translate(None, _PLAIN)) or not _are_whole(text):
        return None
    folded = text.lower() if is_ascii else _fold(text)
    names = text.split("\n")
    if len(names) != len(raws) or not (is_ascii or _are_whole(folded)):
        return None
    folders = _folders(names, listed)
    same = folders if folded == text else set(map(str.lower if is_ascii else _fold, folders))
    keys = names if folded == text else folded.split("\n")
    if listed:
        keys = list(compress(keys, map(not_, listed)))
    files = set(keys)
    if len(files) != len(keys) or len(same) != len(folders) or not same.isdisjoint(files):
        return None
    return names


def _are_whole(text: str) -> bool:
    """True when every name between line ends, and every part of it, is one that ``safe_component`` takes."""
    paths = f"/{text}/".replace("\n", "/")
    return "//" not in paths and "./" not in paths and " /" not in paths


def _fold(text: str) -> str:
    # As names.folded; what that would drop besides is not printable.
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


def _folders(names: list[str], listed: list[bool]) -> set[str]:
    """Every folder above any of them, and those that are ``listed``."""
    folders = {name.rpartition("/")[0] for name in names}
    folders.update(compress(names, listed))
    folders.discard("")
    for folder in list(folders):
        while (folder := folder.rpartition("/")[0]) and folder not in folders:
            folders.add(folder)
    return folders
