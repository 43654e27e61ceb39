"""The record in front of each file: it must say what the list says, and the files must tile the archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from operator import add, not_
from typing import NamedTuple

from twins.fs.untrusted_names import shown
from twins.zip.archive_bounds import FileSlice
from twins.zip.central_directory import CentralDirectory, Entry
from twins.zip.record_fields import (
    FIXED,
    NEEDLESS,
    DirectoryColumns,
    Fields,
    decode_name,
    fields,
    wide_values,
)
from twins.zip.record_formats import (
    DESCRIPTOR_SIGN,
    FULL32,
    LOCAL,
    LOCAL_SIGN,
    SIZES_FOLLOW,
    STORED,
)

_DESCRIPTORS = (12, 16, 20, 24)  # with and without a signature, with sizes of 32 and 64 bits
_BLOCK = 64 << 10  # records of small files are read several at once
_SPEED_BITS = 0x0006  # how hard the compressor tried; writers forget it in one place or the other


class Member(NamedTuple):
    """One file. ``name`` is safe, ``compressed`` what it takes in the archive, ``data`` where that begins."""

    name: str
    size: int
    compressed: int
    crc: int
    stored: bool
    data: int


class LocatedMember(NamedTuple):
    """Members in the order of the list. ``bare``: every record in front is the one in the list, no more."""

    members: list[Member]
    bare: bool


def locate(window: FileSlice, directory: CentralDirectory, deviations: dict[str, None]) -> LocatedMember:
    """Reads every file's own record.

    Raises ``HostileEggError`` where two files share bytes, where bytes belong to none, and where a record
    differs from the list; ``BadEggError`` where there is no record.
    """
    if directory.plain is not None and directory.bare:
        members = _bare_members(window, directory.plain, directory.start)
        if members is not None:
            return LocatedMember(members, True)
    entries = directory.entries
    order = sorted(range(len(entries)), key=lambda place: entries[place].offset)
    if order != list(range(len(entries))):
        deviations["The files lie in another order than the list names them."] = None
    places = [0] * len(entries)
    bare = True
    starts = [*(entries[place].offset for place in order), directory.start]
    if starts[0] != 0:
        raise window.hostile("Something else stands in front of this archive")
    lengths = [LOCAL.size + len(entries[place].raw) for place in order]
    for place, end, head in zip(order, starts[1:], _heads(window, starts, lengths), strict=True):
        entry = entries[place]
        data = entry.offset + len(head)
        if not (directory.bare and _is_bare(head, entry) and data + entry.compressed == end):
            bare = False
            data = _judge(head, entry, end, window, deviations)
        places[place] = data
    members = [_member(entry, data) for entry, data in zip(entries, places, strict=True) if not entry.folder]
    return LocatedMember(members, bare)


def locate_one(window: FileSlice, directory: CentralDirectory, name: str) -> Member:
    """Reads the record in front of one file alone. Raises as ``locate`` for what is wrong with this one."""
    entry = directory.entry(name)
    head = window.read(entry.offset, LOCAL.size + len(entry.raw))
    return _member(entry, _judge(head, entry, directory.next_after(entry), window, {}))


def _bare_members(window: FileSlice, plain: DirectoryColumns, end: int) -> list[Member] | None:
    """The members, if every record in front of one is the one in the list; None leaves it to the look at each.

    They must lie in the order of the list, side by side.
    """
    lengths = [LOCAL.size + len(raw) for raw in plain.raws]
    places = list(map(add, plain.offsets, lengths))
    starts = [*plain.offsets, end]
    if starts[0] or list(map(add, places, plain.compressed)) != starts[1:]:
        return None
    if any(flags & SIZES_FOLLOW for flags in set(plain.flags)):
        return None
    headers = [LOCAL_SIGN + record[2:26] + b"\0\0" + record[FIXED:] for record in plain.records]
    if headers != list(_heads(window, starts, lengths)):
        return None
    stored = map(STORED.__eq__, plain.methods)
    found = map(Member, plain.names, plain.sizes, plain.compressed, plain.crcs, stored, places)
    return list(compress(found, map(not_, plain.folders)))


def _heads(window: FileSlice, starts: Iterable[int], lengths: Iterable[int]) -> Iterator[bytes]:
    """The fixed part and the name of every record, ``starts`` ascending."""
    block, block_at, block_end = b"", 0, 0
    for start, length in zip(starts, lengths, strict=False):
        if start + length > block_end:
            block = window.read(start, max(length, min(_BLOCK, window.length - start)))
            block_at, block_end = start, start + len(block)
        yield block[start - block_at : start - block_at + length]


def _member(entry: Entry, data: int) -> Member:
    return Member(entry.name, entry.size, entry.compressed, entry.crc, entry.method == STORED, data)


def _is_bare(head: bytes, entry: Entry) -> bool:
    """True when a record in front says what the list says, and nothing besides."""
    return (
        head[:4] == LOCAL_SIGN
        and head[4:28] == entry.head[6:30]
        and head[28:30] == b"\0\0"
        and head[30:] == entry.raw
        and not entry.flags & SIZES_FOLLOW
    )


def _judge(head: bytes, entry: Entry, end: int, window: FileSlice, deviations: dict[str, None]) -> int:
    """The start of the file's bytes, once its record is judged; the next record begins at ``end``."""
    if not head.startswith(LOCAL_SIGN):
        raise window.damaged(shown(entry.name))
    extra_length = head[28] | head[29] << 8
    data = entry.offset + len(head) + extra_length
    rest = end - data - entry.compressed
    if rest < 0:
        raise window.hostile(f"{shown(entry.name)} shares bytes with another file")
    found = fields(window.read(data - extra_length, extra_length), entry.name, window)
    _compare(head, entry, found, window, deviations)
    _descriptor(entry, data, rest, window, deviations)
    return data


