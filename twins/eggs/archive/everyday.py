"""The list of files, judged in one go: nearly every archive is plain enough, and then no file is looked at alone.

What is not plain is left to ``directory``, which reads record by record, lets more pass and says what is wrong.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from twins.eggs.archive.kinds import refuse_kind
from twins.eggs.archive.layout import (
    CENTRAL_SIGN,
    DEFLATED,
    ENCRYPTED,
    FULL32,
    MASKED,
    PATCHED,
    STORED,
    STRONGLY_ENCRYPTED,
)
from twins.eggs.archive.window import Window
from twins.errors import HostileEgg

UNREADABLE = ENCRYPTED | STRONGLY_ENCRYPTED | MASKED | PATCHED
KNOWN_VERSION = 63

_FIXED = Struct("<2xHHH4xIIIHHHH2xII")  # as CENTRAL, without its signature and what decides nothing
_SIGNS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@.+=-/\n"
_NAME_BYTES = 255
_DEPTH = 64
_DOT_FIRST = re.compile(rb"/\.[^a-zA-Z0-9_]")


class Columns(NamedTuple):
    """What a plain list says, a column for each field, in its order. All are files with safe ASCII names, of
    which no two are one file on any disk; ``heads`` and ``raws`` are the records' bytes."""

    names: list[str]
    heads: list[bytes]
    raws: list[bytes]
    flags: Sequence[int]
    methods: Sequence[int]
    crcs: Sequence[int]
    compressed: Sequence[int]
    sizes: Sequence[int]
    offsets: Sequence[int]


def columns(octets: bytes, count: int, window: Window) -> Columns | None:
    """The columns of the list ``octets`` of so many records; None unless all of it is plain."""
    before, *pieces = octets.split(CENTRAL_SIGN)
    if before or not pieces or len(pieces) != count:
        return None
    fixed = _FIXED.size
    joined = b"".join([piece[:fixed] for piece in pieces])
    raws = [piece[fixed:] for piece in pieces]
    if len(joined) != fixed * count:
        return None
    needs, flags, methods, crcs, compressed, sizes, lengths, extras, comments, disks, attributes, offsets = (
        zip(*_FIXED.iter_unpack(joined), strict=True)
    )
    if any(extras) or any(comments) or any(disks) or list(lengths) != list(map(len, raws)):
        return None
    if any(needed & 0xFF > KNOWN_VERSION for needed in set(needs)):
        return None
    if any(one & UNREADABLE for one in set(flags)) or not set(methods) <= {STORED, DEFLATED}:
        return None
    if FULL32 in (max(sizes), max(compressed), max(offsets)):
        return None
    if any(not m and c != s for m, c, s in zip(methods, compressed, sizes, strict=True)):
        return None
    names = _names(raws)
    if names is None or not all(_is_file(one, window) for one in set(attributes)):
        return None
    heads = [CENTRAL_SIGN + piece[:fixed] for piece in pieces]
    return Columns(names, heads, raws, flags, methods, crcs, compressed, sizes, offsets)


def _names(raws: list[bytes]) -> list[str] | None:
    """The names, if ``safe_path`` and ``NameSet`` would take all of them as they are."""
    blob = b"\n".join(raws)
    if os.name == "nt" or blob.translate(None, _SIGNS) or blob.count(b"\n") != len(raws) - 1:
        return None
    paths = b"/%b/" % blob.replace(b"\n", b"/")
    if b"//" in paths or b"/+" in paths or b"/=" in paths or b"./" in paths or _DOT_FIRST.search(paths):
        return None
    longest = max(map(len, raws))
    if longest > _NAME_BYTES or (longest > _DEPTH and max(raw.count(b"/") for raw in raws) >= _DEPTH):
        return None
    files = set(blob.lower().split(b"\n"))
    folders = {raw.rpartition(b"/")[0] for raw in raws}
    for folder in list(folders):
        while folder:
            folder = folder.rpartition(b"/")[0]
            folders.add(folder)
    lower = {folder.lower() for folder in folders}
    if len(files) != len(raws) or len(lower) != len(folders) or lower & files:
        return None
    return blob.decode("ascii").split("\n")


def _is_file(attributes: int, window: Window) -> bool:
    try:
        refuse_kind(attributes, "", False, window)
    except HostileEgg:
        return False
    return True
