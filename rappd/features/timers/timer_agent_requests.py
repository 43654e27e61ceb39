"""Talking about timers: what the shipped agent ``Timer`` asks for within a turn, and the answers in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agents.moments.errors import NoMomentError
from envelopes.envelope import THREAD
from rappd.dispatch.turns import RequestContext
from rappd.errors import NotFoundError, RefusedError, UsageProblemError
from rappd.features.snapshots.schedule_view import KIND as SNAPSHOT
from rappd.features.timers.setters import Setter, setter_of
from rappd.features.timers.text import line_of, moment_text, rule_text, set_text, timer_view
from rappd.features.timers.turn_timers import TurnTimers
from rappd.sessions.schedule.quiet_hours import parse_quiet, quiet_until

if TYPE_CHECKING:
    from agents.moments.wishes import Wish

_ACTIONS = ("add", "list", "cancel", "move", "snooze", "pause", "resume", "quiet")
_MOST_LISTED = 50
_CLOSED_PAGE = "If this phone's page is closed then, it says so at your next visit."


class TimerConversation:
    """Performs ``timers.ask`` for agents, with the rights of the caller."""

    def __init__(
        self, timers: TurnTimers, quiet: Callable[[], str], set_quiet: Callable[[str], Awaitable[None]]
    ) -> None:
        self._timers, self._quiet, self._set_quiet = timers, quiet, set_quiet

    async def perform(self, context: RequestContext, operation: str, arguments: dict[str, Any]) -> Any:
        """``timers.ask``: ``text`` in the person's words, or ``action`` with ``what``, ``when`` and ``which``."""
        if operation != "timers.ask":
            raise NotFoundError(f'There is no operation "{operation[:40]}".')
        text = {key: value.strip() for key, value in arguments.items() if isinstance(value, str)}
        setter = setter_of(context.caller, context.person)
        wish = self._wish(text)
        thread = str(context.envelope.extensions[THREAD])
        return {"said": await self._answer(wish, setter, context, thread)}

    def _wish(self, texts: dict[str, str]) -> Wish:
        from agents.moments.wishes import Wish, when, wish_of  # their patterns are long

        now = self._timers.now()
        action = texts.get("action", "")
        if action and action not in _ACTIONS:
            raise UsageProblemError(f"There is no action {action[:40]}.", do=", ".join(_ACTIONS))
        if texts.get("when") and action in ("", "add"):
            if not texts.get("what"):
                raise UsageProblemError("Nothing is to be done then.", do="Say what.")
            return Wish(
                "add", texts["what"], asks=texts.get("kind") == "ask", moment=when(texts["when"], now)
            )
        found = wish_of(texts.get("text", ""), now)
        if found is not None and action in ("", found.action):
            return found
        if action in ("", "add"):
            raise NoMomentError("When? No time was understood; nothing was set.")
        which, to = texts.get("which", ""), texts.get("when", "")
        if action == "quiet":
            return Wish("quiet", quiet=texts.get("when", ""))
        if action == "move" and not to:
            raise NoMomentError("To when? Nothing was changed.")
        moment = when(to, now) if action == "snooze" and to else None
        return Wish(action, which="*" if which in ("*", "all") else which, to=to, moment=moment)  # type: ignore[arg-type]

    async def _answer(self, wish: Wish, setter: Setter, context: RequestContext, thread: str) -> str:
        match wish.action:
            case "add":
                return await self._add(wish, setter, context, thread)
            case "list":
                return self._list(setter)
            case "cancel":
                return await self._cancel(wish, setter, thread)
            case "move":
                row = await self._timers.move(self._timers.meant(setter, wish.which, thread), wish.to)
                return f"Moved. {set_text(row, self._timers.now(row.zone))}"
            case "snooze":
                row = await self._timers.snooze(setter, wish.moment)
                return f"Again {moment_text(row.next, row.zone, self._timers.now(row.zone))}: {row.detail['what']}."
            case "pause":
                row = await self._timers.pause(self._timers.meant(setter, wish.which, thread))
                return f"Paused: {row.detail['what']}."
            case "resume":
                row = await self._timers.resume(self._timers.meant(setter, wish.which, thread))
                return f"Goes on. {set_text(row, self._timers.now(row.zone))}"
            case "quiet":
                return await self._be_quiet(wish.quiet, setter)

    async def _add(self, wish: Wish, setter: Setter, context: RequestContext, thread: str) -> str:
        if context.timer or "timer" in context.envelope.data:  # else one could set many, and those again
            raise RefusedError("A timer sets no other timers; nothing was set.", do="Ask for it yourself.")
        assert wish.moment is not None
        row = await self._timers.add(
            wish.what, wish.moment, setter, asks=wish.asks, workspace=context.workspace, thread=thread
        )
        remarks = [wish.moment.remark]
        if setter.device:
            remarks.append(_CLOSED_PAGE)
        until = quiet_until(self._quiet(), row.next, self._timers.zone)
        if until and setter.is_owner:
            moment = moment_text(until, row.zone, self._timers.now(row.zone))
            remarks.append(f"That is in the quiet hours ({self._quiet()}): you are told {moment}.")
        return set_text(row, self._timers.now(row.zone), " ".join(filter(None, remarks)))

    def _list(self, setter: Setter) -> str:
        rows = self._timers.of(setter)
        if setter.operator:
            rows += [row for row in self._timers.all() if row.kind == SNAPSHOT]
        if not rows:
            return "You asked me for nothing: no timers are set."
        lines = [f"- {line_of(timer_view(row, self._timers.now(row.zone)))}" for row in rows[:_MOST_LISTED]]
        more = [f"- and {len(rows) - _MOST_LISTED} more"] if len(rows) > _MOST_LISTED else []
        return "\n".join(["You asked me for:", *lines, *more])

    async def _cancel(self, wish: Wish, setter: Setter, thread: str) -> str:
        if wish.which == "*":
            rows = self._timers.of(setter)
            for row in rows:
                await self._timers.cancel(row)
            return f"Cancelled: {len(rows)} timer{'' if len(rows) == 1 else 's'}."
        row = self._timers.meant(setter, wish.which, thread)
        await self._timers.cancel(row)
        moment = (
            rule_text(row.rule) if row.rule else moment_text(row.next, row.zone, self._timers.now(row.zone))
        )
        return f"Cancelled: {row.detail['what']} ({moment})."

    async def _be_quiet(self, hours: str, setter: Setter) -> str:
        if not setter.operator:
            raise RefusedError(
                "Quiet hours are set at this computer.", do="rappd config set timers.quiet 22:00-07:00"
            )
        if hours in ("", "off"):
            if not hours:
                now = self._quiet()
                return (
                    f"Quiet hours: {now}."
                    if now
                    else "No quiet hours are set. Say “quiet hours from 22 to 7”."
                )
            await self._set_quiet("")
            return "No quiet hours any more."
        parse_quiet(hours)
        await self._set_quiet(hours)
        return f"Quiet hours: {hours}. What is due in them is told when they are over."
