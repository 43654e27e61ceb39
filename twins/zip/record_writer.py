"""The records that a writer puts down: one before each file, one in the list, those at the end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from twins.zip.record_formats import (
    CENTRAL,
    CENTRAL_SIGN,
    END,
    END64,
    END64_SIGN,
    END_SIGN,
    EPOCH,
    FIELD,
    FULL16,
    FULL32,
    LOCAL,
    LOCAL_SIGN,
    LOCATOR,
    LOCATOR_SIGN,
    UTF8,
    ZIP64_FIELD,
)

_VERSION, _VERSION64 = 20, 45
_ROOM = FIELD.size + 16
_LAST_YEAR = 2107


class MemberRecord(NamedTuple):
    """The fields that both records of a file have. ``room``: the one before it keeps 64 bits for its sizes."""

    raw: bytes
    room: bool
    method: int
    crc: int
    compressed: int
    size: int


def before_length(raw: bytes, *, room: bool) -> int:
    """Bytes of the record before a file of this name."""
    return LOCAL.size + len(raw) + (_ROOM if room else 0)


def before(record: MemberRecord, moment: tuple[int, int]) -> bytes:
    """The record before a file."""
    raw, room, method, crc, compressed, size = record
    if not room:
        return LOCAL.pack(
            LOCAL_SIGN, _VERSION, UTF8, method, *moment, crc, compressed, size, len(raw), 0
        ) + raw  # fmt: skip
    head = LOCAL.pack(
        LOCAL_SIGN, _VERSION64, UTF8, method, *moment, crc, FULL32, FULL32, len(raw), _ROOM
    )  # fmt: skip
    return head + raw + _wide(size, compressed)


def listed(record: MemberRecord, moment: tuple[int, int], offset: int) -> bytes:
    """The record in the list; numbers of more than 32 bits go to a ZIP64 field."""
    raw, room, method, crc, compressed, size = record
    extra = b""
    if max(size, compressed, offset) >= FULL32:
        extra = _wide(*(number for number in (size, compressed, offset) if number >= FULL32))
    version = _VERSION64 if room or extra else _VERSION
    head = CENTRAL.pack(
        CENTRAL_SIGN, version, version, UTF8, method, *moment, crc, min(compressed, FULL32), min(size, FULL32),
        len(raw), len(extra), 0, 0, 0, 0, min(offset, FULL32),
    )  # fmt: skip
    return head + raw + extra


def is_wide(files: int, size: int, start: int) -> bool:
    """True when the last record alone cannot say where a list is and what it holds."""
    return files >= FULL16 or size >= FULL32 or start >= FULL32


def ending(files: int, size: int, start: int) -> bytes:
    """The records behind a list of ``files`` in ``size`` bytes from ``start``."""
    wide = b""
    if is_wide(files, size, start):
        version = _VERSION64
        wide = END64.pack(
            END64_SIGN, END64.size - 12, version, version, 0, 0, files, files, size, start
        ) + LOCATOR.pack(LOCATOR_SIGN, 0, start + size, 1)  # fmt: skip
    short = min(files, FULL16)
    return wide + END.pack(END_SIGN, 0, 0, short, short, min(size, FULL32), min(start, FULL32), 0)


def moment(at: datetime | None) -> tuple[int, int]:
    """DOS time and date, to two seconds; what ZIP cannot say is brought to its first or last year."""
    if at is None:
        return EPOCH
    at = at.astimezone(UTC) if at.tzinfo else at
    if at.year < 1980:
        return EPOCH
    date = (min(at.year, _LAST_YEAR) - 1980) << 9 | at.month << 5 | at.day
    return at.hour << 11 | at.minute << 5 | at.second >> 1, date


def _wide(*numbers: int) -> bytes:
    octets = b"".join(number.to_bytes(8, "little") for number in numbers)
    return FIELD.pack(ZIP64_FIELD, len(octets)) + octets
