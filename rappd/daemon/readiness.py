"""Readiness: the reasons why a turn could not be recorded now, or a part of the daemon does not run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from pathlib import Path
from typing import TypedDict

from agents.programs import programs
from envelopes.errors import ReportableError
from rappd.daemon.anchoring import Anchoring
from rappd.errors import StoreError
from rappd.federation.startup_state import Availability
from rappd.store.connections import explain, is_damage, open_reading
from rappd.store.store import Store

log = logging.getLogger(__name__)

_PROBE_SECONDS = 5.0
_FRESH_SECONDS = 1.0
_EXAMINING_SECONDS = 0.5  # the first screens wait so long for the pages of the database
_LARGE_BYTES = 16 << 20
"""A smaller database is read at once, whatever the disk."""
_READ_WITH_PAUSES = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
begun = time.monotonic()
while os.read(file, 1 << 20):
    time.sleep(3 * (time.monotonic() - begun))
    begun = time.monotonic()
"""
"""Takes a quarter of what the disk can do, so that a slow card has room for turns; then the pages are in memory. By a
process of its own: to close the file in this one would end SQLite's locks."""


class Problem(TypedDict):
    """A reason why the daemon is not ready, and what to do about it."""

    what: str
    do: str


class Readiness:
    """Tries a small commit when it is asked, at most once a second while all is well.

    ``examine`` reads every page of the database once, because a turn may not touch the damaged one.
    """

    def __init__(
        self, store: Store, database: Path, availability: Availability, anchoring: Anchoring
    ) -> None:
        self._anchoring = anchoring
        self._store = store
        self._database = database
        self._damage: StoreError | None = None
        self._examined = asyncio.Event()
        self._availability = availability
        self._probed_at = -_FRESH_SECONDS
        self._trouble: ReportableError | None = None
        self._probing = asyncio.Lock()

    async def examine(self) -> None:
        """Looks for damaged pages; beside everything else, for a large database takes a while."""
        try:
            await self._bring_into_memory()
            reading = await asyncio.to_thread(open_reading, self._database)
            try:
                await asyncio.to_thread(_read_pages, reading)
            except asyncio.CancelledError:
                with contextlib.suppress(sqlite3.ProgrammingError):  # it came to its end meanwhile
                    reading.interrupt()
                raise
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            self._damage = explain(error, self._database)
            log.error("%s %s", self._damage, self._damage.do)
        finally:
            self._examined.set()

    async def _bring_into_memory(self) -> None:
        with contextlib.suppress(OSError):  # without it, it is read at once
            if (await asyncio.to_thread(self._database.stat)).st_size <= _LARGE_BYTES:
                return
            command = programs.python("-S", "-c", _READ_WITH_PAUSES, str(self._database))
            starting = asyncio.ensure_future(asyncio.to_thread(programs.start, command))
            try:
                await asyncio.to_thread((await asyncio.shield(starting)).wait)
            finally:  # also where this is cancelled while it starts
                await asyncio.shield(asyncio.to_thread((await starting).end))

    async def examined(self) -> None:
        """Returns when ``examine`` is through, or takes longer than a screen waits."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EXAMINING_SECONDS):
                await self._examined.wait()

    async def problems(self) -> list[Problem]:
        """``{"what", "do"}`` for each problem; empty when the daemon is ready."""
        async with self._probing:
            if self._store.trouble is not None or time.monotonic() - self._probed_at >= _FRESH_SECONDS:
                self._trouble = await self._probe()
                self._probed_at = time.monotonic()
        found = [self._trouble, self._availability.failure, self._damage]
        problems: dict[str, Problem] = {
            str(one): {"what": str(one).rstrip("."), "do": one.do} for one in found if one is not None
        }
        for problem in self._anchoring.report.problems:
            problems[problem] = {
                "what": f"The record of what was said does not match its anchor: {problem}",
                "do": "rappd threads verify says what; to go on with what is there: rappd stop, rappd threads accept",
            }
        return list(problems.values())

    async def _probe(self) -> ReportableError | None:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._store.probe()
        except TimeoutError:
            return StoreError(
                f"The disk did not answer within {_PROBE_SECONDS:.0f} s.",
                do="Look at the disk; it goes on by itself.",
            )
        except ReportableError as problem:
            return problem
        return None


def _read_pages(reading: sqlite3.Connection) -> None:
    """Raises ``sqlite3.DatabaseError`` for a damaged page. Closes ``reading``."""
    with contextlib.closing(reading):
        verdict = reading.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        damaged = sqlite3.DatabaseError(verdict)
        damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damaged
