"""The order in which test files begin."""

from __future__ import annotations

from fixtures.ordering_plugin import LONGEST, TESTS


def test_files_that_begin_first_are_there() -> None:
    """A file that was moved would come among the last ones, unnoticed."""
    assert [file for file in LONGEST if not (TESTS / file).is_file()] == []
