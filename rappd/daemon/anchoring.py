"""Anchors the event log while the daemon runs: at start, every so many events or seconds, and at a clean stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from envelopes.errors import ReportableError
from envelopes.identity.keys import IdentityKey
from rappd.store.anchor_file import AnchorFile
from rappd.store.anchor_signing import Anchorer, AnchorReport
from rappd.store.store import Store
from rappd.store.write_operations import SqlStatement

log = logging.getLogger(__name__)

EVENTS = 1_000
"""An anchor is signed once so many events came, and at least ``LEAST_SECONDS`` after the one before it."""
SECONDS = 10.0
"""Or once so many seconds passed and anything came."""
LEAST_SECONDS = 5.0
LOOK_SECONDS = 1.0

_KNOWN = "UPDATE anchored SET counter = ?, events = ?"

_T = TypeVar("_T")


class Anchoring:
    """Runs an ``Anchorer`` on a thread of its own. All calls come from the event loop."""

    def __init__(
        self,
        database: Path,
        key: IdentityKey,
        store: Store,
        *,
        on_mismatch: Callable[[str], None] = lambda problem: None,
    ) -> None:
        """``on_mismatch`` is called once for each new way in which the log does not match its anchor."""
        self._on_mismatch = on_mismatch
        self._database = database
        self._key = key
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-anchor")
        self._anchorer: Anchorer | None = None
        self._task: asyncio.Task[None] | None = None
        self._signed_at = time.monotonic()
        self._reported = ""
        self.report = AnchorReport()
        self.trouble = ""
        """The reason why anchors cannot be written, "" for none."""

    async def start(self, *, lost: bool = False) -> None:
        """Checks the log against its newest anchor and signs that it is open. ``lost``: see ``Anchorer.mark_lost``.

        Nothing may be appended before it returns. It never fails: what is wrong is in ``report`` and
        ``trouble``. The first anchor of a long log is signed afterwards.
        """
        opened = await self._work(partial(self._opened_if_quick, lost=lost))
        self._task = asyncio.get_running_loop().create_task(self._keep(opened=opened), name="anchoring")

    async def advance(self, *, settled: bool = False) -> AnchorReport:
        """Signs what came since the last anchor, now. ``settled``: all that was queued is written first."""
        if settled and not await self._settled():
            return self.report
        await self._work(lambda: self._opened_anchorer().advance())
        return self.report

    async def close(self) -> None:
        """Signs the last anchor; the caller appends nothing afterwards. The store closes later."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if await self._settled():
            await self._work(lambda: self._opened_anchorer().advance(closed=True))
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close_files)
        self._thread.shutdown()

    async def on_file(self, work: Callable[[AnchorFile], _T]) -> _T:
        """Runs ``work`` on the thread that owns ``anchors.db``. Raises ``StoreError``."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: work(self._opened_anchorer().file)
        )

    @property
    def problems(self) -> list[str]:
        """The problems of the log or its anchors, for screens."""
        return [*self.report.problems, *([self.trouble] if self.trouble else [])]

    async def _settled(self) -> bool:
        try:
            await self._store.flush()
            await self._store.counts()  # returns once the tables have what was acknowledged
        except ReportableError as problem:
            log.warning("no anchor was signed: %s", problem)
            return False
        return True

    async def _keep(self, *, opened: bool) -> None:
        if not opened:
            await self._work(self._opened)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            events, anchor = self._store.last_seq, self.report.anchor
            if events is None or self.report.problems or (anchor and events <= anchor.events):
                continue
            came = events - (anchor.events if anchor else 0)
            waited = time.monotonic() - self._signed_at
            if waited >= SECONDS or (came >= EVENTS and waited >= LEAST_SECONDS):
                await self.advance()

    async def _work(self, work: Callable[[], AnchorReport | None]) -> bool:
        try:
            report = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except ReportableError as problem:
            self._signed_at = time.monotonic()  # tries again later
            self.trouble = f"anchors cannot be written: {str(problem).rstrip('.')}"
            log.error("%s", self.trouble)
            return True
        if report is None:
            return False
        self.report, self.trouble = report, ""
        self._tell(report)
        if report.signed and report.anchor is not None:
            self._signed_at = time.monotonic()
            known = self._store.change(
                SqlStatement(_KNOWN, (report.anchor.counter, report.anchor.events)), strict=False
            )
            known.add_done_callback(partial(_noted, report.anchor.counter))
        return True

    def _tell(self, report: AnchorReport) -> None:
        problems = "; ".join(report.problems)
        if problems and problems != self._reported:
            log.error("security: the event log does not match its anchor: %s", problems)
            self._on_mismatch(report.problems[0])
        self._reported = problems

    def _opened_if_quick(self, *, lost: bool) -> AnchorReport | None:
        if lost:
            self._opened_anchorer().mark_lost()
        return None if self._opened_anchorer().is_new else self._opened()

    def _opened(self) -> AnchorReport:
        return self._opened_anchorer().open_log()

    def _opened_anchorer(self) -> Anchorer:
        if self._anchorer is None:
            self._anchorer = Anchorer(self._database, self._key)
        return self._anchorer

    def _close_files(self) -> None:
        if self._anchorer is not None:
            self._anchorer.close()


def _noted(counter: int, future: asyncio.Future[object]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        log.warning("that anchor %d exists could not be noted: %s", counter, error)
