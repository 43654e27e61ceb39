"""Timers whose work is a turn: set, found, listed and changed."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agents.moments.errors import NoMomentError
from rappd.errors import ConflictError, NotFoundError, UsageProblemError
from rappd.features.snapshots.schedule_view import KIND as SNAPSHOT
from rappd.features.timers.setters import Setter, kept, read_setter
from rappd.sessions.schedule.rules import local_time, moment_at, next_moment, parse_rule, zone_of
from rappd.sessions.schedule.timers import Timers
from rappd.settings.load import Settings
from rappd.store.state_table import DELAY
from rappd.store.timer_table import TimerRow

if TYPE_CHECKING:
    from agents.moments.moments import Moment

TURN = "turn"
"""The kind of these timers."""
ORGANISM = "organism"
"""The caller of those that ``organism.yaml`` names: they are changed there alone."""
MOST = 1000
"""Timers of one caller."""
LONGEST = 1000
"""Characters of what is to be done."""
SNOOZE_SECONDS = 600.0
_TOLD = "told"
"""The kind of a row that keeps the timer that a caller was told last, for snoozing; it never runs."""
_ID_DIGITS = 8
_SNAPSHOT_DO = "rappd neighborhood schedule changes it"


class TurnTimers:
    """Sets and changes timers. Moments are seconds since 1970. Raises ``ReportableError``; then nothing was changed."""

    def __init__(
        self, timers: Timers, settings: Callable[[], Settings], clock: Callable[[], float] = time.time
    ) -> None:
        self._timers, self._settings, self._clock = timers, settings, clock
        self._adding = asyncio.Lock()

    @property
    def zone(self) -> str:
        """The time zone in which words are read; "" is this machine's own."""
        return self._settings().text("timers.zone")

    def now(self, zone: str = "") -> datetime:
        """The local time."""
        return local_time(self._clock(), zone_of(zone or self.zone))

    async def add(
        self, what: str, moment: Moment, setter: Setter, *, asks: bool, workspace: str, thread: str
    ) -> TimerRow:
        """Sets a timer: ``what`` is told at its moment, or asked (``asks``), on ``thread`` of a ``workspace``."""
        what = " ".join(what.split())
        if not what or len(what) > LONGEST:
            raise UsageProblemError(
                f"A timer's text has 1 to {LONGEST} characters.", do="Say it in fewer words."
            )
        detail = {
            "what": what,
            "asks": asks,
            "by": kept(setter),
            "workspace": workspace,
            "thread": thread,
            "set_at": self._clock(),
        }
        zone = moment.zone or self.zone
        return await self._set_one_more(setter, moment, zone, detail)

    def of(self, setter: Setter, *, anyone: bool = True) -> list[TimerRow]:
        """The timers of a caller, the next one first. ``anyone``: of one user of a caller that speaks for several."""
        return [
            row
            for row in self._timers.rows
            if row.kind == TURN and row.caller == setter.key and (not anyone or self._sees(setter, row))
        ]

    def all(self) -> list[TimerRow]:
        """The timers of all callers, delays of handlers, and the timer of snapshots, the next one first."""
        return [row for row in self._timers.rows if row.kind in (TURN, DELAY, SNAPSHOT)]

    def named(self, id: str) -> TimerRow:
        """The timer whose id begins so. Raises ``NotFoundError``."""
        found = [row for row in self.all() if row.id.startswith(id)] if len(id) >= 3 else []
        if len(found) != 1:
            raise NotFoundError(f"There is no timer “{id[:40]}”.", do="rappd timers list")
        return found[0]

    def meant(self, setter: Setter, words: str, thread: str) -> TimerRow:
        """The one that ``words`` speak of; "" for the one that was set last, in this conversation first."""
        mine = self.of(setter)
        if words:
            wanted = [word for word in re.findall(r"\w+", words.casefold()) if word not in _FAINT]
            found = [row for row in mine if all(word in row.detail["what"].casefold() for word in wanted)]
            found = [row for row in mine if row.id == words] or found
            if len(found) > 1:
                names = "; ".join(f"“{row.detail['what'][:60]}”" for row in found[:5])
                raise UsageProblemError(f"Several are meant: {names}.", do="Say more of the one you mean.")
        else:
            here = [row for row in mine if row.detail["thread"] == thread] or mine
            found = sorted(here, key=lambda row: -float(row.detail["set_at"]))[:1]
        if not found:
            about = f" about “{words[:60]}”" if words else ""
            raise NotFoundError(f"No timer{about} is set.", do="Ask “what did I ask you to remind me of?”")
        return found[0]

    async def cancel(self, row: TimerRow) -> None:
        """Removes a timer; a turn under way goes on."""
        self._check_own(row)
        self._check_not_listed(row)
        await self._timers.remove(row.id)

    async def pause(self, row: TimerRow) -> TimerRow:
        """Performs it no more until it is resumed."""
        self._check_own(row)
        return await self._set(replace(row, detail={**row.detail, "paused": True}))

    async def resume(self, row: TimerRow) -> TimerRow:
        """Performs it again from now on; what is over of a repetition is not made up for."""
        self._check_own(row)
        detail = {key: value for key, value in row.detail.items() if key not in ("paused", "failures")}
        moment = self._next(row.rule, row.zone) if row.rule else row.next
        return await self._set(replace(row, detail=detail, next=moment))

    async def move(self, row: TimerRow, to: str) -> TimerRow:
        """Moves it to the time that the words ``to`` name. Of a repetition, a time of day moves all that come."""
        from agents.moments.wishes import moved

        self._check_own(row)
        self._check_not_listed(row)
        zone = zone_of(row.zone)
        moment = moved(to, self.now(row.zone), local_time(row.next, zone))
        rule, detail = row.rule, {**row.detail, "set_at": self._clock()}
        if rule and not moment.rule:
            if rule.startswith("every ") or moment.at is None:
                raise UsageProblemError("A repetition is moved to a time of day.", do="Say “move it to ten”.")
            rule = f"{rule.rpartition(' ')[0]} {moment.at:%H:%M}"
            return await self._set(replace(row, rule=rule, next=self._next(rule, row.zone), detail=detail))
        return await self._set(
            replace(row, rule=moment.rule, next=self._moment(moment, row.zone), detail=detail)
        )

    async def remember_told(self, row: TimerRow) -> None:
        """Keeps the timer that its setter was told last, in place of the one before."""
        id = f"{_TOLD}:{row.caller}"
        await self._timers.put(
            TimerRow(
                id=id, kind=_TOLD, rule="", zone=row.zone, next=0.0, caller=row.caller, detail=row.detail
            )
        )

    async def snooze(self, setter: Setter, moment: Moment | None) -> TimerRow:
        """Tells once more, in ten minutes or at ``moment``, what was told last."""
        from agents.moments import moments

        known = (row for row in self._timers.rows if row.kind == _TOLD and row.caller == setter.key)
        last = next(known, None)
        if last is None or not self._sees(setter, last):
            raise NotFoundError("Nothing was told yet.", do="Say “remind me in 10 minutes to …”.")
        detail = {key: value for key, value in last.detail.items() if key not in ("paused", "failures")}
        again = moment or moments.Moment(wait=SNOOZE_SECONDS)
        return await self._set_one_more(setter, again, last.zone, {**detail, "set_at": self._clock()})

    async def run(self, row: TimerRow) -> TimerRow:
        """Performs it now, once more than it would be."""
        self._check_own(row)
        detail = {key: value for key, value in row.detail.items() if key != "paused"}
        once = replace(row, next=self._clock(), last=0.0, detail=detail)
        return await self._set(replace(once, id=self._free_id(), rule="") if row.rule else once)

    def setter(self, row: TimerRow) -> Setter:
        """The caller that set it."""
        return read_setter(row.detail["by"])

    def _check_not_listed(self, row: TimerRow) -> None:
        if row.caller == ORGANISM and row.rule:
            name = row.detail.get("name", "")
            raise ConflictError(
                "That timer stands in organism.yaml, and is changed there.",
                do=f"rappd organism remove timer {name}",
            )

    def _check_own(self, row: TimerRow) -> None:
        if row.kind == SNAPSHOT:
            raise ConflictError("That is the schedule of snapshots.", do=_SNAPSHOT_DO)

    def _sees(self, setter: Setter, row: TimerRow) -> bool:
        return setter.operator or row.detail["by"]["sender"] == setter.sender

    async def _set_one_more(
        self, setter: Setter, moment: Moment, zone: str, detail: dict[str, object]
    ) -> TimerRow:
        async with self._adding:  # two at once must not pass the limit together
            if len(self.of(setter, anyone=False)) >= MOST:
                raise ConflictError(
                    f"{MOST} timers are set; this one was not.", do="Cancel some: rappd timers list"
                )
            return await self._set(
                TimerRow(
                    id=self._free_id(),
                    kind=TURN,
                    rule=moment.rule,
                    zone=zone,
                    next=self._moment(moment, zone),
                    caller=setter.key,
                    detail=detail,
                )
            )

    def _moment(self, moment: Moment, zone: str) -> float:
        if moment.rule:
            return self._next(moment.rule, zone)
        now = self._clock()
        at = moment_at(moment.at, zone_of(zone)) if moment.at is not None else now + moment.wait
        if at <= now:
            raise NoMomentError("That is over; nothing was set.")
        return at

    def _next(self, rule: str, zone: str) -> float:
        return next_moment(parse_rule(rule), self._clock(), zone_of(zone))

    def _free_id(self) -> str:
        known = {row.id for row in self._timers.rows}
        while (id := secrets.token_hex(_ID_DIGITS // 2)) in known:
            pass
        return id

    async def _set(self, row: TimerRow) -> TimerRow:
        await self._timers.put(row)
        return row


_FAINT = frozenset(
    ("the", "a", "an", "my", "to", "about", "for", "die", "der", "das", "den", "mein", "meine", "an", "zu")
)
