"""An archive's last records: where its list of files lies. One reading only, or the archive is refused."""

from __future__ import annotations

from typing import NamedTuple

from twins.zip.file_slice import FileSlice
from twins.zip.layout import (
    CENTRAL,
    CENTRAL_SIGN,
    END,
    END64,
    END64_SIGN,
    END_SIGN,
    FULL16,
    FULL32,
    LOCATOR,
    LOCATOR_SIGN,
)
from twins.zip.limits import Limits
from twins.zip.member_fields import NEEDLESS

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
