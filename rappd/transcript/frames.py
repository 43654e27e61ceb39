"""A workspace's threads as frames and back: how conversations travel in an egg (``rapp-frame/1.0``).

One stream per thread. A frame's payload is ``{thread, caller, session, title, body}``; ``body`` is the
recorded text itself, so that a restored thread has the very hash chain that was packed.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from envelopes.chain import GENESIS, link
from envelopes.errors import Malformed
from envelopes.record import DONE, thread_id
from rappd.store.reading import Reader
from rappd.store.records import Record, ThreadInfo, ThreadRow
from rappd.store.store import Store
from twins.eggs.frames import Frame, chained
from twins.errors import BadEgg

KIND = "rappd-event"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RecordedConversations:
    """The threads of one home's record, for packing. Works with the daemon up or down."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def frames(self, key: str) -> Iterator[Frame]:
        """Every thread of the workspace ``key``, the oldest first. Blocks on the disk."""
        with Reader(self._database) as record:
            for thread in record.threads_of(key):
                said = (
                    (_utc(event.at), KIND, _payload(thread, event.body))
                    for event in record.events_of(thread.id)
                )
                yield from chained(f"{key}:{thread.id}", said)


class RestoredConversations:
    """The threads of one home's record, for hatching. ``restore`` is called off the event loop."""

    def __init__(self, store: Store, database: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._database = database
        self._loop = loop

    def restore(self, key: str, frames: Iterable[Frame]) -> int:
        """Adds what the threads of ``key`` lack and returns how many events were new.

        A thread that went on here in another way stays as it is; the hatched one stands beside it.
        """
        new = 0
        for _, stream in itertools.groupby(frames, key=lambda frame: frame["stream_id"]):
            info, records = _thread(key, list(stream))
            known = self._known(info.id)
            hashes = _chain(records)
            new += self._add(info, records, hashes, known)
        return new

    def _add(self, info: ThreadInfo, records: list[Record], hashes: list[bytes], known: list[bytes]) -> int:
        if known[: len(hashes)] == hashes:
            return 0
        if known != hashes[: len(known)]:
            info, records = _beside(info, records, hashes[-1])
            known = self._known(info.id)
            if known[: len(hashes)] == hashes:
                return 0
        missing = records[len(known) :]
        asyncio.run_coroutine_threadsafe(self._write(info, missing), self._loop).result()
        return len(missing)

    def _known(self, thread: str) -> list[bytes]:
        asyncio.run_coroutine_threadsafe(self._flushed(), self._loop).result()
        with Reader(self._database) as record:
            return [event.hash for event in record.events_of(thread)]

    async def _flushed(self) -> None:
        await self._store.flush()

    async def _write(self, info: ThreadInfo, records: list[Record]) -> None:
        self._store.thread(info)
        for record in records:
            self._store.queue(record)
        await self._store.flush()


def _payload(thread: ThreadRow, body: bytes) -> dict[str, Any]:
    return {
        "thread": thread.id,
        "caller": thread.caller,
        "session": thread.session,
        "title": thread.title,
        "body": body.decode(),
    }


def _thread(key: str, frames: list[Frame]) -> tuple[ThreadInfo, list[Record]]:
    first = frames[0]["payload"]
    ours = frames[0]["kind"] == KIND and isinstance(first, dict) and isinstance(first.get("body"), str)
    if ours:
        caller, session, title = (
            str(first.get("caller", "")),
            first.get("session"),
            str(first.get("title", "")),
        )
        session = session if isinstance(session, str) else None
    else:  # frames of another house: kept as they are, in a thread of their own
        caller, session, title = (
            frames[0]["stream_id"][:200],
            None,
            f"Frames of {frames[0]['stream_id'][:60]}",
        )
    name = session if session is not None else orjson.dumps(frames[0]["stream_id"]).decode()
    thread = thread_id(key, caller, name)
    records = [_record(thread, key, frame, ours=ours) for frame in frames]
    return ThreadInfo(thread, key, caller, session, title[:80], records[0].at), records


def _record(thread: str, key: str, frame: Frame, *, ours: bool) -> Record:
    at = _moment(frame["utc"])
    if not ours:
        ident = hashlib.sha256(frame["hash"].encode()).hexdigest()
        envelope = {
            "id": f"{ident[:8]}-{ident[8:12]}-4{ident[13:16]}-8{ident[17:20]}-{ident[20:32]}",
            "from": frame["stream_id"][:200],
            "to": key,
            "verb": DONE,
            "data": {"frame": frame},
            "_x_thread": thread,
        }
        return _read(thread, orjson.dumps(envelope), at)
    return _read(thread, frame["payload"]["body"].encode(), at)


def _read(thread: str, body: bytes, at: int) -> Record:
    try:
        found = orjson.loads(body)
        named = [found[key] for key in ("verb", "from", "to", "id")]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise BadEgg(
            "A conversation in the egg cannot be read; it was left out.", do="Get the egg again."
        ) from error
    if not all(isinstance(one, str) for one in named):
        raise BadEgg("A conversation in the egg cannot be read; it was left out.", do="Get the egg again.")
    verb, sender, recipient, ident = named
    return Record(thread, verb, sender, recipient, ident, body, at)


def _chain(records: list[Record]) -> list[bytes]:
    hashes, head = [], GENESIS
    for record in records:
        head = link(head, record.at, record.body)
        hashes.append(head)
    return hashes


def _beside(info: ThreadInfo, records: list[Record], head: bytes) -> tuple[ThreadInfo, list[Record]]:
    """The same conversation as a thread of its own, named by where it ends."""
    thread = thread_id(info.workspace, info.caller, f"{info.session}\n{head.hex()}")
    moved = ThreadInfo(thread, info.workspace, info.caller, None, f"{info.title} (as hatched)"[:80], info.at)
    return moved, [
        Record(thread, one.verb, one.sender, one.recipient, one.id, one.body, one.at) for one in records
    ]


def _utc(at: int) -> str:
    return (_EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(utc: str) -> int:
    try:
        found = datetime.fromisoformat(utc)
    except ValueError as error:
        raise Malformed(f"{utc[:40]!r} is no moment.", do="Get the egg again.") from error
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return max(0, (found - _EPOCH) // timedelta(microseconds=1))
