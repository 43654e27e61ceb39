"""The indispensable steps of a durable call, each in its barest form: a record, a worker process, a listener."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path
from typing import Any

import orjson
from aiohttp import WSMsgType, web


class Steps(ABC):
    """A thread that commits whatever has gathered: rows of a table, or statements with their values."""

    def __init__(self, db: sqlite3.Connection, log: Path) -> None:
        self._db = db
        self._log = os.open(log, os.O_RDWR)
        os.pwrite(
            self._log, bytes(32 << 20), os.fstat(self._log).st_size
        )  # a log that grows is synced slower
        os.fsync(self._log)
        self._pending: deque[tuple[list[Any], asyncio.Future[None] | None, bool]] = deque()
        self._bell = threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, *rows: Any, synced: bool = False) -> asyncio.Future[None]:
        """Done once they are committed, or ``synced``."""
        waiter = asyncio.get_running_loop().create_future()
        self._pending.append((list(rows), waiter, synced))
        self._bell.release()
        return waiter

    @abstractmethod
    def carry_out(self, rows: list[Any]) -> None:
        """Inside a transaction."""

    def _run(self) -> None:
        while True:
            self._bell.acquire()
            batch = []
            while self._pending:
                batch.append(self._pending.popleft())
            if not batch:
                continue
            self._db.execute("BEGIN IMMEDIATE")
            self.carry_out([row for rows, _, _ in batch for row in rows])
            self._db.execute("COMMIT")
            self._settle([waiter for _, waiter, synced in batch if not synced])
            if later := [waiter for _, waiter, synced in batch if synced]:
                os.fdatasync(self._log)
                self._settle(later)

    def _settle(self, waiters: list[Any]) -> None:
        def settle() -> None:
            for waiter in waiters:
                waiter.set_result(None)

        if waiters:
            waiters[0].get_loop().call_soon_threadsafe(settle)


class BareRecord(Steps):
    """One table of (id, verb, body). No chain, no threads, no repeats."""

    def __init__(self, path: Path) -> None:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("CREATE TABLE events(seq INTEGER PRIMARY KEY, id TEXT, verb TEXT, body BLOB)")
        db.execute("CREATE UNIQUE INDEX once ON events(id, verb)")
        super().__init__(db, Path(f"{path}-wal"))

    def carry_out(self, rows: list[Any]) -> None:
        """Implements ``Steps``."""
        self._db.executemany("INSERT INTO events(id, verb, body) VALUES(?, ?, ?)", rows)


class BareWorker:
    """A forked process that gives back what it is sent."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            self._socket.close()
            while packet := theirs.recv(1 << 16):
                number, text = orjson.loads(packet)
                theirs.send(orjson.dumps((number, text)))
            os._exit(0)
        theirs.close()
        self._socket.setblocking(False)
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._last = 0

    def attach(self) -> None:
        """Reads answers from now on, on the running loop."""
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def ask(self, text: str) -> asyncio.Future[str]:
        """Returns the answer."""
        self._last += 1
        self._waiting[self._last] = future = asyncio.get_running_loop().create_future()
        self._socket.send(orjson.dumps((self._last, text)))
        return future

    def _read(self) -> None:
        number, text = orjson.loads(self._socket.recv(1 << 16))
        self._waiting.pop(number).set_result(text)


class BareListener(ABC):
    """Works on what a line asks, each on a task of its own."""

    def __init__(self) -> None:
        self._working: set[asyncio.Task[None]] = set()

    async def line(self, request: web.Request) -> web.WebSocketResponse:
        """A WebSocket, until it ends."""
        line = web.WebSocketResponse(compress=False)
        await line.prepare(request)
        async for message in line:
            if message.type is WSMsgType.TEXT:
                task = asyncio.get_running_loop().create_task(self.answer(line, message.data))
                self._working.add(task)
                task.add_done_callback(self._working.discard)
        return line

    @abstractmethod
    async def answer(self, line: web.WebSocketResponse, raw: str) -> None:
        """One question."""
