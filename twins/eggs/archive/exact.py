"""The exact layout of RAPP/1 eggs: what an archive's records say beyond it."""

from __future__ import annotations

from collections.abc import Sequence

from twins.eggs.archive.directory import Entry
from twins.eggs.archive.layout import CENTRAL, EPOCH, UTF8

_VERSION = 20


def departures(entries: Sequence[Entry], *, bare: bool) -> list[str]:
    """One sentence for each way in which the records differ from the layout."""
    found: dict[str, None] = {}
    for entry in entries:
        _, made, needed, flags, _, time, date, _, _, _, _, _, _, _, inner, outer, _ = CENTRAL.unpack(
            entry.head
        )
        if (made, needed) != (_VERSION, _VERSION):
            found["The archive names another ZIP version than 2.0."] = None
        if flags != UTF8:
            found["Names are not marked as UTF-8, or more than that is marked."] = None
        if (time, date) != EPOCH:
            found["Files carry other times than 1980-01-01."] = None
        if inner or outer:
            found["Files carry attributes."] = None
        if entry.folder:
            found["Folders are listed."] = None
    if not bare:
        found["Records carry comments, extra fields, or differ from the list."] = None
    return list(found)
