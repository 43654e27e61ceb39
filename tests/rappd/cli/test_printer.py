"""The two printers of commands: each gets the same result, and no command chooses between them by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

import rappd
from rappd.cli.console import command
from rappd.cli.printer import JsonPrinter, Printer
from rappd.cli.tables import Table
from rappd.errors import ConfirmationNeededError

MOST_BRANCHES = 8
KETTLES = Table(
    ("KETTLE", "name"),
    ("CUPS", lambda row: row["cups"] or "-"),
    mark=lambda row: "good" if row["cups"] else None,
    none=("No kettle. ", "rappd devices new"),
)


def test_results_are_words_or_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    for printer in (Printer(), JsonPrinter()):
        printer.result({"kettles": [{"name": "red", "cups": 2}]}, KETTLES, [{"name": "red", "cups": 2}])
        printer.sentence({"kettle": "red"}, "red\x1b[2J boils.", then="rappd devices list")
        printer.done({"kettle": "red"}, "It boils.", "rappd devices list")
        printer.note(print, "Mind the steam.")
    words, objects = capsys.readouterr().out.split("Mind the steam.\n")
    assert [line.split() for line in words.splitlines()[:2]] == [["KETTLE", "CUPS"], ["✓", "red", "2"]]
    then = f"\n  → {click.unstyle(command('rappd devices list'))}\n"
    assert f"✓ red boils.{then}✓ It boils{then}" in words
    found = [json.loads(one) for one in re.split(r"(?<=\})\n(?=\{)", objects.strip())]
    assert found == [{"kettles": [{"name": "red", "cups": 2}]}, {"kettle": "red"}, {"kettle": "red"}]


def test_no_rows_are_told_with_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    KETTLES([])
    assert capsys.readouterr().out == f"No kettle. → {click.unstyle(command('rappd devices new'))}\n"


def test_events_are_lines_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    for printer in (Printer(), JsonPrinter()):
        printer.event({"state": "warm"})
        printer.event({"state": "hot"}, print, "hot now")
    assert capsys.readouterr().out == 'hot now\n{"state": "warm"}\n{"state": "hot"}\n'


@pytest.mark.parametrize("printer", [Printer(), JsonPrinter()])
def test_without_a_person_nothing_is_confirmed(printer: Printer) -> None:
    with pytest.raises(ConfirmationNeededError, match=r"Nothing boiled\.") as refused:
        printer.confirm("Boil?", "Nothing boiled.")
    assert (refused.value.do, refused.value.exit_code) == ("Add --yes.", 6)


def test_branches_between_the_printers_become_fewer() -> None:
    root = Path(rappd.__file__).parent
    lines = [
        line
        for folder in ("cli", "features")
        for file in sorted((root / folder).rglob("*.py"))
        for line in file.read_text().splitlines()
        if re.search(r"\b(el)?if\b.*\b(as_json|for_scripts)\b(?!\()", line)
    ]
    assert len(lines) <= MOST_BRANCHES, "hand the result to the command's printer"
