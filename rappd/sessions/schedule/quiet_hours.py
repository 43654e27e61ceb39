"""Quiet hours: nothing is told in them that can wait until they are over."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

from rappd.errors import UsageProblemError
from rappd.sessions.schedule.rules import local_time, moment_at, zone_of

_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)")


def parse_quiet(text: str) -> tuple[time, time] | None:
    """Begin and end of ``22:00-07:00``; None for "". Raises ``UsageProblemError``."""
    if not text.strip():
        return None
    found = _HOURS.fullmatch(text.strip())
    if found is None or found.group(1, 2) == found.group(3, 4):
        raise UsageProblemError(f"“{text[:40]}” are no quiet hours.", do="Write them like 22:00-07:00.")
    return time(int(found[1]), int(found[2])), time(int(found[3]), int(found[4]))


def quiet_until(text: str, now: float, zone: str = "") -> float:
    """The end of the quiet hours that ``now`` lies in, in seconds since 1970; 0 outside of them."""
    hours = parse_quiet(text)
    if hours is None:
        return 0.0
    begin, end = hours
    local = local_time(now, zone_of(zone))
    clock = local.time()
    if not (begin <= clock < end if begin < end else clock >= begin or clock < end):
        return 0.0
    day = local.date() + timedelta(days=1 if clock >= end else 0)
    return moment_at(datetime.combine(day, end), zone_of(zone))
