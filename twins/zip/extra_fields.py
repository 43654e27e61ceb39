"""The extra fields of a record: taken apart, and refused where they make a file something else."""

from __future__ import annotations

import stat
from collections.abc import Sequence

from twins.zip.file_slice import FileSlice
from twins.zip.layout import (
    AES_FIELD,
    ASI_UNIX_FIELD,
    FIELD,
    PKWARE_UNIX_FIELD,
    STRONG_ENCRYPTION_FIELD,
    UNICODE_PATH_FIELD,
    ZIP64_FIELD,
)
from twins.zip.names import shown

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
