"""ZIP archives made by hand, with every field free to lie."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import pack
from typing import Any

UTF8, SIZES_FOLLOW = 0x800, 8
STORED, DEFLATED = 0, 8


def deflated(content: bytes, level: int = 6) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, -15)
    return stream.compress(content) + stream.flush()


@dataclass
class Crafted:
    """A member.

    ``local`` and ``central`` replace fields of one record only: version, flags, method, crc, compressed,
    size, name, extra; central also made, disk, attributes, offset, comment.
    """

    name: bytes
    content: bytes = b""
    method: int = STORED
    flags: int = UTF8
    data: bytes | None = None
    crc: int | None = None
    compressed: int | None = None
    size: int | None = None
    attributes: int = 0
    made: int = 20
    extra: bytes = b""
    behind: bytes = b""
    local: dict[str, Any] = field(default_factory=dict)
    central: dict[str, Any] = field(default_factory=dict)
    listed: bool = True
    lies: bool = True
    """True when its bytes are in the archive at all (else only its record in the list is)."""

    def told(self) -> dict[str, Any]:
        data = self.packed()
        return {
            "version": 20,
            "flags": self.flags,
            "method": self.method,
            "crc": zlib.crc32(self.content) if self.crc is None else self.crc,
            "compressed": len(data) if self.compressed is None else self.compressed,
            "size": len(self.content) if self.size is None else self.size,
            "name": self.name,
            "extra": self.extra,
            "made": self.made,
            "disk": 0,
            "attributes": self.attributes,
            "comment": b"",
        }

    def packed(self) -> bytes:
        if self.data is not None:
            return self.data
        return deflated(self.content) if self.method == DEFLATED else self.content

    def before(self) -> bytes:
        told = self.told() | self.local
        head = pack(
            "<4sHHHHHIIIHH", b"PK\3\4", told["version"], told["flags"], told["method"], 0, 0x21, told["crc"],
            told["compressed"], told["size"], len(told["name"]), len(told["extra"]),
        )  # fmt: skip
        return head + told["name"] + told["extra"]

    def record(self, offset: int) -> bytes:
        told = self.told() | {"offset": offset} | self.central
        head = pack(
            "<4sHHHHHHIIIHHHHHII", b"PK\1\2", told["made"], told["version"], told["flags"], told["method"], 0,
            0x21, told["crc"], told["compressed"], told["size"], len(told["name"]), len(told["extra"]),
            len(told["comment"]), told["disk"], 0, told["attributes"], told["offset"],
        )  # fmt: skip
        return head + told["name"] + told["extra"] + told["comment"]


def built(
    members: Iterable[Crafted],
    *,
    front: bytes = b"",
    base: int = 0,
    behind_list: bytes = b"",
    wide: bytes | None = None,
    comment: bytes = b"",
    **end: int,
) -> bytes:
    """The archive.

    ``front`` stands before it, offsets count from ``base``; ``wide`` stands where ZIP64 records would;
    ``end`` replaces fields of the last record: disk, here, files, size, start, comment_size.
    """
    body = bytearray()
    listed = []
    for member in members:
        if member.listed:
            listed.append(member.record(base + len(body)))
        if member.lies:
            body += member.before() + member.packed() + member.behind
    names = b"".join(listed)
    told = {
        "disk": 0,
        "here": len(listed),
        "files": len(listed),
        "size": len(names),
        "start": base + len(body),
        "comment_size": len(comment),
    } | end
    last = pack(
        "<4sHHHHIIH", b"PK\5\6", told["disk"], told["disk"], told["here"], told["files"], told["size"],
        told["start"], told["comment_size"],
    )  # fmt: skip
    return front + bytes(body) + names + behind_list + (wide or b"") + last + comment


def wide_end(files: int, size: int, start: int, at: int, *, disks: int = 1) -> bytes:
    """A ZIP64 end record and its locator, which says that the record stands at ``at``."""
    record = pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, files, files, size, start)
    return record + pack("<4sIQI", b"PK\6\7", 0, at, disks)


def extra_field(tag: int, content: bytes) -> bytes:
    return pack("<HH", tag, len(content)) + content
