"""The exact layout of RAPP/1 eggs: what an archive's records say beyond it."""

from __future__ import annotations

from collections.abc import Iterable

from twins.zip.layout import CENTRAL, EPOCH, UTF8

_VERSION = 20
_VARYING = slice(16, 32)  # CRC, sizes and lengths; with the offset they alone may differ from file to file
_UNVARYING_END = CENTRAL.size - 4


def departures(heads: Iterable[bytes], *, folders: bool, bare: bool) -> list[str]:
    """One sentence for each way in which the records differ from the layout. ``heads`` are their fixed parts."""
    found: dict[str, None] = {}
    for head in {
        head[: _VARYING.start] + head[_VARYING.stop : _UNVARYING_END]: head for head in heads
    }.values():
        _, made, needed, flags, _, time, date, _, _, _, _, _, _, _, inner, outer, _ = CENTRAL.unpack(head)
        if (made, needed) != (_VERSION, _VERSION):
            found["The archive names another ZIP version than 2.0."] = None
        if flags != UTF8:
            found["Names are not marked as UTF-8, or more than that is marked."] = None
        if (time, date) != EPOCH:
            found["Files carry other times than 1980-01-01."] = None
        if inner or outer:
            found["Files carry attributes."] = None
    if folders:
        found["Folders are listed."] = None
    if not bare:
        found["Records carry comments, extra fields, or differ from the list."] = None
    return list(found)
