"""The list of files, judged in one go: nearly every archive is plain enough, and then no file is looked at alone.

What is not plain is left to ``directory``, which reads record by record, lets more pass and says what is wrong.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from itertools import compress, repeat
from operator import add, ne, not_
from typing import Any, NamedTuple

from twins.errors import HostileEggError
from twins.zip.archive_bounds import FileSlice
from twins.zip.layout import (
    CENTRAL,
    CENTRAL_SIGN,
    DEFLATED,
    ENCRYPTED,
    FULL32,
    MASKED,
    PATCHED,
    STORED,
    STRONGLY_ENCRYPTED,
    UTF8,
)
from twins.zip.member_fields import are_idle, refuse_kind

UNREADABLE = ENCRYPTED | STRONGLY_ENCRYPTED | MASKED | PATCHED
KNOWN_VERSION = 63
EMPTY_DEFLATED = 2

FIXED = CENTRAL.size - len(CENTRAL_SIGN)
"""Bytes of a record before its name, without its signature."""
# Where a record's fields stand, counted without its signature.
_NEEDS, _FLAGS, _METHOD, _NAME_LENGTH, _EXTRA_LENGTH = 2, 4, 6, 24, 26
_CRC, _COMPRESSED, _SIZE, _ATTRIBUTES, _OFFSET = 12, 16, 20, 34, 38
_EMPTY = range(28, 32)  # length of a comment, number of a disk


class DirectoryColumns(NamedTuple):
    """A plain directory, a column for each field, in its order.

    All are files and folders with safe names, of which no two are one on any disk; ``records`` are its
    records' bytes without their signature, ``folders`` says which are folders, ``bare`` that no record has
    extra fields.
    """

    bare: bool
    folders: list[bool]
    names: list[str]
    records: list[bytes]
    raws: list[bytes]
    flags: Sequence[int]
    methods: Sequence[int]
    crcs: Sequence[int]
    compressed: Sequence[int]
    sizes: Sequence[int]
    offsets: Sequence[int]

    @property
    def entries(self) -> Iterator[tuple[Any, ...]]:
        """The fields of each record: name, whether it is a folder, fixed part, raw name, flags, method, CRC, compressed, size, offset."""
        heads = map(self.head, range(len(self.names)))
        return zip(self.names, self.folders, heads, *self[4:], strict=True)

    @property
    def any_folder(self) -> bool:
        """True when there is one."""
        return True in self.folders

    def head(self, place: int) -> bytes:
        """The fixed part of one record, as it stands there."""
        return CENTRAL_SIGN + self.records[place][:FIXED]


def columns(octets: bytes, count: int, window: FileSlice) -> DirectoryColumns | None:
    """The columns of the list ``octets`` of so many records; None unless all of it is plain."""
    before, *records = octets.split(CENTRAL_SIGN)
    if before or not records or len(records) != count:
        return None
    fixed = b"".join([record[:FIXED] for record in records])
    if len(fixed) != FIXED * count or any(fixed[at::FIXED].strip(b"\0") for at in _EMPTY):
        return None
    lengths, extra_lengths, needs, flags, methods = (
        _column(fixed, at, 2) for at in (_NAME_LENGTH, _EXTRA_LENGTH, _NEEDS, _FLAGS, _METHOD)
    )
    if list(map(add, lengths, extra_lengths)) != [len(record) - FIXED for record in records]:
        return None
    bare = not any(extra_lengths)
    if bare:
        raws = [record[FIXED:] for record in records]
    else:
        ends = [FIXED + length for length in lengths]
        raws = [record[FIXED:end] for record, end in zip(records, ends, strict=True)]
        if not are_idle([record[end:] for record, end in zip(records, ends, strict=True)]):
            return None
    if any(one & 0xFF > KNOWN_VERSION for one in set(needs)):
        return None
    marks = set(flags)
    if any(one & UNREADABLE for one in marks) or not set(methods) <= {STORED, DEFLATED}:
        return None
    crcs, compressed, sizes, attributes, offsets = (
        _column(fixed, at, 4) for at in (_CRC, _COMPRESSED, _SIZE, _ATTRIBUTES, _OFFSET)
    )
    if FULL32 in (max(sizes), max(compressed), max(offsets)):
        return None
    if compressed != sizes and any(compress(map(ne, compressed, sizes), map(not_, methods))):
        return None
    names = all_safe(raws, marked=all(one & UTF8 for one in marks))
    if names is None:
        return None
    folders = list(map(bytes.endswith, raws, repeat(b"/")))
    if True in folders and (
        any(compress(sizes, folders)) or max(compress(compressed, folders)) > EMPTY_DEFLATED
    ):
        return None
    if not all(
        _is_as_it_says(one, folder, window) for one, folder in set(zip(attributes, folders, strict=True))
    ):
        return None
    return DirectoryColumns(
        bare, folders, names, records, raws, flags, methods, crcs, compressed, sizes, offsets
    )


def _column(fixed: bytes, at: int, width: int) -> array[int]:
    """One field of every record. The bytes of a field are taken out with strides, so that no record is unpacked."""
    octets = bytearray(len(fixed) // FIXED * width)
    for place in range(width):
        octets[place::width] = fixed[at + place :: FIXED]
    column = array("H" if width == 2 else "I", bytes(octets))
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _is_as_it_says(attributes: int, folder: bool, window: FileSlice) -> bool:
    try:
        refuse_kind(attributes, "", folder, window)
    except HostileEggError:
        return False
    return True


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
    # As untrusted_names.folded; what that would drop besides is not printable.
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
