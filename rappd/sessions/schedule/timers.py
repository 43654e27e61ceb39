"""The one durable timer: scheduled work runs at its moment, and once after a stop in which moments were missed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from envelopes.errors import ReportableError
from rappd.errors import NotFoundError, StoreError
from rappd.sessions.schedule.rules import next_moment, parse_rule, zone_of
from rappd.store.timer_table import TimerRow, TimerTable

log = logging.getLogger(__name__)

Handler = Callable[[TimerRow], Awaitable[dict[str, object] | None]]
"""Does the work of a timer that is due; returns its ``detail`` from now on, None for the same."""
_LONGEST_WAIT = 30.0
"""So soon a clock that was set anew is noticed."""


class Timers:
    """Runs timers of registered kinds while the daemon runs. A kill during a run repeats the run."""

    def __init__(
        self,
        table: TimerTable,
        *,
        clock: Callable[[], float] = time.time,
        ended: Callable[[TimerRow], None] = lambda row: None,
    ) -> None:
        """``ended`` gets a timer after each run, with its outcome."""
        self._table, self._clock, self._ended = table, clock, ended
        self._handlers: dict[str, Handler] = {}
        self._rows: dict[str, TimerRow] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._unwritten: dict[str, tuple[TimerRow, float]] = {}
        """Ends of runs that could not be written down, and when the run was due that the table knows of."""
        self._recording = asyncio.Lock()
        self._changed = asyncio.Event()
        self._seen = float("inf")
        """The clock when it was last looked at: below it, it was set back."""
        self._loop: asyncio.Task[None] | None = None

    def register(self, kind: str, handler: Handler) -> None:
        """Names the work of a kind. An error that the handler raises is the run's outcome."""
        self._handlers[kind] = handler

    async def start(self) -> None:
        """Loads the timers and begins; those that are due run now, once each."""
        await self.load()
        self._loop = asyncio.create_task(self._run())

    async def load(self) -> None:
        """Loads the timers; without ``start`` none runs."""
        self._rows = {row.id: row for row in await self._table.all()}

    @property
    def runs(self) -> bool:
        """False where no timer of any kind runs: ``start`` was not called."""
        return self._loop is not None

    async def close(self) -> None:
        """Ends the timer. A run that is cut off is repeated after the next start; one that ended is not."""
        tasks = [*self._running.values(), *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._record_unwritten_ends()

    @property
    def rows(self) -> list[TimerRow]:
        """Every timer, the next one first."""
        return sorted(self._rows.values(), key=lambda row: (row.next, row.id))

    def get(self, id: str) -> TimerRow:
        """The timer of that id. Raises ``NotFoundError``."""
        if id not in self._rows:
            raise NotFoundError(f"Nothing is scheduled as “{id}”.")
        return self._rows[id]

    async def schedule(
        self,
        id: str,
        kind: str,
        rule: str,
        *,
        caller: str,
        zone: str = "",
        detail: dict[str, object] | None = None,
    ) -> TimerRow:
        """Sets or changes a repeated timer. Raises ``UsageProblemError`` for a rule or zone that is none."""
        moment = next_moment(parse_rule(rule), self._clock(), zone_of(zone))
        before = self._rows.get(id)
        row = TimerRow(
            id=id, kind=kind, rule=rule, zone=zone, next=moment, caller=caller, detail=detail or {}
        )
        if before is not None:
            row = replace(row, last=before.last, outcome=before.outcome, failed_since=before.failed_since)
        await self._put(row)
        return row

    async def put(self, row: TimerRow) -> None:
        """Sets a timer, in place of the one of its id. Raises ``StoreError``."""
        await self._put(row)

    async def once(
        self, id: str, kind: str, at: float, *, caller: str, detail: dict[str, object] | None = None
    ) -> None:
        """Sets a timer that runs once, at ``at`` seconds since 1970, or now when that is past."""
        await self._put(
            TimerRow(id=id, kind=kind, rule="", zone="", next=at, caller=caller, detail=detail or {})
        )

    async def remove(self, id: str) -> None:
        """Removes a timer; a run under way goes on. Raises ``NotFoundError``."""
        self.get(id)
        await self._table.remove(id)
        self._rows.pop(id, None)

    async def _put(self, row: TimerRow) -> None:
        await self._table.set(row)
        self._rows[row.id] = row
        self._changed.set()

    async def _run(self) -> None:
        while True:
            self._changed.clear()  # before it looks: what changes meanwhile is looked at next
            now = self._clock()
            if now < self._seen:
                await self._mend(now)
            self._seen = now
            await self._record_unwritten_ends()
            rows = [row for row in self.rows if row.kind in self._handlers and not row.paused]
            for row in rows:
                if row.next <= now and row.id not in self._running:
                    self._running[row.id] = asyncio.create_task(self._perform(row))
            later = [row.next - now for row in rows if row.next > now and row.id not in self._running]
            try:
                async with asyncio.timeout(min([_LONGEST_WAIT, *later])):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _mend(self, now: float) -> None:
        """Moments that a clock set, which was far ahead, come forward: their next is the one after now."""
        for row in self.rows:
            if not row.rule or row.paused or row.id in self._running:
                continue
            try:
                rule, zone = parse_rule(row.rule), zone_of(row.zone)
            except ReportableError as error:  # a time zone that this system does not know any more
                log.warning("scheduled %s: %s", row.id, error)
                continue
            soonest = next_moment(rule, now, zone)
            if row.next > next_moment(rule, soonest, zone):
                log.warning("the clock was set back: scheduled %s comes forward", row.id)
                mended = replace(row, next=soonest)
                self._rows[row.id] = mended
                try:
                    await self._table.set(mended)
                except StoreError as error:
                    log.error("the moment of scheduled %s could not be written: %s", row.id, error)

    async def _perform(self, row: TimerRow) -> None:
        outcome, detail = "", None
        try:
            detail = await self._handlers[row.kind](row)
        except ReportableError as error:
            outcome = error.with_advice()
            log.warning("scheduled %s failed: %s", row.id, outcome)
        except Exception as error:
            outcome = f"{type(error).__name__}; the log has it."
            log.exception("scheduled %s failed", row.id)
        finally:
            self._running.pop(row.id, None)
        now = self._clock()
        ended = replace(
            row,
            next=next_moment(parse_rule(row.rule), now, zone_of(row.zone)) if row.rule else row.next,
            last=now,
            detail=row.detail if detail is None else detail,
            outcome=outcome,
            failed_since=(row.failed_since or now) if outcome else 0.0,
        )
        await self._write_end(ended, row)
        self._ended(ended)
        self._changed.set()

    async def _write_end(self, ended: TimerRow, row: TimerRow) -> None:
        present = self._rows.get(row.id)
        if not row.rule:
            if present is row:
                del self._rows[row.id]
        elif present is row:
            self._rows[row.id] = ended
        elif present is not None:  # changed meanwhile: its own moment, this outcome
            self._rows[row.id] = replace(
                present, last=ended.last, outcome=ended.outcome, failed_since=ended.failed_since
            )
        async with self._recording:
            _, due = self._unwritten.get(row.id, (ended, row.next))
            await self._record_end(ended, due)

    async def _record_unwritten_ends(self) -> None:
        """Tries again; ends that are being written meanwhile come to their end first."""
        async with self._recording:
            for ended, due in list(self._unwritten.values()):
                await self._record_end(ended, due)

    async def _record_end(self, ended: TimerRow, due: float) -> None:
        """Writes the end of a run down; on a full disk it is tried again, lest a restart repeats the run."""
        try:
            if ended.rule:
                await self._table.end(ended, due)
            else:
                await self._table.remove_run(ended.id, due)
        except StoreError as error:
            if ended.id not in self._unwritten:
                log.error("the end of scheduled %s could not be written: %s", ended.id, error)
            self._unwritten[ended.id] = ended, due
        else:
            self._unwritten.pop(ended.id, None)
