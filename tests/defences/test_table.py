"""Each row of the table applies, and names tests that exist; ``make defences`` looks whether they notice."""

from __future__ import annotations

import pytest

from . import table
from .table import REPO, Defence

ROWS = table.read_table()


def test_table_has_many_defences_of_every_part() -> None:
    assert len(ROWS) >= 60
    assert len({(row.file, row.text) for row in ROWS}) == len(ROWS), "no defence twice"
    assert len({row.file.split("/")[0] for row in ROWS}) == 5, "each of the five packages has some"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_defence_applies_once_and_names_tests_of_its_threat(row: Defence) -> None:
    assert row.mutant(REPO)
    for test in map(table.without_parameter, row.tests):
        file, _, name = test.partition("::")
        assert name in table.tests_in(REPO / file), test
        if row.threat:
            assert test in table.tests_of_threat(row.threat), f"docs/threat-model.md, {row.threat}: {test}"
