"""Two weeks of made-up time over changes of the clocks, with kills at each step of firing and clocks that jump."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

REPO = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("two_weeks.py")
KILLS = int(os.environ.get("TIMER_KILLS", "2"))
"""Kills at each of the six steps; the figure in the documentation is of 40."""
ONCE = 150


@pytest.mark.parametrize(
    ("zone", "begin"),
    [
        ("Europe/Berlin", "2027-03-20"),  # an hour is left out on the 28th
        ("Europe/Berlin", "2027-10-23"),  # an hour comes twice on the 31st
        ("America/New_York", "2027-03-08"),
        ("Australia/Lord_Howe", "2027-03-30"),  # half an hour
        ("UTC", "2027-02-20"),
    ],
)
@pytest.mark.timeout(900)
def test_each_moment_is_told_once_and_none_late_without_saying_so(
    tmp_path: Path, zone: str, begin: str
) -> None:
    start = datetime.fromisoformat(f"{begin}T12:00").replace(tzinfo=ZoneInfo(zone)).timestamp()
    ran = subprocess.run(
        [sys.executable, PROGRAM, tmp_path, zone, str(start), "7", str(KILLS)],
        capture_output=True,
        text=True,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    asked, answers = told["asked"], told["answers"]
    assert all(number == KILLS for number in told["killed"].values()), told["killed"]
    assert told["left"] == 0, "none lost"
    assert set(asked) == set(answers)
    assert all(len(one) == 1 for one in answers.values()), "each turn is answered once"
    moments = Counter((one["id"], one["due"]) for one in asked.values())
    assert set(moments.values()) == {1}, "each moment is one turn"
    assert max(Counter(told["performed"]).values()) == 1, "no sentence is asked twice"
    per_timer = Counter(one["id"] for one in asked.values())
    assert sum(1 for number in per_timer.values() if number == 1) >= ONCE
    assert len(per_timer) == 200, "each of the 200 fired"
    for id, one in asked.items():
        (answer,) = answers[id]
        if one["late"] > 60 and not answer.startswith("ERROR"):
            assert "late" in answer, "none late without saying so"
        if answer.startswith("ERROR"):
            assert answer == "ERROR interrupted" and one["asks"], (
                "only what must not be done twice was cut off"
            )
