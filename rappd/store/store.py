"""The store as the daemon holds it: appends by group commit, reads beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from rappd.errors import StoreError
from rappd.store.changes import Beginning, Change, Item, Reply, Row, Taken, Taking
from rappd.store.connections import in_words
from rappd.store.reading import Reader
from rappd.store.records import Counts, Event, Record, ThreadInfo, ThreadRow
from rappd.store.writer import Writer

READERS = 2

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Kept(asyncio.Future[Any]):
    """What it stands for is written whatever happens, and cannot be cancelled: a task that is cancelled while it
    waits for this one gets to know what was written first, and then that it is cancelled."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Nothing: False."""
        return False


class Store:
    """One process writes, through one ``Store``; any number may read. All calls come from one event loop.

    Nothing above this class knows SQLite: another database stands behind the same methods.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        """Blocks on the disk; the daemon uses ``open``."""
        with in_words(path):
            self._writer = Writer(path, strict=strict)
        self.gathering = self._writer.gathering
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

    async def close(self) -> None:
        """Writes what is queued, then gives the file back."""
        if self._closed:
            return
        self._closed = True
        self._writer.stop_taking()
        await self._writer.synced()
        await asyncio.to_thread(self._finish)
        self._writer.part()

    def thread(self, info: ThreadInfo) -> None:
        """Queues what is known of a thread; nothing is written when the record has it already."""
        self._writer.put(info)

    def queue(self, record: Record, *, hasten: bool = False) -> None:
        """Appends a record soon. If it is lost, the next ``commit`` on its thread fails. ``hasten``: a machine
        is asked now, and a ``commit`` of what it answers follows, which this one should not keep waiting."""
        self._writer.put(record)
        if hasten:
            self._writer.hasten()

    def commit(self, record: Record, *, strict: bool = False) -> asyncio.Future[int]:
        """Appends a record; the future gives its ``seq`` once it and all queued before it are committed.

        ``strict`` waits for the disk: for what is acknowledged to another machine. The future
        raises ``StoreError`` when it was not written. Cancelling it does not take the record back.
        """
        return self._put(record, strict)

    def flush(self) -> asyncio.Future[int]:
        """Gives the last ``seq`` once the tables have everything queued so far, or raises like ``commit``."""
        return self._put(None, False)

    def take(self, taking: Taking, *, strict: bool = True) -> asyncio.Future[Taken | None]:
        """Takes an envelope with its records, all or nothing: None when it is new.

        One that was taken before is not written again: the future gives how far that one is. From
        then on an accepted one goes by ``begin_accepted`` and any by ``commit_reply``.
        """
        return self._put(taking, strict, Kept())

    def begin_accepted(
        self, sender: str, id: str, verb: str, records: list[Record | ThreadInfo], *, strict: bool = True
    ) -> asyncio.Future[bool]:
        """An accepted envelope is started, with its records; False, and nothing, when it is not accepted."""
        return self._put(Beginning(sender, id, verb, records), strict, Kept())

    def commit_reply(
        self, record: Record, sender: str, id: str, verb: str, *, strict: bool = True
    ) -> asyncio.Future[int]:
        """Appends the reply to a taken envelope, for ``answer_to`` to find, and with it that one is done.

        Otherwise like ``commit``.
        """
        return self._put(Reply(record, sender, id, verb), strict, Kept())

    def on_disk(self) -> asyncio.Future[int]:
        """Gives the last ``seq`` once the disk has all that is committed of what was put before. Raises
        ``StoreError``. (Whether anything of that was lost, its own ``commit`` tells.)"""
        return self._put(None, True, Kept())

    def change(self, change: Change, *, strict: bool = True) -> asyncio.Future[list[Row]]:
        """Changes other tables, in order with all the rest; for rooms of this package."""
        return self._put(change, strict)

    @property
    def last_seq(self) -> int | None:
        """The highest ``seq`` in the tables, as far as it is known without reading them."""
        return self._writer.last_seq

    async def rows(self, statement: str, values: Row = ()) -> list[Row]:
        """See ``Reader.rows``."""
        return await self._read(Reader.rows, statement, values)

    async def threads(self, limit: int = 50, before: tuple[int, str] | None = None) -> list[ThreadRow]:
        """See ``Reader.threads``."""
        return await self._read(Reader.threads, limit, before)

    async def find_thread(self, prefix: str) -> ThreadRow:
        """See ``Reader.find_thread``."""
        return await self._read(Reader.find_thread, prefix)

    async def thread_events(self, prefix: str, *, after: int = 0, last: int | None = None) -> list[Event]:
        """See ``Reader.thread_events``."""
        return await self._read(Reader.thread_events, prefix, after=after, last=last)

    async def recent_events(self, limit: int = 100, after_seq: int | None = None) -> list[Event]:
        """See ``Reader.recent_events``."""
        return await self._read(Reader.recent_events, limit, after_seq)

    async def answer_to(self, caller: str, id: str) -> bytes | None:
        """See ``Reader.answer_to``."""
        if self._writer.may_hold(caller, id):
            await self._caught_up()
        return await self._look(lambda: self._reader().answer_to(caller, id))

    async def counts(self) -> Counts:
        """See ``Reader.counts``."""
        return await self._read(Reader.counts)

    def _put(self, item: Item | None, strict: bool, waiter: Kept | None = None) -> asyncio.Future[Any]:
        waits = waiter if waiter is not None else asyncio.get_running_loop().create_future()
        self._writer.put(item, waits, strict=strict)
        return waits

    async def _read(
        self, read: Callable[Concatenate[Reader, _P], _R], *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        if self._writer.is_behind:
            await self._caught_up()
        return await self._look(lambda: read(self._reader(), *args, **kwargs))

    async def _caught_up(self) -> None:
        self._check_open()
        caught_up = asyncio.get_running_loop().create_future()
        self._writer.catch_up(caught_up)
        await caught_up

    async def _look(self, run: Callable[[], _R]) -> _R:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._pool, run)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The record is closed.", do="`rappd start` opens it.")

    def _reader(self) -> Reader:
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = Reader(self._path, caught_up=True)
            self._readers.append(reader)
        return reader

    def _finish(self) -> None:
        self._pool.shutdown()
        for reader in self._readers:
            reader.close()
        self._writer.finish()
