"""Compares the event log, as a pass over it rebuilds it, with the anchors that were signed here and kept by peers."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envelopes.identity.anchor import (
    BUCKET,
    ENTRY_BYTES,
    Anchor,
    BadAnchorError,
    EventRoot,
    bucket_hash,
    parts,
    read_anchor,
    root_of,
    thread_key,
)
from rappd.store.anchor_file import NAME, AnchorFile
from rappd.store.anchor_signing import MADE_ANEW, continues, entries_at, made_anew, thread_name

_LISTED = 50


@dataclass(slots=True)
class Witness:
    """One peer's answer: the anchors of this event log that it keeps. ``trouble``: why there are none."""

    name: str
    anchors: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """Each with the fault that the peer found in it, "" for none."""
    trouble: str = ""

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {"name": self.name, "anchors": len(self.anchors), "trouble": self.trouble}


@dataclass(slots=True)
class Anchored:
    """The event log compared with its anchors. ``since`` is the first of an unbroken row of them."""

    newest: Anchor | None
    since: Anchor | None
    unanchored: int
    witnesses: list[Witness]

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "newest": self.newest.to_json() if self.newest else None,
            "since": self.since.to_json() if self.since else None,
            "unanchored": self.unanchored,
            "witnesses": [one.as_json() for one in self.witnesses],
        }


