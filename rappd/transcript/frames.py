"""A workspace's threads as frames and back: how conversations travel in an egg (``rapp-frame/1.0``).

One stream per thread. A frame's payload is ``{thread, caller, session, title, body}``; ``body`` is the
recorded text itself, so that a restored thread has the very hash chain that was packed. Frames that another
machine wrote become a thread of their own, each in a record of its own, and travel on as they came.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from envelopes.codecs import emergence
from envelopes.codecs.emergence import GENESIS, link
from envelopes.envelope import DONE, THREAD, thread_id, thread_id_below
from envelopes.errors import MalformedError
from rappd.errors import StoreError
from rappd.store.reader import Reader
from rappd.store.records import Event, Record, ThreadInfo, ThreadRow
from rappd.store.store import Store
from twins.eggs.frames import MAX_LINE, Frame, chained, holds

KIND = "rappd-event"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_PATH = 64
_AT_ONCE = 500  # records that are written before other turns have theirs written


class RecordedConversations:
    """The threads of one workspace in a home's record, for packing. Works with the daemon up or down."""

    def __init__(self, database: Path, workspace: str) -> None:
        """``workspace``: the name that it has in the record, a twin's folder."""
        self._database = database
        self._workspace = workspace

    def frames(self, key: str) -> Iterator[Frame]:
        """Every thread, the oldest first; ``key`` names the streams. Blocks on the disk."""
        foreign: set[str] = set()
        with Reader(self._database) as record:
            for thread in record.threads_of(self._workspace):
                stream = _foreign_stream(record.events_of(thread.id))
                if stream is not None and stream not in foreign:
                    foreign.add(stream)
                    yield from filter(None, map(_foreign, record.events_of(thread.id)))
                else:
                    events = (
                        (_utc(event.at), KIND, _payload(thread, event.body))
                        for event in record.events_of(thread.id)
                    )
                    yield from chained(f"{key}:{thread.id}", events)


class ThreadsHeld:
    """The threads of one home's record, for plans. Works with the daemon up or down."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def holds(self, key: str, frames: Iterable[Frame]) -> bool:
        """True when ``RestoredConversations.restore`` would add nothing. Blocks on the disk."""
        if not self._database.exists():
            return False
        _, known = _known(self._database, key)
        if not known:
            return False
        with closing(_Streams(frames)) as streams:
            hatched: Hatched = {}
            return all(_chain(_thread(key, stream, hatched)[1])[-1] in known for stream in streams)


def _known(database: Path, key: str) -> tuple[dict[str, bytes], set[bytes]]:
    """The heads of a workspace's threads, and the hash of each event: it stands for all that was said before it."""
    with Reader(database) as record:
        heads = {thread.id: thread.head for thread in record.threads_of(key)}
        return heads, {event.hash for thread in heads for event in record.events_of(thread)}


