from __future__ import annotations

from datetime import datetime

import pytest

from agents.slosh.derived_layers import temporal


@pytest.mark.parametrize(
    ("hour", "time_of_day", "activity"),
    [
        (4, "night", "after_hours"),
        (5, "early_morning", "preparing_for_day"),
        (8, "early_morning", "preparing_for_day"),
        (9, "morning", "active_work"),
        (11, "morning", "active_work"),
        (12, "afternoon", "follow_ups"),
        (16, "afternoon", "follow_ups"),
        (17, "evening", "wrap_up"),
        (20, "evening", "wrap_up"),
        (21, "night", "after_hours"),
        (0, "night", "after_hours"),
    ],
)
def test_the_hour_decides_the_part_of_the_day(hour: int, time_of_day: str, activity: str) -> None:
    layer = temporal(datetime(2026, 5, 20, hour, 59))
    assert (layer["time_of_day"], layer["likely_activity"]) == (time_of_day, activity)


@pytest.mark.parametrize(
    ("month", "day", "fiscal", "quarter", "urgent"),
    [
        (1, 1, "quarter_start", "Q1", False),
        (1, 15, "quarter_start", "Q1", False),
        (1, 16, "mid_quarter", "Q1", False),
        (3, 14, "mid_quarter", "Q1", False),
        (3, 15, "quarter_end_push", "Q1", True),
        (4, 15, "quarter_start", "Q2", False),
        (5, 10, "mid_quarter", "Q2", False),
        (6, 30, "quarter_end_push", "Q2", True),
        (7, 2, "quarter_start", "Q3", False),
        (9, 20, "quarter_end_push", "Q3", True),
        (10, 3, "quarter_start", "Q4", False),
        (12, 14, "year_end", "Q4", True),
        (12, 15, "quarter_end_push", "Q4", True),
    ],
)
def test_the_date_decides_the_fiscal_period(
    month: int, day: int, fiscal: str, quarter: str, urgent: bool
) -> None:
    layer = temporal(datetime(2026, month, day, 10))
    assert (layer["fiscal"], layer["quarter"], layer["is_urgent_period"]) == (fiscal, quarter, urgent)


def test_weekdays_and_attributes() -> None:
    assert temporal(datetime(2026, 11, 21)).day_of_week == "Saturday"
    assert temporal(datetime(2026, 11, 21)).is_weekend is True
    assert temporal(datetime(2026, 11, 23)).is_weekend is False
    with pytest.raises(AttributeError, match="season"):
        _ = temporal(datetime(2026, 11, 23)).season
