"""Timers that ``organism.yaml`` names: rows of its origin, shown, paused and run as others, and changed in the file alone."""

from __future__ import annotations

import asyncio
import hashlib
import time

from msgspec.structs import replace

from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import HELP, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.features.timers.setters import Setter, kept
from rappd.features.timers.turn_timers import ORGANISM, TURN, TurnTimers
from rappd.organism.organism import ListedTimer
from rappd.organism.organism_in_force import OrganismInForce
from rappd.sessions.schedule.rules import next_moment, parse_rule, zone_of
from rappd.sessions.schedule.timers import Timers
from rappd.store.timer_table import TimerRow
from rappd.tenants.tenant import Tenant

SESSION = "timers"
_OWNER = Setter("control", DEFAULT_USER_GUID, operator=True)
_KEPT = ("paused", "failures", "agents")
"""Keys of a row that are no words of the file's, and stay when its entry stays."""


class OrganismTimers:
    """Keeps the rows of that origin as the file in force says."""

    def __init__(
        self,
        organism: OrganismInForce,
        timers: Timers,
        turn_timers: TurnTimers,
        dispatcher: Dispatcher,
        host: Tenant,
    ) -> None:
        self._organism, self._timers, self._turn_timers = organism, timers, turn_timers
        self._dispatcher, self._host = dispatcher, host
        self._writing = asyncio.Lock()

    async def sync(self) -> None:
        """Sets, changes and removes rows until they are those of the file. Raises ``StoreError``."""
        async with self._writing:
            before = {
                row.id: row
                for row in self._timers.rows
                if row.kind == TURN and row.caller == ORGANISM and row.rule
            }
            listed = {timer_id(one.name): one for one in self._organism.current.timers}
            for id in before.keys() - listed.keys():
                await self._timers.remove(id)
            thread = await self._thread() if listed else ""
            for id, one in listed.items():
                row = self._row(id, one, before.get(id), thread)
                if row is not None:
                    await self._timers.put(row)

    def _row(self, id: str, one: ListedTimer, before: TimerRow | None, thread: str) -> TimerRow | None:
        """The row of an entry; None where it is as it was."""
        from agents.moments.wishes import when

        moment = when(one.when, self._turn_timers.now(one.zone))
        zone = one.zone or moment.zone or self._turn_timers.zone
        what = {
            "name": one.name,
            "what": " ".join((one.ask or one.remind or "").split()),
            "asks": one.ask is not None,
        }
        same = before is not None and (before.rule, before.zone) == (moment.rule, zone)
        if same and before is not None and before.detail.items() >= what.items():
            return None
        detail = {
            **what,
            "by": kept(_OWNER),
            "workspace": self._host.name,
            "thread": thread,
            "set_at": time.time(),
            **({key: before.detail[key] for key in _KEPT if key in before.detail} if before else {}),
        }
        if same and before is not None:
            return replace(before, detail=detail)
        due = next_moment(parse_rule(moment.rule), time.time(), zone_of(zone))
        return TimerRow(
            id=id, kind=TURN, rule=moment.rule, zone=zone, next=due, caller=ORGANISM, detail=detail
        )

    async def _thread(self) -> str:
        """The owner's conversation "Timers", where they are answered."""
        opened = self._dispatcher.open_thread(
            Envelope(new_id(), _OWNER.sender, self._host.id, HELP, {}),
            self._host.name,
            session=SESSION,
            title="Timers",
        )
        await self._dispatcher.flush()
        return opened.thread


def timer_id(name: str) -> str:
    """The id of the timer of that name in the file."""
    return hashlib.sha256(f"organism.yaml\n{name.casefold()}".encode()).hexdigest()[:8]