class RestoredConversations:
    """The threads of one home's record, for hatching. ``restore`` is called off the event loop."""

    def __init__(self, store: Store, database: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._database = database
        self._loop = loop

    def restore(self, key: str, frames: Iterable[Frame]) -> int:
        """Adds what the threads of ``key`` lack and returns how many events were new.

        A thread that went on here in another way stays as it is; the hatched one stands beside it. What any
        thread of ``key`` holds already does not come again. Raises ``StoreError``; what was written until
        then is found there when it is tried again.
        """
        self._on_loop(self._write(None, []))
        heads, known = _known(self._database, key)
        with closing(_Streams(frames)) as streams:
            hatched: Hatched = {}
            return sum(self._add(*_thread(key, stream, hatched), known, heads) for stream in streams)

    def _add(
        self, info: ThreadInfo, records: list[Record], known: set[bytes], heads: dict[str, bytes]
    ) -> int:
        hashes = _chain(records)
        if hashes[-1] in known:
            return 0
        if heads.get(info.id, hashes[-1]) not in hashes:
            info, records = _beside(info, records, hashes[-1])
        begun = heads.get(info.id)
        missing = records[hashes.index(begun) + 1 if begun in hashes else 0 :]
        for some in range(0, len(missing), _AT_ONCE):
            self._on_loop(self._write(info, missing[some : some + _AT_ONCE]))
        known.update(hashes)
        heads[info.id] = hashes[-1]
        return len(missing)

    async def _write(self, info: ThreadInfo | None, records: list[Record]) -> None:
        if info is not None:
            self._store.thread(info)
        for record in records:
            self._store.queue(record)
        await self._store.flush()

    def _on_loop(self, work: Any) -> None:
        try:
            asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (RuntimeError, CancelledError) as error:  # the loop has ended, or is about to
            work.close()
            raise StoreError("The record is closed.", do="`rappd start` opens it.") from error


class _Streams:
    """Frames sorted by stream, each in its order, in a file of their own: merged eggs hold them by time."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("CREATE TABLE frames (stream TEXT, frame BLOB)")
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT INTO frames VALUES (?, ?)", ((one["stream_id"], orjson.dumps(one)) for one in frames)
        )
        self._db.execute("CREATE INDEX streams ON frames (stream)")

    def __iter__(self) -> Iterator[list[Frame]]:
        names = self._db.execute("SELECT stream FROM frames GROUP BY stream ORDER BY min(rowid)").fetchall()
        for (name,) in names:
            rows = self._db.execute("SELECT frame FROM frames WHERE stream = ? ORDER BY rowid", (name,))
            yield [orjson.loads(frame) for (frame,) in rows]

    def close(self) -> None:
        self._db.close()


def _payload(thread: ThreadRow, body: bytes) -> dict[str, Any]:
    try:
        text = {"body": body.decode()}
    except UnicodeDecodeError:
        text = {"body_hex": body.hex()}
    return {
        "thread": thread.id,
        "caller": thread.caller,
        "session": thread.session,
        "title": thread.title,
        **({"parent": thread.parent, "path": thread.names} if thread.parent else {}),
        **text,
    }


Hatched = dict[str, ThreadInfo]
"""Threads of an egg as they are here, by the ids that they have there; parents come before their children."""


def _thread(key: str, frames: list[Frame], hatched: Hatched) -> tuple[ThreadInfo, list[Record]]:
    """A stream as a thread of the workspace ``key``."""
    return _ours(key, frames, hatched) or _from_elsewhere(key, frames)


def _ours(key: str, frames: list[Frame], hatched: Hatched) -> tuple[ThreadInfo, list[Record]] | None:
    """None for anything that our record could not hold: it is kept as another machine's then."""
    first = frames[0]["payload"]
    if not isinstance(first, dict):
        return None
    caller, session, title = first.get("caller"), first.get("session"), first.get("title")
    if not (isinstance(caller, str) and caller and isinstance(title, str) and _is_json(session)):
        return None
    thread = thread_id(key, caller, session if isinstance(session, str) else str(first.get("thread")))
    above, path = None, None
    if "parent" in first:
        above = hatched.get(str(first["parent"]))
        path = _path_here(first.get("path"), above)
        if above is None or path is None:
            return None
        thread = thread_id_below(path[0], path[1:])
    try:
        records = [_record(thread, frame) for frame in frames]
    except (MalformedError, ValueError, KeyError, TypeError, AttributeError):
        return None
    info = ThreadInfo(thread, key, caller, session, title[:80], records[0].at)
    if above is not None:
        info.parent, info.path = above.id, orjson.dumps(path).decode()
    hatched[str(first.get("thread"))] = info
    return info, records


def _path_here(path: object, above: ThreadInfo | None) -> list[str] | None:
    """The path of a thread that hatches below ``above``: its root has another id here."""
    if above is None or not isinstance(path, list) or not all(isinstance(name, str) for name in path):
        return None
    names = orjson.loads(above.path) if above.path else [above.id]
    return [*names, *path[len(names) :]] if len(names) < len(path) <= _LONGEST_PATH else None


def _record(thread: str, frame: Frame) -> Record:
    if frame["kind"] != KIND:
        raise ValueError(frame["kind"])
    body = frame["payload"]["body"].encode()
    found = emergence.decode(body, max_bytes=MAX_LINE)
    at = _moment(frame["utc"])
    return Record(thread, found.verb, found.sender, found.recipient, found.id, body, at, parent=found.parent)


def _from_elsewhere(key: str, frames: list[Frame]) -> tuple[ThreadInfo, list[Record]]:
    stream = frames[0]["stream_id"]
    caller, session = stream[:200] or "frames", orjson.dumps(stream).decode()
    thread = thread_id(key, caller, session)
    records, at = [], 0
    for frame in frames:
        with suppress(ValueError):  # its own text stays in the frame
            at = _moment(frame["utc"])
        ident = hashlib.sha256(frame["hash"].encode()).hexdigest()
        uuid = f"{ident[:8]}-{ident[8:12]}-4{ident[13:16]}-8{ident[17:20]}-{ident[20:32]}"
        body = orjson.dumps(
            {"id": uuid, "from": caller, "to": key, "verb": DONE, "data": {"frame": frame}, THREAD: thread}
        )
        records.append(Record(thread, DONE, caller, key, uuid, body, at))
    return ThreadInfo(thread, key, caller, session, f"Frames of {stream[:60]}", records[0].at), records


def _foreign_stream(events: Iterator[Event]) -> str | None:
    """The stream of another machine that a thread holds, and nothing else; None for a conversation."""
    stream = None
    for event in events:
        frame = _foreign(event)
        if frame is None or stream not in (None, frame["stream_id"]):
            return None
        stream = str(frame["stream_id"])
    return stream


def _foreign(event: Event) -> Frame | None:
    """The frame of another machine that an event holds."""
    if event.verb != DONE or b'"frame"' not in event.body:
        return None
    try:
        data = orjson.loads(event.body)["data"]
        frame: Frame = data["frame"]
        known = data.keys() == {"frame"} and frame["stream_id"][:200] in (event.sender, "") and holds(frame)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return None
    return frame if known else None


def _chain(records: list[Record]) -> list[bytes]:
    hashes, head = [], GENESIS
    for record in records:
        head = link(head, record.at, record.body)
        hashes.append(head)
    return hashes


def _beside(info: ThreadInfo, records: list[Record], head: bytes) -> tuple[ThreadInfo, list[Record]]:
    """The same conversation as one of its own, which is named by where it ends."""
    session_fields = orjson.loads(info.session) if info.session else ""
    called = session_fields if isinstance(session_fields, str) else info.session
    session = orjson.dumps(f"{called}, as hatched {head.hex()[:16]}".lstrip(", ")).decode()
    thread = thread_id(info.workspace, info.caller, session)
    moved = ThreadInfo(
        thread, info.workspace, info.caller, session, f"{info.title} (as hatched)"[:80], info.at
    )
    return moved, [
        Record(thread, one.verb, one.sender, one.recipient, one.id, one.body, one.at, parent=one.parent)
        for one in records
    ]


def _is_json(session: object) -> bool:
    """True for a session that a thread may have: none, or JSON text."""
    if session is None:
        return True
    try:
        orjson.loads(session if isinstance(session, str) else b"")
    except orjson.JSONDecodeError:
        return False
    return True


def _utc(at: int) -> str:
    return (_EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(utc: str) -> int:
    """Microseconds since the epoch. Raises ``ValueError``."""
    found = datetime.fromisoformat(utc)
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return max(0, (found - _EPOCH) // timedelta(microseconds=1))
