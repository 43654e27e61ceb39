"""The fields of an archive's records as they are read: all of a plain list in one go, otherwise one by one.

Nearly every archive is plain enough, and then no file is looked at alone (``columns``). What is not plain,
``central_directory`` reads record by record: it lets more pass, says what is wrong, and refuses names, kinds
and extra fields that could mislead.
"""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import compress, repeat
from operator import add, ne, not_
from typing import Any, NamedTuple

from twins.errors import HostileEggError
from twins.fs.untrusted_names import shown
from twins.zip.archive_bounds import FileSlice
from twins.zip.record_formats import (
    AES_FIELD,
    ASI_UNIX_FIELD,
    CENTRAL,
    CENTRAL_SIGN,
    DEFLATED,
    ENCRYPTED,
    FIELD,
    FULL32,
    MASKED,
    PATCHED,
    PKWARE_UNIX_FIELD,
    STORED,
    STRONG_ENCRYPTION_FIELD,
    STRONGLY_ENCRYPTED,
    UNICODE_PATH_FIELD,
    UTF8,
    ZIP64_FIELD,
)

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
        if not _are_all_idle([record[end:] for record, end in zip(records, ends, strict=True)]):
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


_CHECKED = frozenset((AES_FIELD, STRONG_ENCRYPTION_FIELD, PKWARE_UNIX_FIELD, ASI_UNIX_FIELD))
_DECIDING = _CHECKED | {ZIP64_FIELD, UNICODE_PATH_FIELD}


def _are_all_idle(extras: Sequence[bytes]) -> bool:
    """True when all are well formed and hold nothing that decides here, as times and owners do.

    False may mean only that they have to be looked at one by one.
    """
    by_length: dict[int, list[bytes]] = {}
    for extra in extras:
        by_length.setdefault(len(extra), []).append(extra)
    return all(_are_idle(alike, length) for length, alike in by_length.items())


def _are_idle(extras: list[bytes], length: int) -> bool:
    # Those of one length have the same fields mostly: a byte of all heads is taken out with one stride.
    joined, at = b"".join(extras), 0
    while at + FIELD.size <= length:
        for place in range(at, at + FIELD.size):
            if joined[place::length].strip(joined[place : place + 1]):
                return False
        tag, content = FIELD.unpack_from(joined, at)
        if tag in _DECIDING:
            return False
        at += FIELD.size + content
    return at == length


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


Fields = Sequence[tuple[int, bytes]]
"""(what it is, its content), in order."""

NEEDLESS = "64-bit sizes stand where nothing is that large."
_PKWARE_UNIX_FIXED = 12  # times and owner; a link's target or a device's numbers would follow
_ASI_UNIX_FIXED = 14


def fields(extra: bytes, name: str, window: FileSlice) -> Fields:
    """The fields in ``extra``. Raises ``BadEggError`` for broken ones, ``HostileEggError`` for links and devices."""
    found = []
    at, end = 0, len(extra)
    while at + FIELD.size <= end:
        tag, length = FIELD.unpack_from(extra, at)
        at += FIELD.size
        if at + length > end:
            raise window.damaged(shown(name))
        content = extra[at : at + length]
        if tag in _CHECKED:
            _check(tag, content, name, window)
        found.append((tag, content))
        at += length
    if extra[at:].strip(b"\0"):
        raise window.damaged(shown(name))
    return found


def wide_values(found: Fields, name: str, window: FileSlice) -> list[int] | None:
    """The 64-bit numbers of the ZIP64 field, None without one. A second field is one too many."""
    contents = [content for tag, content in found if tag == ZIP64_FIELD]
    if not contents:
        return None
    if len(contents) > 1:
        raise window.hostile(f"{shown(name)} has two 64-bit sizes")
    content = contents[0]
    whole = len(content) & ~7
    return [int.from_bytes(content[at : at + 8], "little") for at in range(0, whole, 8)]


def _check(tag: int, content: bytes, name: str, window: FileSlice) -> None:
    if tag in (AES_FIELD, STRONG_ENCRYPTION_FIELD):
        raise window.unreadable(f"{shown(name)} is encrypted")
    if tag == PKWARE_UNIX_FIELD and len(content) > _PKWARE_UNIX_FIXED:
        raise window.hostile(f"{shown(name)} is a link or a device")
    if tag == ASI_UNIX_FIELD and len(content) >= _ASI_UNIX_FIXED:
        mode = int.from_bytes(content[4:6], "little")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR) or len(content) > _ASI_UNIX_FIXED:
            raise window.hostile(f"{shown(name)} is a link or a device")


_UNICODE_PATH_FIXED = 5
UNMARKED = "Names outside ASCII are not marked as UTF-8."


def decode_name(raw: bytes, flags: int, found: Fields, window: FileSlice, deviations: dict[str, None]) -> str:
    """The name as text. UTF-8 is tried before code page 437, as many writers forget to mark it."""
    second = _second_name(raw, found, window)
    if raw.isascii():
        name = raw.decode("ascii")
    elif flags & UTF8:
        name = _utf8(raw, window)
    else:
        deviations[UNMARKED] = None
        if second is not None:
            return second
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            name = raw.decode("cp437")
    if second is not None and second != name:
        raise window.hostile(f"{shown(name)} has a second name")
    return name


def _second_name(raw: bytes, found: Fields, window: FileSlice) -> str | None:
    """The Unicode Path field (APPNOTE 4.6.9), if it is about this very name."""
    names = [content for tag, content in found if tag == UNICODE_PATH_FIELD]
    if len(names) > 1:
        raise window.hostile(f"{shown(raw.decode('cp437'))} has a second name")
    if not names or len(names[0]) < _UNICODE_PATH_FIXED:
        return None
    content = names[0]
    if content[0] != 1 or int.from_bytes(content[1:5], "little") != zlib.crc32(raw):
        return None
    return _utf8(content[_UNICODE_PATH_FIXED:], window)


def _utf8(raw: bytes, window: FileSlice) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise window.damaged("a name in it") from error


_DOS_VOLUME, _DOS_FOLDER, _DOS_DEVICE, _NTFS_REPARSE = 0x08, 0x10, 0x40, 0x400
_WORDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def refuse_kind(attributes: int, name: str, folder: bool, window: FileSlice) -> None:
    """Raises ``HostileEggError`` when external attributes make a member anything but a file or a folder.

    Both halves are read whatever system the archive names, as extractors differ in whom they believe.
    """
    kind = stat.S_IFMT(attributes >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise window.hostile(f"{shown(name)} is {_WORDS.get(kind, 'neither file nor folder')}")
    if attributes & _NTFS_REPARSE:
        raise window.hostile(f"{shown(name)} is a symbolic link")
    if attributes & (_DOS_VOLUME | _DOS_DEVICE):
        raise window.hostile(f"{shown(name)} is a device")
    if not folder and (kind == stat.S_IFDIR or attributes & _DOS_FOLDER):
        raise window.hostile(f"{shown(name)} is a file and a folder in this egg")
