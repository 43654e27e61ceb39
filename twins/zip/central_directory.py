"""The list of files at an archive's end: found, believed only where it fits the file, and decoded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from operator import not_
from typing import NamedTuple

from twins.errors import BadEggError
from twins.fs.untrusted_names import safe_path, shown
from twins.zip.archive_bounds import FileSlice, Limits
from twins.zip.record_fields import (
    EMPTY_DEFLATED,
    KNOWN_VERSION,
    NEEDLESS,
    UNREADABLE,
    DirectoryColumns,
    Fields,
    columns,
    decode_name,
    fields,
    refuse_kind,
    wide_values,
)
from twins.zip.record_formats import (
    CENTRAL,
    CENTRAL_SIGN,
    DEFLATED,
    END,
    END64,
    END64_SIGN,
    END_SIGN,
    FULL16,
    FULL32,
    LOCATOR,
    LOCATOR_SIGN,
    STORED,
)

_METHODS = {9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz", 98: "ppmd", 99: "encryption"}
_TOP = b"./"  # the folder that a packer began in, listed as a member


class Entry(NamedTuple):
    """One record of the list: ``head`` is its fixed part, ``raw`` its name as it stands there."""

    name: str
    folder: bool
    head: bytes
    raw: bytes
    flags: int
    method: int
    crc: int
    compressed: int
    size: int
    offset: int


@dataclass
class CentralDirectory:
    """The list, and where it begins.

    ``bare``: no comments and no extra fields in it. It was read record by record (``listed``), or in one go
    because it is plain (``plain``).
    """

    start: int
    bare: bool
    listed: list[Entry] | None = None
    plain: DirectoryColumns | None = None

    @cached_property
    def entries(self) -> list[Entry]:
        """Every record."""
        if self.plain is None:
            return self.listed or []
        return list(map(Entry._make, self.plain.entries))

    @property
    def heads(self) -> Iterator[bytes]:
        """The fixed parts of all records."""
        if self.plain is None:
            return (entry.head for entry in self.entries)
        return map(self.plain.head, range(len(self.plain.names)))

    def entry(self, name: str) -> Entry:
        """The record of a file that there is."""
        if self.plain is not None:
            plain, place = self.plain, self.plain.names.index(name)
            return Entry(
                name,
                False,
                plain.head(place),
                plain.raws[place],
                plain.flags[place],
                plain.methods[place],
                plain.crcs[place],
                plain.compressed[place],
                plain.sizes[place],
                plain.offsets[place],
            )
        return next(entry for entry in self.entries if entry.name == name and not entry.folder)

    def next_after(self, entry: Entry) -> int:
        """The start of the record of the next file, or of the central directory."""
        place = bisect_right(self._offsets, entry.offset)
        return self._offsets[place] if place < len(self._offsets) else self.start

    @cached_property
    def _offsets(self) -> list[int]:
        return sorted(self.plain.offsets if self.plain is not None else [one.offset for one in self.entries])

    @cached_property
    def files(self) -> dict[str, int]:
        """Names of the files, with the bytes each unpacks to."""
        if self.plain is not None:
            found = zip(self.plain.names, self.plain.sizes, strict=True)
            return dict(compress(found, map(not_, self.plain.folders)) if self.plain.any_folder else found)
        return {entry.name: entry.size for entry in self.entries if not entry.folder}

    @cached_property
    def any_folder(self) -> bool:
        """True when folders are listed by themselves, be it only the one that a packer began in."""
        if self.plain is not None:
            return self.plain.any_folder
        return any(entry.folder for entry in self.entries)

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """Folders that are listed by themselves."""
        if self.plain is not None:
            return tuple(compress(self.plain.names, self.plain.folders))
        return tuple(entry.name for entry in self.entries if entry.folder and entry.name)


def read_directory(window: FileSlice, limits: Limits, deviations: dict[str, None]) -> CentralDirectory:
    """Reads the list of ``window``'s archive and refuses what it can tell by itself.

    Raises ``BadEggError`` for damage and what cannot be read here, ``HostileEggError`` for names that lead
    outside, links and devices, and more than ``limits`` allow. What was let pass goes to ``deviations``.
    """
    ending = find_end_record(window, limits, deviations)
    octets = window.read(ending.start, ending.size)
    plain = columns(octets, ending.files, window)
    if plain is not None:
        return CentralDirectory(ending.start, plain.bare and not ending.comment, plain=plain)
    entries = []
    bare = not ending.comment
    at = 0
    for _ in range(ending.files):
        head = octets[at : at + CENTRAL.size]
        if len(head) < CENTRAL.size or not head.startswith(CENTRAL_SIGN):
            raise window.damaged("its list of files")
        (
            _, _, needs, flags, method, _, _, crc, compressed, size,
            name_length, extra_length, comment_length, disk, _, attributes, offset,
        ) = CENTRAL.unpack(head)  # fmt: skip
        at += CENTRAL.size
        raw = octets[at : at + name_length]
        at += name_length
        name = raw.decode("latin-1")
        if needs & 0xFF > KNOWN_VERSION:
            raise window.unreadable("This archive needs a later ZIP than 6.3")
        if disk:
            raise window.unreadable("This archive is one of several parts")
        if extra_length or FULL32 in (size, compressed, offset) or not raw.isascii():
            found = fields(octets[at : at + extra_length], name, window)
            size, compressed, offset = _widened(found, [size, compressed, offset], name, window, deviations)
            name = decode_name(raw, flags, found, window, deviations)
        at += extra_length + comment_length
        if extra_length or comment_length:
            bare = False
        if comment_length:
            deviations["Files carry comments."] = None
        if at > len(octets):
            raise window.damaged("its list of files")
        if name.startswith("./"):
            deviations['Names begin with "./".'] = None
            name = name[2:] or "/"
        folder = name.endswith("/")
        if folder:
            name = name[:-1]
            if size or compressed > EMPTY_DEFLATED:
                raise window.hostile(f"{shown(name)} is a file and a folder in this egg")
        if raw != _TOP:
            safe_path(name)
        if attributes:
            refuse_kind(attributes, name, folder, window)
        if flags & UNREADABLE:
            raise window.unreadable(f"{shown(name)} is encrypted")
        if method != DEFLATED and (method != STORED or compressed != size):
            raise _odd_method(method, name, window)
        entries.append(Entry(name, folder, head, raw, flags, method, crc, compressed, size, offset))
    if at != len(octets):
        raise window.hostile("This egg hides bytes in its list of files")
    return CentralDirectory(ending.start, bare, entries)


def _odd_method(method: int, name: str, window: FileSlice) -> BadEggError:
    if method == STORED:
        return window.hostile(f"{shown(name)} has two sizes")
    return window.unreadable(f"{shown(name)} is packed with {_METHODS.get(method, f'method {method}')}")


def _widened(
    found: Fields, numbers: list[int], name: str, window: FileSlice, deviations: dict[str, None]
) -> list[int]:
    """Size, compressed and offset, each from the ZIP64 field where the record says so and only there."""
    wanted = [place for place, number in enumerate(numbers) if number == FULL32]
    wide = wide_values(found, name, window)
    if wide is None:
        if wanted:
            raise window.damaged("its list of files")
        return numbers
    if not wanted and wide[:3] == numbers[: len(wide)]:
        deviations[NEEDLESS] = None
    elif len(wide) != len(wanted):
        raise window.hostile(f"{shown(name)} has two sizes")
    for place, number in zip(wanted, wide, strict=False):
        numbers[place] = number
    return numbers


_MOST_COMMENT = 0xFFFF
_MOST_LIST = 64 << 20
_BLOCK = 10240


class EndRecord(NamedTuple):
    """Place and bytes of the list, how many files it names, and the archive's comment."""

    start: int
    size: int
    files: int
    comment: bytes


