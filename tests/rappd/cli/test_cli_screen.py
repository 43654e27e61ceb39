"""Tables, amounts, marks and errors, at any width and in any locale."""

from __future__ import annotations

import io
import json
import time
import unicodedata
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.cli import console, tables
from rappd.cli import progress as progress_line
from rappd.cli.console import print_json
from rappd.cli.formatting import ago, count, sentence, tilde, took
from twins.byte_sizes import format_bytes

WORDS = st.text(st.characters(codec="utf-8"), max_size=90)


@given(st.lists(st.integers(0, 120), min_size=1, max_size=6), st.integers(1, 200), st.data())
def test_columns_always_fit_and_the_leftmost_stay(
    natural: list[int], width: int, data: st.DataObject
) -> None:
    shrink = data.draw(st.integers(0, len(natural) - 1))
    whole = data.draw(st.lists(st.integers(0, len(natural) - 1), unique=True))
    widths = tables.fitted(natural, width, shrink=shrink, whole=whole)
    assert 1 <= len(widths) <= len(natural)
    assert sum(widths) + 2 * (len(widths) - 1) <= width or widths == [1]
    assert all(got <= wanted for got, wanted in zip(widths, natural, strict=False))
    for column in whole:
        if 0 < column < len(widths) and column != shrink:
            assert widths[column] == natural[column]


@given(
    st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=6), st.sampled_from([40, 60, 80, 200]), st.booleans()
)
def test_no_row_is_longer_than_the_terminal_or_has_two_lines(
    rows: list[tuple[str, str, str]], width: int, prose: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shown: list[str] = []
        patch.setattr(tables, "terminal_width", lambda: width)
        patch.setattr(tables, "print_out", shown.append)
        tables.table(["NAME", "WHAT", "FROM"], rows, shrink=1, prose=prose, marks=["good"] * len(rows))
    assert len(shown) == len(rows) + 1
    for line in shown:
        bare = click.unstyle(line)
        assert tables.cells(bare) <= width
        assert all(unicodedata.category(sign) not in ("Cc", "Zl", "Zp") for sign in bare)


@given(WORDS, st.integers(1, 60))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, width: int) -> None:
    short = tables.middle(text, width)
    assert tables.cells(short) <= width
    if tables.cells(text) <= width:
        assert short == text
    elif text.isascii() and width > 6:
        left, right = short.replace("...", "…").split("…")[0], short.replace("...", "…").split("…")[-1]
        assert text.startswith(left)
        assert text.endswith(right)


@given(WORDS, st.integers(1, 60))
def test_a_text_that_loses_its_end_fits(text: str, width: int) -> None:
    assert tables.cells(tables.beginning(text, width)) <= width


def test_narrow_column_uses_freed_room() -> None:
    assert tables.fitted([10, 50, 30], 40, shrink=1) == [10, 28]
    assert tables.fitted([10, 50, 30], 80, shrink=1) == [10, 36, 30]
    assert tables.fitted([90], 40) == [40]


def test_foreign_text_cannot_steer_the_terminal() -> None:
    hostile = "a\x1b[2Jb\x1b]0;title\x07c\rd\x9b31me\u202egnp.exe"
    tamed = console.strip_control(hostile)
    assert "\x1b" not in tamed
    assert tamed.isprintable()
    assert console.strip_control("two\nlines\tand tabs") == "two\nlines\tand tabs"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "C.UTF-8"}, True),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),  # Python's own doing
        ({"LC_CTYPE": "C.UTF-8"}, False),
        ({"LC_CTYPE": "UTF-8"}, True),  # macOS over SSH
        ({"LANG": "en_US.UTF-8", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "de_DE@euro"}, False),
        ({}, False),
    ],
)
def test_the_locale_says_whether_signs_can_be_read(environment: dict[str, str], expected: bool) -> None:
    assert console.locale_has_utf8(environment) is expected


def test_without_utf8_signs_become_words_and_data_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert console.plain("✓ a → b … ✗ Köln", stream) == "ok a -> b ... x Köln"
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert console.plain("✓ Köln", narrow) == "ok K?ln"


def test_commands_in_advice_are_as_this_shell_can_run_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_program", lambda: ".venv/bin/rappd")
    for said, shown in (
        ("rappd start", ".venv/bin/rappd start"),
        ("PORT=7171 rappd start", "PORT=7171 .venv/bin/rappd start"),
        ("stop it, or `PORT=7171 rappd start`", "stop it, or PORT=7171 .venv/bin/rappd start"),
        (
            "start Ollama, or rappd config set provider.url URL",
            "start Ollama, or .venv/bin/rappd config set provider.url URL",
        ),
        ("`rappd stop`, then `rappd start`", ".venv/bin/rappd stop, then .venv/bin/rappd start"),
        ("Ask again once rappd is running.", "Ask again once rappd is running"),
    ):
        assert click.unstyle(console.advice(said, 4)) == shown
    assert (
        console.advice("stop it, or `rappd start`", 4) == "stop it, or \x1b[36m.venv/bin/rappd start\x1b[0m"
    )


def test_a_command_is_never_broken_across_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda self: True})()
    monkeypatch.setenv("COLUMNS", "44")
    said = console.advice("start Ollama, or rappd config set provider.url URL", 4, stream=terminal)
    assert any("config set provider.url URL" in line for line in said.split("\n"))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (ago(0.4), "0 s ago"), (ago(119), "1 min ago"), (ago(7200), "2 h ago"), (ago(86400), "1 day ago"),
        (ago(3 * 86400), "3 days ago"), (ago(-5), "0 s ago"),
        (took(0.0004), "1 ms"), (took(0.04), "40 ms"), (took(0.81), "0.8 s"), (took(12.4), "12 s"),
        (took(125), "2 min 5 s"), (took(9.96), "10 s"),
        (format_bytes(410), "410 bytes"), (format_bytes(3.1e6), "3.1 MB"), (format_bytes(212e9), "212 GB"), (format_bytes(999_960), "1.0 MB"),
        (count(1, "agent"), "1 agent"), (count(2000, "record"), "2,000 records"),
        (sentence("One thing. And another. "), "One thing"), (sentence("What?  Yes. No."), "What?"),
        (tilde(Path.home() / "x"), "~/x"), (tilde("/else"), "/else"),
    ],
)  # fmt: skip
def test_amounts_are_worded(told: str, expected: str) -> None:
    assert told == expected


@pytest.mark.parametrize("extra", [0, 2**70, "\ud800", Path("/a")], ids=["plain", "large", "half", "path"])
def test_one_object_for_scripts_is_indented_whatever_is_in_it(
    capfd: pytest.CaptureFixture[str], extra: object
) -> None:
    body = {"name": "Zoë ✓", "empty": [[], {}, ""], "rows": [{"n": 1.5, "x": None}, extra], "y": True}
    print_json(body)
    escaped = extra in (2**70, "\ud800")
    expected = json.dumps(body, ensure_ascii=escaped, indent=2, default=str)
    assert capfd.readouterr().out == f"{expected}\n"


def test_line_of_progress_shows_the_last_state_though_nothing_comes_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()  # pytest's own loses what a thread writes while it is read
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.setattr(progress_line, "redraws", lambda _: True)
    monkeypatch.setattr(progress_line, "_PATIENCE", 0.01)
    until = time.monotonic() + 100
    with progress_line.progress("begins") as line:
        while "begins" not in written.getvalue() and time.monotonic() < until:
            time.sleep(0.001)
        line("half")
        line("all of it")
        while "all of it" not in written.getvalue() and time.monotonic() < until:
            time.sleep(0.001)
    assert "all of it" in written.getvalue()
