"""The model calls that timers may make in a day (``timers.model_calls``), counted on the disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from rappd.errors import RappdError
from rappd.sessions.schedule.rules import local_time, zone_of
from rappd.sessions.schedule.timers import Timers
from rappd.store.timer_table import TimerRow

_KIND = _ID = "model calls"


class ModelCalls:
    """Counts them over all timers. The count is a row among the timers, of a kind that never runs."""

    def __init__(
        self,
        timers: Timers,
        most: Callable[[], int],
        has_model: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._timers, self._most, self._has_model, self._clock = timers, most, has_model, clock
        self._one_at_a_time = asyncio.Lock()

    async def reserve(self) -> None:
        """Counts one, before it is made; none is where there is no model. Raises ``no_model_calls_left``."""
        if not self._has_model():
            return
        async with self._one_at_a_time:
            today = f"{local_time(self._clock(), zone_of('')):%Y-%m-%d}"
            made, most = self.made(today), self._most()
            if made >= most:
                raise RappdError(
                    f"Timers made their {most} model calls of today; the model was not asked.",
                    do="rappd config set timers.model_calls allows more",
                    code="no_model_calls_left",
                )
            detail = {"day": today, "made": made + 1}
            await self._timers.put(
                TimerRow(id=_ID, kind=_KIND, rule="", zone="", next=0.0, caller="", detail=detail)
            )

    def made(self, day: str) -> int:
        """The calls of a day."""
        for row in self._timers.rows:
            if row.id == _ID and row.detail.get("day") == day:
                return int(row.detail["made"])
        return 0