def find_end_record(window: FileSlice, limits: Limits, deviations: dict[str, None]) -> EndRecord:
    """Raises ``BadEggError`` where the end is missing, ``HostileEggError`` where bytes stand around the archive."""
    reach = min(window.length, END.size + _MOST_COMMENT)
    tail = window.read(window.length - reach, reach)
    place, after = _place(tail, window)
    record = END.unpack_from(tail, place)
    comment = tail[place + END.size : after]
    if comment:
        deviations["The archive carries a comment."] = None
    if after < len(tail):
        deviations["Zeros fill the archive up to a block."] = None
    at = window.length - reach + place
    _, disk, list_disk, here, count, size, start, _ = record
    wide = _wide(window, at)
    if wide is not None:
        at -= END64.size + LOCATOR.size
        narrow = (disk, list_disk, here, count, size, start)
        if any(a not in (b, full) for a, b, full in zip(narrow, wide, _FULL, strict=True)):
            raise window.hostile("This archive has two ends that differ")
        if FULL16 not in narrow[:4] and FULL32 not in narrow[4:]:
            deviations[NEEDLESS] = None
        disk, list_disk, here, count, size, start = wide
    if disk or list_disk or here != count:
        raise window.unreadable("This archive is one of several parts")
    if count > limits.members or size > _MOST_LIST:
        raise window.hostile(f"This egg holds more than {limits.members} files")
    if start + size > at or size < count * CENTRAL.size:
        raise window.damaged("its list of files")
    if start + size < at:
        if size and window.read(at - size, len(CENTRAL_SIGN)) == CENTRAL_SIGN:
            raise window.hostile("Something else stands in front of this archive")
        raise window.hostile("This egg hides bytes behind its list of files")
    return EndRecord(start, size, count, comment)


_FULL = (FULL16, FULL16, FULL16, FULL16, FULL32, FULL32)


def _place(tail: bytes, window: FileSlice) -> tuple[int, int]:
    """The start and end in ``tail`` of the one end record, its comment included.

    It reaches to the end, save for less than a block of zeros, as writers that think in tapes leave.
    """
    filled = max(len(tail.rstrip(b"\0")), len(tail) - _BLOCK + 1)
    last = []
    early = False
    place = tail.find(END_SIGN)
    while 0 <= place <= len(tail) - END.size:
        after = place + END.size + int.from_bytes(tail[place + 20 : place + 22], "little")
        if filled <= after <= len(tail):
            last.append((place, after))
        early = early or after < filled
        place = tail.find(END_SIGN, place + 1)
    if len(last) > 1:
        raise window.hostile("This archive has two ends")
    if last:
        return last[0]
    if early:
        raise window.hostile("Something else stands behind this archive")
    raise window.damaged("its end is missing")


def _wide(window: FileSlice, at: int) -> tuple[int, ...] | None:
    """The ZIP64 end record, if one stands right before the end record at ``at``."""
    if at < LOCATOR.size:
        return None
    sign, disk, place, disks = LOCATOR.unpack(window.read(at - LOCATOR.size, LOCATOR.size))
    if sign != LOCATOR_SIGN:
        return None
    if place != at - LOCATOR.size - END64.size or disk or disks > 1:
        raise window.hostile("Something else stands in or around this archive")
    sign, follows, _, _, *numbers = END64.unpack(window.read(place, END64.size))
    if sign != END64_SIGN or follows != END64.size - 12:
        raise window.damaged("its end")
    return tuple(numbers)
