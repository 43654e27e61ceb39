"""Rules for repeated moments, across changes to and from summer time."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.errors import UsageProblemError
from rappd.sessions.schedule.rules import next_moment, parse_rule, zone_of

BERLIN = ZoneInfo("Europe/Berlin")


def after(rule: str, moment: str, zone: ZoneInfo = BERLIN) -> str:
    at = datetime.fromisoformat(moment).replace(tzinfo=zone).timestamp()
    return datetime.fromtimestamp(next_moment(parse_rule(rule), at, zone), zone).isoformat()


@pytest.mark.parametrize(
    ("rule", "moment", "then"),
    [
        ("daily 03:00", "2026-11-26T02:59:59", "2026-11-26T03:00:00+01:00"),
        ("daily 03:00", "2026-11-26T03:00:00", "2026-11-27T03:00:00+01:00"),
        ("Weekly Sun 9:05", "2026-11-26T12:00:00", "2026-11-29T09:05:00+01:00"),
        ("weekly thursday 12:00", "2026-11-26T12:00:00", "2026-12-03T12:00:00+01:00"),
        ("every 6 hours", "2026-11-26T12:00:00", "2026-11-26T18:00:00+01:00"),
        ("every 1 day", "2026-11-26T12:00:00", "2026-11-27T12:00:00+01:00"),
        ("daily 14 2026-12-04 07:00", "2026-11-26T12:00:00", "2026-12-04T07:00:00+01:00"),
        ("daily 14 2026-12-04 07:00", "2026-12-04T07:00:00", "2026-12-18T07:00:00+01:00"),
        (
            "daily 14 2026-03-20 07:00",
            "2026-03-20T07:00:00",
            "2026-04-03T07:00:00+02:00",
        ),  # the clocks changed
        ("daily 2 2026-12-04 07:00", "2026-12-07T06:00:00", "2026-12-08T07:00:00+01:00"),
        ("monthly 1mon 09:00", "2026-11-26T12:00:00", "2026-12-07T09:00:00+01:00"),
        ("monthly 4fri 09:00", "2026-12-25T09:00:00", "2027-01-22T09:00:00+01:00"),
        ("monthly lastfri 09:00", "2026-11-27T08:00:00", "2026-11-27T09:00:00+01:00"),
        ("monthly lastfri 09:00", "2026-11-27T09:00:00", "2026-12-25T09:00:00+01:00"),
        ("daily 02:30", "2026-03-29T00:00:00", "2026-03-29T03:30:00+02:00"),  # 02:30 does not exist
        ("daily 02:30", "2026-10-25T00:00:00", "2026-10-25T02:30:00+02:00"),
        ("daily 02:30", "2026-10-25T02:30:00", "2026-10-26T02:30:00+01:00"),  # not twice in that night
    ],
)
def test_rule_gives_its_next_moment(rule: str, moment: str, then: str) -> None:
    assert after(rule, moment) == then


@pytest.mark.parametrize(
    "text",
    [
        "",
        "daily",
        "daily 24:00",
        "daily 3",
        "weekly 03:00",
        "weekly mo 03:00",
        "every 0 hours",
        "every 400 days",
        "hourly",
        "daily 0 2026-12-04 07:00",
        "daily 2 2026-13-04 07:00",
        "monthly 5mon 09:00",
        "monthly 1xyz 09:00",
    ],
)
def test_what_is_no_rule_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageProblemError) as refused:
        parse_rule(text)
    assert "daily 03:00" in refused.value.do


def test_unknown_time_zone_is_refused() -> None:
    for name in ("Europe/Atlantis", "../../etc/passwd", "x\0"):
        with pytest.raises(UsageProblemError):
            zone_of(name)


@given(
    st.floats(0, 4e9),
    st.integers(0, 23),
    st.integers(0, 59),
    st.sampled_from([BERLIN, None, ZoneInfo("Asia/Kolkata")]),
)
def test_next_moment_is_later_and_within_two_days(
    moment: float, hour: int, minute: int, zone: ZoneInfo | None
) -> None:
    found = next_moment(parse_rule(f"daily {hour}:{minute:02}"), moment, zone)
    assert moment < found <= moment + timedelta(hours=26).total_seconds()
