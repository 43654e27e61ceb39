"""A member's name: from the bytes in its record to text, or refused when it could be read in two ways."""

from __future__ import annotations

import zlib

from twins.zip.extra_fields import Fields
from twins.zip.file_slice import FileSlice
from twins.zip.layout import UNICODE_PATH_FIELD, UTF8
from twins.zip.names import shown

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
