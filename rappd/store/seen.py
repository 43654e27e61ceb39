"""Which envelopes surely never came: asked on the event loop, which waits for no disk.

Two Bloom filters. One has what the tables had when they were opened, once a thread of its own has read that; the
other what was put since. To an envelope that they perhaps have, the tables are asked.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rappd.errors import StoreError
from rappd.store.connections import open_reading

log = logging.getLogger(__name__)

SINCE = 1 << 18
"""Envelopes since the start until the tables are asked needlessly more often than once in 200 times."""
LEAST = 1 << 12
ROWS, PAUSE_SECONDS = 500, 0.005
"""Read at a time, and the pause after them, in which others have the interpreter."""

_BITS_EACH = 16
_COUNT = "SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM events WHERE answers = 1)"
_KEYS = "SELECT sender, id FROM inbox UNION ALL SELECT recipient, id FROM events WHERE answers = 1"


class Seen:
    """``add`` and ``may_hold`` are for the event loop."""

    def __init__(self, path: Path) -> None:
        """Begins to read what the tables have. What is put from now on is to be added."""
        self._since = _Filter(SINCE)
        self._before: _Filter | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._learn, args=(path,), name="store-seen", daemon=True)
        self._thread.start()

    def add(self, sender: str, id: str) -> None:
        """One that comes now, or is answered."""
        self._since.add(hash((sender, id)))

    def may_hold(self, sender: str, id: str) -> bool:
        """False only for one that never came. True for all, until that is known."""
        key = hash((sender, id))
        return self._before is None or self._since.may_hold(key) or self._before.may_hold(key)

    def close(self) -> None:
        """Ends the reading."""
        self._closing.set()
        self._thread.join()

    def _learn(self, path: Path) -> None:
        try:
            with closing(open_reading(path)) as db:
                before = _Filter(max(LEAST, int(db.execute(_COUNT).fetchone()[0])))
                for rows in _in_parts(db):
                    for row in rows:
                        before.add(hash(row))
                    if self._closing.wait(PAUSE_SECONDS):
                        return
        except (sqlite3.Error, StoreError) as error:
            log.warning("the tables are asked for every envelope whether it came before: %s", error)
        else:
            self._before = before


class _Filter:
    """Of keys of 64 bits, for about so many."""

    def __init__(self, expected: int) -> None:
        size = 1 << (expected * _BITS_EACH - 1).bit_length()
        self._mask = size - 1
        self._bits = bytearray(size // 8)

    def add(self, key: int) -> None:
        bits, mask = self._bits, self._mask
        one, two, three = key & mask, (key >> 20) & mask, (key >> 40) & mask
        bits[one >> 3] |= 1 << (one & 7)
        bits[two >> 3] |= 1 << (two & 7)
        bits[three >> 3] |= 1 << (three & 7)

    def may_hold(self, key: int) -> bool:
        bits, mask = self._bits, self._mask
        one, two, three = key & mask, (key >> 20) & mask, (key >> 40) & mask
        return bool(
            bits[one >> 3] & 1 << (one & 7)
            and bits[two >> 3] & 1 << (two & 7)
            and bits[three >> 3] & 1 << (three & 7)
        )


def _in_parts(db: sqlite3.Connection) -> Iterator[list[tuple[str, str]]]:
    found = db.execute(_KEYS)
    while rows := found.fetchmany(ROWS):
        yield rows
