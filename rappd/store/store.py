"""The event store of the daemon: appends by group commit, reads on threads beside the event loop."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from rappd.errors import StoreError
from rappd.store.connections import in_words
from rappd.store.reader import Reader
from rappd.store.records import Counts, Event, Record, ThreadBelow, ThreadInfo, ThreadRow
from rappd.store.write_operations import (
    ClaimState,
    InboxClaim,
    InboxReply,
    InboxStart,
    Item,
    Row,
    SqlStatement,
)
from rappd.store.writer import Follower, NoWriter, Writer

READERS = 2

_P = ParamSpec("_P")
_R = TypeVar("_R")


class UncancellableFuture(asyncio.Future[Any]):
    """A future that cannot be cancelled: a task that is cancelled while it waits gets the result of the write first, and then the cancellation."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Does nothing and returns False."""
        return False


class Store:
    """One process writes, through one ``Store``; any number may read. All calls come from one event loop.

    Nothing above this class knows SQLite: another database stands behind the same methods.
    """

    def __init__(self, path: Path, *, strict: bool = False, writes: bool = True) -> None:
        """Blocks on the disk; the daemon uses ``open``."""
        with in_words(path):
            self._writer: Writer | NoWriter = Writer(path, strict=strict) if writes else NoWriter()
        self.group_commit = self._writer.group_commit
        self._path = path
        self._closed = False
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._local = threading.local()
        self._readers: list[Reader] = []

    @classmethod
    async def open(cls, path: Path, *, strict: bool = False) -> Store:
        """Opens the file, creates or migrates it. ``strict``: every commit waits for the disk.

        Otherwise a commit survives the death of any process at once, and a power cut once synced,
        which takes about a second. ``StoreError`` when the file cannot be used.
        """
        return await asyncio.to_thread(cls, path, strict=strict)

    @classmethod
    def reading(cls, path: Path) -> Store:
        """The file as it is, perhaps on a read-only disk, perhaps absent: whatever would write raises ``StoreError``."""
        return cls(path, writes=False)

    async def close(self) -> None:
        """Writes everything queued, then closes the file. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._writer.stop_accepting()
        await asyncio.to_thread(self._finish)

    def thread(self, info: ThreadInfo) -> None:
        """Queues information about a thread; writes nothing that the database has already."""
        self._writer.put(info)

    def queue(self, record: Record) -> None:
        """Appends a record soon. If it is lost, the next ``commit`` on its thread fails."""
        self._writer.put(record)

    def commit(self, record: Record, *, strict: bool = False) -> asyncio.Future[int]:
        """Appends a record; the future gives its ``seq`` once it and all queued before it are committed.

        ``strict`` waits for the disk: for what is acknowledged to another machine. The future
        raises ``StoreError`` when it was not written. Cancelling it does not take the record back.
        """
        return self._put(record, strict)

    def flush(self) -> asyncio.Future[int]:
        """Resolves to the last ``seq`` once everything queued so far is committed, or raises like ``commit``."""
        return self._put(None, False)

    def claim(self, item: InboxClaim, *, strict: bool = True) -> asyncio.Future[ClaimState | None]:
        """Claims an envelope with its records, all or nothing: None when it is new.

        One that was claimed before is not written again: the future gives its state. After
        that, ``start_claimed`` starts an accepted one and ``commit_reply`` ends any.
        """
        return self._put(item, strict, UncancellableFuture())

    def start_claimed(
        self, sender: str, id: str, verb: str, records: list[Record | ThreadInfo], *, strict: bool = True
    ) -> asyncio.Future[bool]:
        """Starts an accepted envelope and appends its records; False, and no change, when it is not accepted."""
        return self._put(InboxStart(sender, id, verb, records), strict, UncancellableFuture())

    def commit_reply(
        self, record: Record, sender: str, id: str, verb: str, *, strict: bool = True
    ) -> asyncio.Future[int]:
        """Appends the reply to a claimed envelope, for ``answer_to`` to find, and marks that one as done.

        Otherwise like ``commit``.
        """
        return self._put(InboxReply(record, sender, id, verb), strict, UncancellableFuture())

    def durable(self) -> asyncio.Future[int]:
        """Resolves to the last ``seq`` once everything committed of what was queued before is on the disk.

        Raises ``StoreError``. (A lost record is reported by its own ``commit``.)
        """
        return self._put(None, True, UncancellableFuture())

    def change(self, change: SqlStatement, *, strict: bool = True) -> asyncio.Future[list[Row]]:
        """Executes a statement on other tables, in order with all the rest; for modules of this package."""
        return self._put(change, strict)

    def follow(self, thread: str, follower: Follower) -> None:
        """``follower(events)`` is called on the event loop with a thread's new events, in order, once committed."""
        self._writer.followers.add(thread, follower)

    @property
    def trouble(self) -> StoreError | None:
        """The error of the last commit of a record that failed, None after one that succeeded."""
        return self._writer.trouble

    async def probe(self) -> None:
        """Commits a small change and reads it back. Raises the ``StoreError`` that a record would get now."""
        await self.change(SqlStatement("UPDATE anchored SET counter = counter"), strict=False)
        await self.counts()
        if (trouble := self.trouble) is not None and not await asyncio.to_thread(self._writer.has_room_again):
            raise trouble

    @property
    def last_seq(self) -> int | None:
        """The highest committed ``seq``; None while it is not known without reading."""
        return self._writer.last_seq

    async def rows(self, statement: str, values: Row = ()) -> list[Row]:
        """Rows of a query on the other tables; for modules of this package."""
        return await self._read(Reader.rows, statement, values)

    async def threads(self, limit: int = 50, before: tuple[int, str] | None = None) -> list[ThreadRow]:
        """``Reader.threads``: roots, the latest used first."""
        return await self._read(Reader.threads, limit, before)

    async def find_thread(self, prefix: str) -> ThreadRow:
        """``Reader.find_thread``: the thread whose id begins so."""
        return await self._read(Reader.find_thread, prefix)

    async def tree(self, prefix: str, limit: int = 1_000) -> list[ThreadRow]:
        """``Reader.tree``: a thread and those below it."""
        return await self._read(Reader.tree, prefix, limit)

    async def names_below(self, thread: str) -> set[str]:
        """The names of the threads that a thread began."""
        return await self._read(Reader.names_below, thread)

    async def thread_events(
        self, prefix: str, *, after: int = 0, last: int | None = None, first: int | None = None
    ) -> list[Event]:
        """``Reader.thread_events``: a thread's events in order."""
        return await self._read(Reader.thread_events, prefix, after=after, last=last, first=first)

    async def has_session(self, caller: str, session: str) -> bool:
        """True when a caller has a thread of that session, which is JSON text. Looks at all threads."""
        return await self._read(Reader.has_session, caller, session)

    async def threads_below(self, caller: str, id: str | None = None) -> list[ThreadBelow]:
        """Threads below those of a caller; with ``id`` that one alone, by its index."""
        return await self._read(Reader.threads_below, caller, id)

    async def threads_by(self, caller: str) -> list[ThreadRow]:
        """Every thread of a caller, the latest used first. Looks at all threads."""
        return await self._read(Reader.threads_by, caller)

    async def noted(self, thread: str, kind: str) -> bool:
        """True when a thread has a NOTE of that kind."""
        return await self._read(Reader.noted, thread, kind)

    async def notes(self, thread: str, kind: str) -> list[bytes]:
        """The NOTEs of that kind on a thread, in order, as they were recorded."""
        return await self._read(Reader.notes, thread, kind)

    async def after_event(self, thread: str, id: str) -> list[Event]:
        """``Reader.after_event``: what was written on a thread, and below it, since an event."""
        return await self._read(Reader.after_event, thread, id)

    async def last_notes(self, caller: str, kind: str) -> dict[str, int]:
        """``Reader.last_notes``: moments of the last NOTEs of that kind, by thread."""
        return await self._read(Reader.last_notes, caller, kind)

    async def recent_events(self, limit: int = 100, after_seq: int | None = None) -> list[Event]:
        """``Reader.recent_events``: events of all threads by ascending ``seq``."""
        return await self._read(Reader.recent_events, limit, after_seq)

    async def answer_to(self, caller: str, id: str) -> bytes | None:
        """The recorded reply to a turn that the caller gave this id, verbatim."""
        return await self._read(Reader.answer_to, caller, id)

    async def counts(self) -> Counts:
        """Numbers of threads and events."""
        return await self._read(Reader.counts)

    def _put(
        self, item: Item | None, strict: bool, waiter: UncancellableFuture | None = None
    ) -> asyncio.Future[Any]:
        waits = waiter if waiter is not None else asyncio.get_running_loop().create_future()
        self._writer.put(item, waits, strict=strict)
        return waits

    async def _read(
        self, read: Callable[Concatenate[Reader, _P], _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        self._check_open()
        run = functools.partial(self._run_read, read, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, run)

    def _run_read(
        self, read: Callable[Concatenate[Reader, _P], _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        return read(self._reader(), *args, **kwargs)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The record is closed.", do="`rappd start` opens it.")

    def _reader(self) -> Reader:
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = Reader(self._path)
            self._readers.append(reader)
        return reader

    def _finish(self) -> None:
        self._pool.shutdown()
        for reader in self._readers:
            reader.close()
        self._writer.finish()
