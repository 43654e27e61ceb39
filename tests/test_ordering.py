"""The order in which test files begin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fixtures.ordering_plugin import LONGEST, TESTS, longest_first


def collected(file: str, count: int, *marks: Any, uses: tuple[str, ...] = ()) -> list[Any]:
    """Collected tests of one file, ``count`` of them, all alike."""
    named = {mark.name: mark for mark in marks}
    return [
        SimpleNamespace(
            path=TESTS / file,
            name=f"{file}:{number}",
            fixturenames=uses,
            iter_markers=named.values,
            get_closest_marker=named.get,
        )
        for number in range(count)
    ]


def test_files_that_begin_first_are_there() -> None:
    """A file that was moved would come among the last ones, unnoticed."""
    assert [file for file in LONGEST if not (TESTS / file).is_file()] == []


def test_long_files_begin_and_surely_short_ones_end() -> None:
    browser, limit = pytest.mark.browser.mark, pytest.mark.timeout(900).mark
    items = [
        *collected("sums.py", 30),
        *collected("one_alone.py", 1),
        *collected("daemons.py", 8, uses=("make_daemon",)),
        *collected("pages.py", 9, browser),
        *collected("patient.py", 3, limit),
        *collected(LONGEST[1], 1),
    ]
    longest_first(items)
    assert list(dict.fromkeys(item.path.name for item in items)) == [
        LONGEST[1].rpartition("/")[2],
        "pages.py",
        "patient.py",
        "daemons.py",
        "one_alone.py",
        "sums.py",
    ]
    assert [item.name for item in items if item.path.name == "pages.py"] == [
        f"pages.py:{n}" for n in range(9)
    ]
