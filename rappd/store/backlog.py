"""What stands in the intake and not yet in the tables: records and takings, for the writer to carry."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec

from rappd.errors import StoreError
from rappd.store.changes import Beginning, Change, Key, Reply, Taking, came_before
from rappd.store.intake import Intake
from rappd.store.records import Record, ThreadInfo
from rappd.store.seen import Seen
from rappd.store.syncing import Log
from rappd.store.tables import Done, Entry, Tables

log = logging.getLogger(__name__)

CARRY_SECONDS = 0.02
"""Nothing is behind for longer."""
LATELY_SECONDS = 1.0
"""So long after the last was carried somebody looks whether there is more, and needs not be woken."""
STUCK_SECONDS = 5.0
MOST = 64
"""Entries behind after which they are carried, whenever that is."""
MANY = 8
"""More entries at once go into the tables directly: then one transaction serves many."""
MOST_BYTES = 64 << 10
"""More at once would only be written twice."""

_ENDLESS = 1 << 63
_Item = Record | ThreadInfo | Taking | Reply
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Item]).decode


class Backlog:
    """For whoever has the writer's lock; ``is_behind`` and ``may_hold`` may be asked from any thread."""

    def __init__(self, path: Path, tables: Tables, log_file: Log) -> None:
        """Holds what an earlier process left. Raises ``StoreError``, ``sqlite3.Error`` and OSError."""
        self._tables = tables
        self._log = log_file
        self._entries: list[tuple[int, Entry]] = []
        self._taken: set[Key] = set()
        self._answers: set[tuple[str, str]] = set()
        self._rows = self._bytes = 0
        self._due = 0.0
        self._carried_at = float("-inf")
        self._is_stuck = False
        self.intake = Intake.open(path)
        if self.intake is None:
            log.info(
                "another process writes this record, too: what is written here goes into the tables at once"
            )
            return
        try:
            self._mark, carried = tables.carried()
            for number, payload in self.intake.left(self._mark, carried):
                items = _known(payload)
                self._add(number, items, list(map(_records, items)))
        except BaseException:
            self.intake.close(remove=False)
            raise

    def begin(self) -> None:
        """From now on it takes entries; nothing is behind. Raises ``sqlite3.Error`` and OSError."""
        if self.intake is not None:
            self._to_disk()
            self.intake.begin(self._mark, self._tables.carried()[1])

    @property
    def is_behind(self) -> bool:
        """Whether the tables lack anything that was acknowledged."""
        return bool(self._entries)

    def may_hold(self, caller: str, id: str) -> bool:
        """Whether the answer to a turn is perhaps still on its way into the tables."""
        return (caller, id) in self._answers

    @property
    def patience(self) -> float | None:
        """Seconds until it is due; None while nothing is behind, and nothing was lately."""
        now = time.monotonic()
        if self._entries:
            return max(0.0, self._due - now)
        return CARRY_SECONDS if now < self._carried_at + LATELY_SECONDS else None

    @property
    def is_due(self) -> bool:
        """Whether it is time to carry."""
        if len(self._entries) >= MOST or self._bytes >= MOST_BYTES:
            return not self._is_stuck
        return bool(self._entries) and time.monotonic() >= self._due

    def take(self, batch: list[Entry], *, strict: bool, seen: Seen | None = None) -> tuple[Done, Done] | None:
        """Appends them to the file: who can be told now, and who once that is on the disk. None, and nothing done,
        for what goes into the tables directly: changes, what came before, what is large.

        With ``seen`` the tables are not asked: None for whatever would need them, too.
        """
        if self.intake is None or self._is_stuck or len(batch) > MANY:
            return None
        if seen is not None and not (self._tables.knows_seq and self.intake.has_room):
            return None
        items: list[_Item] = []
        appended: list[list[Record]] = []
        keys: list[Key] = []
        size = 0
        for item, _, waits_for_disk in batch:
            if item is None and waits_for_disk:  # for what was put before it
                continue
            if item is None or isinstance(item, Change | Beginning):
                return None
            items.append(item)
            if isinstance(item, Taking):
                keys.append((item.sender, item.id, item.verb))
                size += len(item.body)
            appended.append(_records(item))
            for record in appended[-1]:
                size += len(record.body)
                if not 0 <= record.at < _ENDLESS:  # the chain has no place for that: who waits is told
                    return None
        if size > MOST_BYTES or not self.intake.make_room():
            return None
        try:
            if keys and self._came_before(keys, seen):
                return None
            seq = self._tables.seq + self._rows
            if items:
                payload = _encode(items)
                self._add(self.intake.append(payload), items, appended)
                self._bytes += len(payload)
        except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
            log.info("%d entries go into the tables at once: %s", len(batch), error)
            return None
        done: Done = []
        to_sync: Done = []
        each = iter(appended)
        for item, waiter, waits_for_disk in batch:
            seq += len(next(each)) if item is not None else 0
            if waiter is not None:
                result = None if isinstance(item, Taking) else seq
                (to_sync if strict or waits_for_disk else done).append((waiter, result))
        return done, to_sync

    def entries(self) -> tuple[int, list[Entry]]:
        """All that is behind, and the number of its last frame."""
        return self._entries[-1][0], [entry for _, entry in self._entries]

    def frames(self) -> list[tuple[int, list[Entry]]]:
        """The same frame by frame."""
        return [
            (number, [entry for _, entry in some]) for number, some in groupby(self._entries, itemgetter(0))
        ]

    def carried(self) -> None:
        """The tables have all of it."""
        self._entries = []
        self._taken = set()
        self._answers = set()
        self._rows = self._bytes = 0
        self._is_stuck = False
        self._carried_at = time.monotonic()
        if self.intake is not None and self.intake.is_full:
            try:
                self._to_disk()
            except OSError as error:
                log.warning("the record could not be synced to the disk: %s", error)
            else:
                self.intake.start_over()

    def give_room(self) -> bool:
        """Leaves the tables what the file has in reserve; False where it has none. Raises OSError."""
        return self.intake is not None and self.intake.give_room()

    def stuck(self) -> None:
        """The tables could not take it now; it stays in the file, which takes no more."""
        self._is_stuck = True
        self._due = time.monotonic() + STUCK_SECONDS

    def close(self) -> None:
        """Gives the file back, and removes it where the tables have all of it."""
        if self.intake is not None:
            done = not self._entries
            try:
                if done:
                    self._to_disk()
            except OSError as error:
                log.warning("the record could not be synced to the disk: %s", error)
                done = False
            self.intake.close(remove=done)

    def _to_disk(self) -> None:
        """What stands in the file stands on the disk elsewhere. Raises OSError."""
        if self.intake is not None and self.intake.is_used:
            with suppress(
                FileNotFoundError
            ):  # without a log all of it is in the tables' file, and was synced
                self._log.sync()

    def _came_before(self, keys: list[Key], seen: Seen | None) -> bool:
        if not self._taken.isdisjoint(keys) or len(set(keys)) < len(keys):
            return True
        if seen is not None:
            return any(seen.may_hold(sender, id) for sender, id, _ in keys)
        return came_before(self._tables.db, keys)

    def _add(self, number: int, items: list[_Item], appended: list[list[Record]]) -> None:
        if not self._entries:
            self._due = time.monotonic() + CARRY_SECONDS
        for item, records in zip(items, appended, strict=True):
            self._rows += len(records)
            if isinstance(item, Taking):
                self._taken.add((item.sender, item.id, item.verb))
            for record in records:
                if record.answers or isinstance(item, Reply):
                    self._answers.add((record.recipient, record.id))
        self._entries += [(number, (item, None, False)) for item in items]


def _known(payload: bytes) -> list[_Item]:
    try:
        return _decode(payload)
    except msgspec.DecodeError as error:
        told = "What was acknowledged last was written by another version of rappd."
        raise StoreError(told, do="Start that one once, then stop it.") from error


def _records(item: _Item) -> list[Record]:
    """Those that it appends."""
    if isinstance(item, Record):
        return [item]
    if isinstance(item, Reply):
        return [item.record]
    if isinstance(item, Taking):
        return [record for record in item.records if isinstance(record, Record)]
    return []
