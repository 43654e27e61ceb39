"""Rules of repetitions in words."""

from __future__ import annotations

import pytest

from rappd.features.timers.text import rule_text


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("daily 07:00", "every day at 07:00"),
        ("weekly mon,thu 18:00", "every Monday and Thursday at 18:00"),
        ("every 120 minutes", "every 2 hours"),
        ("daily 2 2026-12-01 09:00", "every 2 days at 09:00"),
        ("daily 14 2026-12-04 09:00", "every other week on Friday at 09:00"),
        ("daily 21 2026-12-04 09:00", "every 3 weeks on Friday at 09:00"),
        ("monthly 1mon 09:00", "on the first Monday of every month at 09:00"),
        ("monthly lastfri 09:00", "on the last Friday of every month at 09:00"),
        ("monthly 31 09:00", "on day 31 of every month at 09:00"),
        ("yearly 12-24 18:00", "every year on 24 December at 18:00"),
    ],
)
def test_rule_in_words(rule: str, words: str) -> None:
    assert rule_text(rule) == words
