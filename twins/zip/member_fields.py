"""The fields of a member's record: its name, its kind and the extra ones; refused where they could mislead."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Sequence

from twins.fs.untrusted_names import shown
from twins.zip.archive_bounds import FileSlice
from twins.zip.layout import (
    AES_FIELD,
    ASI_UNIX_FIELD,
    FIELD,
    PKWARE_UNIX_FIELD,
    STRONG_ENCRYPTION_FIELD,
    UNICODE_PATH_FIELD,
    UTF8,
    ZIP64_FIELD,
)

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


def are_idle(extras: Sequence[bytes]) -> bool:
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


_DECIDING = frozenset(
    (
        *(AES_FIELD, STRONG_ENCRYPTION_FIELD, PKWARE_UNIX_FIELD, ASI_UNIX_FIELD),
        *(ZIP64_FIELD, UNICODE_PATH_FIELD),
    )
)
_CHECKED = frozenset((AES_FIELD, STRONG_ENCRYPTION_FIELD, PKWARE_UNIX_FIELD, ASI_UNIX_FIELD))


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
