"""Words of timers: moments, lateness, confirmations, and rows for screens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, TypedDict

from rappd.sessions.schedule.rules import local_time, parse_rule, zone_of
from rappd.store.state_table import DELAY
from rappd.store.timer_table import TimerRow

_LATE_SECONDS = 60.0
"""So late is in time: nobody feels it."""
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def clock_text(moment: float, zone: str) -> str:
    """A moment as people write it: ``Tue 1 Dec 2026, 09:00``."""
    local = local_time(moment, zone_of(zone))
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M}"


def moment_text(moment: float, zone: str, now: datetime) -> str:
    """The same with how far away it is: ``tomorrow, Tue 1 Dec 2026, 09:00``."""
    local = local_time(moment, zone_of(zone))
    days = (local.date() - now.date()).days
    near = {0: "today", 1: "tomorrow"}.get(days, "")
    seconds = (local - now).total_seconds()
    ahead = f", in {span_text(seconds)}" if 0 <= seconds < 12 * 3600 else ""
    text = f"{near}, {clock_text(moment, zone)}" if near else clock_text(moment, zone)
    return f"{text}{ahead}{f' {zone}' if zone else ''}"


def span_text(seconds: float) -> str:
    """A span of time: ``20 minutes``, ``2 h 10 min``, ``3 days``."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return count(round(seconds), "second")
    if minutes < 60:
        return count(minutes, "minute")
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return count(round(minutes / 1440), "day")


def count(number: int, unit: str) -> str:
    """``1 minute``, ``2 minutes``."""
    return f"{number} {unit}{'' if number == 1 else 's'}"


def late_text(row: TimerRow, late: float) -> str:
    """The sentence that says how late a timer is; "" for one that is in time."""
    if late <= _LATE_SECONDS:
        return ""
    return f"This is {span_text(late)} late: it was due {clock_text(row.next, row.zone)}."


_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", -1: "last"}


def rule_text(text: str) -> str:
    """A rule in words: ``every Monday and Thursday at 18:00``."""
    rule = parse_rule(text)
    if rule.every:
        minutes = rule.every // 60
        for unit, size in (("day", 1440), ("hour", 60), ("minute", 1)):
            if minutes % size == 0:
                number = minutes // size
                return f"every {unit}" if number == 1 else f"every {number} {unit}s"
    at = f"at {rule.hour:02}:{rule.minute:02}"
    if rule.step:
        weeks = rule.step // 7
        if rule.step % 7:
            return f"every {rule.step} days {at}"
        return (
            f"every {'other week' if weeks == 2 else f'{weeks} weeks'} on {_DAYS[rule.first.weekday()]} {at}"
        )
    if rule.nth:
        day = _DAYS[next(iter(rule.weekdays))]
        return f"on the {_ORDINALS[rule.nth]} {day} of every month {at}"
    if rule.day:
        if rule.month:
            return f"every year on {rule.day} {datetime(2024, rule.month, 1):%B} {at}"
        return f"on day {rule.day} of every month {at}"
    if len(rule.weekdays) == 7:
        return f"every day {at}"
    if rule.weekdays == frozenset(range(5)):
        return f"every weekday {at}"
    names = [_DAYS[day] for day in sorted(rule.weekdays)]
    return f"every {' and '.join([', '.join(names[:-1]), names[-1]] if names[1:] else names)} {at}"


def set_text(row: TimerRow, now: datetime, remark: str = "") -> str:
    """The confirmation of a timer: what is to happen, when, and what is to be known of it."""
    moment = moment_text(row.next, row.zone, now)
    when = f"{rule_text(row.rule)}, first {moment}" if row.rule else moment
    kind = "Scheduled" if row.detail.get("asks") else "Reminder set"
    return " ".join(filter(None, (f"{kind}: {row.detail['what']} ({when}).", remark)))


_CHANGED = {"organism": "organism.yaml"}
"""Callers whose timers are changed in a file of theirs."""


class TimerView(TypedDict):
    """A timer as screens get it. ``next`` and ``last`` are moments in UTC, in ISO 8601; ``last`` is "" before the first."""

    id: str
    kind: Literal["reminder", "ask", "delay", "snapshot"]
    what: str
    when: str
    rule: str
    zone: str
    next: str
    paused: bool
    by: str
    thread: str
    workspace: str
    last: str
    failures: int
    change: str
    """The place where it is changed in place of here, "" for none."""


def timer_view(row: TimerRow, now: datetime) -> TimerView:
    """A timer as screens get it; ``kind`` is reminder, ask, delay or snapshot. ``now`` is the local time."""
    by = row.detail.get("by", {})
    moment = moment_text(row.next, row.zone, now)
    return {
        "id": row.id,
        "kind": _kind(row),
        "what": row.detail.get("what", "snapshot of all machines"),
        "when": f"{rule_text(row.rule)}, next {moment}" if row.rule else moment,
        "rule": row.rule,
        "zone": row.zone,
        "next": datetime.fromtimestamp(row.next, UTC).isoformat(timespec="seconds"),
        "paused": row.paused,
        "by": _by(row.caller),
        "thread": row.detail.get("thread", ""),
        "workspace": row.detail.get("workspace", ""),
        "last": datetime.fromtimestamp(row.last, UTC).isoformat(timespec="seconds") if row.last else "",
        "failures": int(row.detail.get("failures", 0)),
        "change": _CHANGED.get(row.caller, "") if by else "rappd neighborhood schedule",
    }


def _kind(row: TimerRow) -> Literal["reminder", "ask", "delay", "snapshot"]:
    if row.kind == "turn":
        return "ask" if row.detail.get("asks") else "reminder"
    return "delay" if row.kind == DELAY else "snapshot"


def _by(caller: str) -> str:
    if caller == "organism":
        return "organism.yaml"
    if caller in ("operator", "local", "device:"):
        return {"operator": "you", "local": "a program here", "device:": "you, in a session"}[caller]
    kind, _, name = caller.partition(":")
    return f"{'a phone' if kind == 'device' else 'a machine or program'} ({name[-20:][:8] if kind == 'device' else name[:16]})"


def line_of(view: TimerView) -> str:
    """A timer in one line of an answer."""
    state = " (paused)" if view["paused"] else ""
    return f"{view['what']}: {view['when']}{state}"
