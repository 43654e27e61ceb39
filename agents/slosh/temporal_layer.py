"""The temporal layer: what the clock and the calendar say, in local time."""

from __future__ import annotations

from datetime import datetime

from agents.slosh.layer import Layer

_DAY_PARTS = (
    (range(5, 9), "early_morning", "preparing_for_day"),
    (range(9, 12), "morning", "active_work"),
    (range(12, 17), "afternoon", "follow_ups"),
    (range(17, 21), "evening", "wrap_up"),
)


def temporal(moment: datetime) -> Layer:
    """``{time_of_day, day_of_week, is_weekend, quarter, fiscal, likely_activity, is_urgent_period}``."""
    time_of_day, activity = _day_part(moment.hour)
    fiscal = _fiscal(moment.month, moment.day)
    return Layer(
        time_of_day=time_of_day,
        day_of_week=_WEEKDAYS[moment.weekday()],
        is_weekend=moment.weekday() >= 5,
        quarter=f"Q{(moment.month - 1) // 3 + 1}",
        fiscal=fiscal,
        likely_activity=activity,
        is_urgent_period=fiscal in ("quarter_end_push", "year_end"),
    )


# Spelled here: strftime would answer in the machine's language.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _day_part(hour: int) -> tuple[str, str]:
    for hours, name, activity in _DAY_PARTS:
        if hour in hours:
            return name, activity
    return "night", "after_hours"


def _fiscal(month: int, day: int) -> str:
    if month in (1, 4, 7, 10) and day <= 15:
        return "quarter_start"
    if month in (3, 6, 9, 12) and day >= 15:
        return "quarter_end_push"
    if month == 12:
        return "year_end"
    return "mid_quarter"