class AnchorProof:
    """For one pass. ``public`` is the identity key; ``problems`` are (thread or "", text) afterwards."""

    def __init__(self, database: Path, public: bytes, witnesses: Iterable[Witness] = ()) -> None:
        """Reads the anchors. Raises ``StoreError`` when their file cannot be read."""
        self.problems: list[tuple[str, str]] = []
        self.touched: set[int] = set()
        """Numbers of threads that the pass went over since the last comparison."""
        self._public = public
        self._path = database.with_name(NAME)
        self._witnesses = list(witnesses)
        self._root = EventRoot()
        self._pending: dict[int, list[tuple[Anchor, str]]] = {}
        self._hashes: set[tuple[int, str]] = set()
        self._differs = False
        with AnchorFile(self._path) as file, file.snapshot():
            bodies = file.anchors()
            self._body = bodies[-1] if bodies else None
            self._buckets = list(file.buckets())
            self._restored = file.restored
            self._contradicted_before = file.contradicted
            self._database = file.database
        self._own = self._chained(bodies)
        for anchor in self._own:
            self._hold(anchor, "")
        for witness in self._witnesses:
            self._hear(witness)

    @property
    def newest(self) -> Anchor | None:
        """The newest anchor of this machine's own."""
        return self._own[-1] if self._own else None

    def stops(self, total: int) -> Iterator[int]:
        """Numbers of events after which ``compare`` wants to be called."""
        yield from sorted(events for events in self._pending if events <= total)

    def compare(self, db: sqlite3.Connection, events: int, ends: dict[int, tuple[int, bytes]]) -> None:
        """Compares the first ``events`` events, whose threads end as ``ends`` says, with what was signed."""
        for number, octets in entries_at(db, ends, self.touched):
            self._root.put(number, octets)
        self.touched.clear()
        root = self._root.root().hex()
        for anchor, source in self._pending.pop(events):
            if anchor.root != root or anchor.threads != self._root.threads:
                self._contradicted(
                    anchor, source, f"the first {events} events are not those that were signed"
                )

    def finish(self, db: sqlite3.Connection, events: int) -> None:
        """The pass is over; ``db`` stands at its last moment."""
        counter, database = db.execute(
            "SELECT counter, (SELECT id FROM database_id) FROM anchored"
        ).fetchone()
        if made_anew(self._database, database) and not self._restored and not self._contradicted_before:
            self._add(MADE_ANEW)
        for last in sorted(self._pending):
            for anchor, source in self._pending[last]:
                gone = f"{last - events} of {last} events that were signed are gone from the end"
                self._contradicted(anchor, source, gone)
        self._check_file(counter, events)
        if self._differs:
            self._name_threads(db)

    def result(self, events: int) -> Anchored:
        """The log of so many events compared with its anchors."""
        newest = self.newest
        unanchored = max(0, events - newest.events) if newest else events
        return Anchored(newest, self._own[0] if self._own else None, unanchored, self._witnesses)

    def _chained(self, bodies: list[dict[str, Any]]) -> list[Anchor]:
        """This machine's anchors since the last one that need not continue what was before."""
        own: list[Anchor] = []
        for body in reversed(bodies):
            try:
                anchor = read_anchor(body, self._public)
            except BadAnchorError:
                if not self._restored:
                    self._add(f"an anchor in {NAME} is not signed by this machine's key")
                break
            if own and own[-1].counter == anchor.counter + 1 and own[-1].previous != anchor.hash:
                self._add(f"anchor {own[-1].counter} does not follow anchor {anchor.counter}")
            own.append(anchor)
            if anchor.note in ("restored", "accepted"):
                break
        return own[::-1]

    def _hear(self, witness: Witness) -> None:
        for body, fault in witness.anchors:
            try:
                anchor = read_anchor(body, self._public)
            except BadAnchorError:
                witness.trouble = "sent anchors that this machine did not sign"
                continue
            if fault:
                self._add(f"{witness.name} was given anchor {anchor.counter}, {fault}, {_date(anchor)}")
            known = {one.hash for one in self._own if one.counter == anchor.counter}
            if known and anchor.hash not in known:
                self._add(f"{witness.name} keeps another anchor {anchor.counter}, {_date(anchor)}")
            if not known or anchor.hash not in known:
                self._hold(anchor, f"{witness.name} keeps ")

    def _hold(self, anchor: Anchor, source: str) -> None:
        if (anchor.events, anchor.hash + source) not in self._hashes:
            self._hashes.add((anchor.events, anchor.hash + source))
            self._pending.setdefault(anchor.events, []).append((anchor, source))

    def _check_file(self, counter: int, events: int) -> None:
        """The record of its anchors in the database; they are read anew, for a later one may have been signed."""
        with AnchorFile(self._path) as file:
            now = file.newest()
        last = int(now["counter"]) if now and isinstance(now.get("counter"), int) else 0
        if counter > last and not self._restored:
            there = f"ends at anchor {last}" if now else "is gone"
            self._add(f"{NAME} {there}, and the database knows of anchor {counter}")
        if self._contradicted_before:
            self._differs = True
            self._add(f"rappd found, and signed nothing since: {self._contradicted_before}")
        newest = self.newest
        if newest is not None and newest.closed and now == self._body and events > newest.events:
            self._differs = True
            if not self._restored and not self._contradicted_before:
                self._add(f"{events - newest.events} events were put in while rappd was stopped")

    def _contradicted(self, anchor: Anchor, source: str, what: str) -> None:
        self._differs = True
        self._add(f"{what} ({source}anchor {anchor.counter}, {_date(anchor)})")

    def _name_threads(self, db: sqlite3.Connection) -> None:
        """Names threads that differ from the newest anchor; its entries count only while they have its root."""
        newest = self.newest
        if newest is None:
            return
        hashes = [bucket_hash(octets) for octets in self._buckets]
        if root_of(newest.threads, hashes).hex() != newest.root:
            self._add(f"the list of threads in {NAME} was changed, too, so none can be named")
            return
        anchored: set[bytes] = set()
        for index, bucket in enumerate(self._buckets):
            for offset in range(0, BUCKET * ENTRY_BYTES, ENTRY_BYTES):
                octets = bucket[offset : offset + ENTRY_BYTES]
                if any(octets):
                    anchored.add(octets[:16])
                    self._name(db, index * BUCKET + offset // ENTRY_BYTES + 1, octets)
        if newest.closed:
            self._name_more(db, anchored)

    def _name(self, db: sqlite3.Connection, number: int, octets: bytes) -> None:
        what = continues(db, number, octets)
        if what and len(self.problems) < _LISTED:
            self.problems.append((thread_name(parts(octets)[0]), what))

    def _name_more(self, db: sqlite3.Connection, anchored: set[bytes]) -> None:
        """Threads that an anchor of a stopped daemon does not have."""
        for (id,) in db.execute("SELECT id FROM threads WHERE count > 0"):
            if thread_key(id) not in anchored and len(self.problems) < _LISTED:
                self.problems.append((id, "was not there when it was signed"))

    def _add(self, what: str) -> None:
        if len(self.problems) < _LISTED:
            self.problems.append(("", what))


def _date(anchor: Anchor) -> str:
    return time.strftime("signed %Y-%m-%d %H:%M", time.localtime(anchor.at / 1e6))
