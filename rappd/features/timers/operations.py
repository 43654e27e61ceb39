"""The owner's operations on timers: list, add, cancel, pause, resume, move, run."""

from __future__ import annotations

from typing import TypedDict

from msgspec.structs import replace

from agents.moments.errors import NoMomentError
from agents.moments.wishes import when, wish_of
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import HELP, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.features.operation import OWNER, Text, operation
from rappd.features.timers.setters import Setter
from rappd.features.timers.text import TimerView, set_text, timer_view
from rappd.features.timers.turn_timers import TurnTimers
from rappd.store.timer_table import TimerRow
from rappd.tenants.tenants import Tenants

SESSION = "timers"
"""The session whose conversation has the turns of timers that were set outside of any."""


class SetTimer(TypedDict):
    """A new timer, and the sentence that confirms it."""

    timer: TimerView
    said: str


class TimerOperations:
    """Of all callers. What is set here is answered in the owner's conversation "Timers"."""

    def __init__(self, timers: TurnTimers, dispatcher: Dispatcher, tenants: Tenants) -> None:
        self._timers, self._dispatcher, self._tenants = timers, dispatcher, tenants

    @operation("timers.list", "GET", "/timers", right=OWNER, answers="timers")
    async def listing(self) -> list[TimerView]:
        """Lists all timers, the next one first: reminders, what is asked again and again, and the snapshots' schedule."""
        return [self._view(row) for row in self._timers.all()]

    @operation("timers.add", "POST", "/timers", right=OWNER)
    async def add(
        self, text: Text, at: str = "", ask: bool = False, zone: str = "", twin: str = ""
    ) -> SetTimer:
        """Sets a timer by a sentence `text`, such as "remind me tomorrow at 9 to call mum".

        With `at`, `text` is what to be reminded of, or with `ask` what to ask the brainstem, or a `twin`. `zone` is
        a time zone like Europe/Berlin.
        """
        now = self._timers.now(zone)
        if at:
            what, asks, moment = text, ask, when(at, now)
        else:
            wish = wish_of(text, now)
            if wish is None or wish.action != "add" or wish.moment is None:
                raise NoMomentError("When? No time was understood; nothing was set.")
            what, asks, moment = wish.what, wish.asks or ask, wish.moment
        tenant = await self._tenants.twin(twin) if twin else self._tenants.host
        setter = Setter("control", DEFAULT_USER_GUID, operator=True)
        opened = self._dispatcher.open_thread(
            Envelope(new_id(), setter.sender, tenant.id, HELP, {}),
            tenant.name,
            session=SESSION,
            title="Timers",
        )
        await self._dispatcher.flush()
        if zone and not moment.zone:
            moment = replace(moment, zone=zone)
        row = await self._timers.add(
            what, moment, setter, asks=asks, workspace=tenant.name, thread=opened.thread
        )
        sentence = set_text(row, self._timers.now(row.zone), moment.remark)
        return {"timer": self._view(row), "said": sentence}

    @operation("timers.cancel", "DELETE", "/timers/{timer}", right=OWNER, answers="timer")
    async def cancel(self, timer: str) -> TimerView:
        """Removes the timer whose id begins with `timer`."""
        row = self._timers.named(timer)
        await self._timers.cancel(row)
        return self._view(row)

    @operation("timers.pause", "POST", "/timers/{timer}/pause", right=OWNER, answers="timer")
    async def pause(self, timer: str) -> TimerView:
        """Performs it no more until it is resumed."""
        return self._view(await self._timers.pause(self._timers.named(timer)))

    @operation("timers.resume", "POST", "/timers/{timer}/resume", right=OWNER, answers="timer")
    async def resume(self, timer: str) -> TimerView:
        """Performs it again from now on."""
        return self._view(await self._timers.resume(self._timers.named(timer)))

    @operation("timers.move", "POST", "/timers/{timer}/move", right=OWNER, answers="timer")
    async def move(self, timer: str, to: Text) -> TimerView:
        """Moves it to the time that the words `to` name: "ten", "tomorrow at 9"."""
        return self._view(await self._timers.move(self._timers.named(timer), to))

    @operation("timers.run", "POST", "/timers/{timer}/run", right=OWNER, answers="timer")
    async def run(self, timer: str) -> TimerView:
        """Performs it now; a repetition goes on as it was."""
        return self._view(await self._timers.run(self._timers.named(timer)))

    def _view(self, row: TimerRow) -> TimerView:
        return timer_view(row, self._timers.now(row.zone))