def _compare(
    head: bytes, entry: Entry, found: Fields, window: FileSlice, deviations: dict[str, None]
) -> None:
    """True when the record in front tells the same file; sizes may be left to what follows the file."""
    _, _, flags, method, _, _, crc, compressed, size, *_ = LOCAL.unpack_from(head)
    name = shown(entry.name)
    if head[LOCAL.size :] != entry.raw or len(entry.raw) != head[26] | head[27] << 8:
        raise window.hostile(f"{name} has a second name")
    decode_name(entry.raw, flags, found, window, deviations)
    if method != entry.method or (flags ^ entry.flags) & ~_SPEED_BITS:
        raise window.hostile(f"{name} is described in two ways")
    wide = wide_values(found, name, window)
    if wide is not None:
        if len(wide) != 2:
            raise window.hostile(f"{name} has two sizes")
        if size != FULL32 and compressed != FULL32:
            deviations[NEEDLESS] = None
        elif size == FULL32 and compressed == FULL32:
            size, compressed = wide
    elif FULL32 in (size, compressed):
        raise window.damaged(name)
    sizes = (crc, compressed, size)
    if sizes == (entry.crc, entry.compressed, entry.size):
        return
    later = flags & SIZES_FOLLOW
    if not later or any(a not in (0, b) for a, b in zip(sizes, entry[6:9], strict=True)):
        raise window.hostile(f"{name} has two sizes")


def _descriptor(entry: Entry, data: int, rest: int, window: FileSlice, deviations: dict[str, None]) -> None:
    """Checks the bytes between a file and the next record: none, or the sizes that follow."""
    if not rest and (not entry.flags & SIZES_FOLLOW or entry.folder):
        return
    if not rest:
        deviations["Sizes are announced behind the files and missing there."] = None
        return
    name = shown(entry.name)
    if not entry.flags & SIZES_FOLLOW or rest not in _DESCRIPTORS:
        raise window.hostile(f"This egg hides bytes behind {name}")
    octets = window.read(data + entry.compressed, rest)
    if rest in (16, 24):
        if not octets.startswith(DESCRIPTOR_SIGN):
            raise window.hostile(f"This egg hides bytes behind {name}")
        octets = octets[4:]
    width = 4 if len(octets) == 12 else 8
    header = (
        int.from_bytes(octets[:4], "little"),
        int.from_bytes(octets[4 : 4 + width], "little"),
        int.from_bytes(octets[4 + width :], "little"),
    )
    if header != (entry.crc, entry.compressed, entry.size):
        raise window.hostile(f"{name} has two sizes")
    deviations["Sizes follow the files."] = None
