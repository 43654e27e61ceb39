"""Screens at 80, 60 and 40 columns, without colours, without UTF-8, on a dumb terminal, in a pipe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import Seen, Terminal, on_terminal

from rappd.cli.tables import cells

TABLES = [("agents", "list"), ("threads", "list"), ("rapps", "list")]
SCREENS = [
    *TABLES,
    ("status",),
    ("doctor",),
    ("config", "show"),
    ("threads", "verify"),
    ("agents", "test", "HackerNews"),
]
NEVER_CUT = re.compile(r"https?://|rappd [a-z]+|/rappd\.toml")


def _rows(seen: Seen) -> list[str]:
    """The lines of the table that a screen begins with."""
    return seen.text.split("\n\n")[0].split("\n")


@pytest.mark.parametrize("columns", [80, 60, 40])
@pytest.mark.parametrize("verb", SCREENS, ids=" ".join)
def test_no_line_is_longer_than_the_terminal(
    busy: RunningDaemon, verb: tuple[str, ...], columns: int
) -> None:
    seen = on_terminal(busy, *verb, columns=columns)
    assert seen.code == 0, seen.text
    for line in seen.lines:
        assert cells(line) <= columns or NEVER_CUT.search(line), line
    assert "Traceback" not in seen.text


@pytest.mark.parametrize("columns", [80, 60, 40])
def test_a_table_row_is_one_line_at_any_width(busy: RunningDaemon, columns: int) -> None:
    rows = _rows(on_terminal(busy, "agents", "list", columns=columns))
    assert len(rows) == 1 + len(busy.get("/health").json()["agents"]) + 1
    assert all(re.match(r"[✓✗!]  \S", row) for row in rows[1:])
    threads = on_terminal(busy, "threads", "list", columns=columns)
    assert len(threads.lines) == 1 + 3
    assert all(re.match(r"[0-9a-f]{8}  \S", row) for row in threads.lines[1:])


def test_columns_go_from_the_right_and_prose_loses_its_end(busy: RunningDaemon) -> None:
    wide = _rows(on_terminal(busy, "agents", "list", columns=160))
    assert wide[0].split("  ")[-1].strip() == "FROM"
    assert any(re.search(r"now and later  +yours$", row) for row in wide), "one sentence"
    narrow = _rows(on_terminal(busy, "agents", "list", columns=60))
    assert any(re.search(r"✓  Weather +Answers whatever.*…  +yours$", row) for row in narrow)
    tiny = _rows(on_terminal(busy, "threads", "list", columns=36))
    assert tiny[0].split() == ["THREAD", "BEGINS", "WITH", "RECORDS"]


def test_links_are_shown_whole_or_not_at_all(busy: RunningDaemon) -> None:
    link = f"http://localhost:{busy.port}/rapps/kanban/"
    assert link in on_terminal(busy, "rapps", "list", columns=80).text
    assert "http" not in on_terminal(busy, "rapps", "list", columns=40).text
    for columns in (80, 60, 40):
        assert (
            "https://raw.githubusercontent.com" in on_terminal(busy, "config", "show", columns=columns).text
        )


def test_hostile_words_do_not_steer_the_terminal(busy: RunningDaemon) -> None:
    for verb in (("threads", "list"), ("threads", "show", _hostile_thread(busy))):
        raw = on_terminal(busy, *verb).raw
        assert "\x1b[2J" not in raw
        assert "\x1b[31mred" not in raw
        assert "\x07" not in raw


def _hostile_thread(daemon: RunningDaemon) -> str:
    rows = daemon.get("/threads", control=True).json()["threads"]
    found: str = next(row["id"] for row in rows if row["title"].startswith("turn "))
    return found


@pytest.mark.parametrize(
    "environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}], ids=["NO_COLOR", "dumb", "no TERM"]
)
@pytest.mark.parametrize("verb", [("agents", "list"), ("doctor",), ("nonsense",)], ids=" ".join)
def test_no_colours_where_none_are_wanted(
    busy: RunningDaemon, verb: tuple[str, ...], environment: dict[str, str]
) -> None:
    seen = on_terminal(busy, *verb, **environment)
    assert not re.search(r"\x1b\[[0-9;]*m", seen.raw)
    assert re.search("^[✗!] ", seen.text, re.MULTILINE), "the sign says it too"
    if environment.get("TERM") != "xterm-256color" and "NO_COLOR" not in environment:
        assert "\x1b" not in seen.raw
        assert "\r\x1b[K" not in seen.raw, "nothing is written over"


def test_colours_on_a_terminal_are_the_sixteen(busy: RunningDaemon) -> None:
    raw = on_terminal(busy, "agents", "list").raw
    assert "\x1b[32m✓\x1b[0m" in raw
    assert "\x1b[31m✗\x1b[0m" in raw
    assert set(re.findall(r"\x1b\[([0-9;]*)m", raw)) <= {"0", "2", "31", "32", "33", "36"}


def test_without_utf8_words_stand_for_signs(busy: RunningDaemon) -> None:
    for environment in ({"LANG": "C"}, {"LC_ALL": "POSIX"}, {"LANG": "de_DE.ISO8859-1"}):
        listed = on_terminal(busy, "agents", "list", **environment)
        assert any(line.startswith("ok  Weather") for line in listed.lines)
        assert any(line.startswith("x   broken_agent.py") for line in listed.lines)
        assert "  -> fix and save; it reloads by itself" in listed.lines
        assert "..." in listed.text
        assert listed.text.isascii()
        assert max(map(len, listed.lines)) <= 80
    wrong = on_terminal(busy, "nonsense", LANG="C")
    assert wrong.lines == ['x No such command "nonsense"', "  -> rappd --help"]


def test_a_pipe_gets_plain_text_of_eighty_columns(busy: RunningDaemon) -> None:
    listed = busy.cli("agents", "list")
    assert "\x1b" not in listed.stdout + listed.stderr
    assert "\r" not in listed.stdout + listed.stderr
    assert max(map(cells, listed.stdout.split("\n\n")[0].splitlines())) <= 80
    assert listed.stderr == "", "no progress without a terminal"


@pytest.mark.parametrize("columns", [80, 60])
def test_questions_and_notes_are_broken_at_words(busy: RunningDaemon, tmp_path: Path, columns: int) -> None:
    asks = Terminal(busy, "peers", "legacy", "open", "192.168.178.201", "192.168.178.202", columns=columns)
    asks.read_until(lambda seen: "[y/N]" in seen.text)
    asks.type("n\n")
    packs = on_terminal(busy, "egg", "pack", "-o", str(tmp_path / "b.egg"), columns=columns)
    made = on_terminal(busy, "neighborhood", "create", f"the garden behind {columns} houses", columns=columns)
    helped = Terminal(busy, "chat", columns=columns)
    helped.type("/help\n/exit\n")
    for seen in (asks.to_end(), packs, made, helped.to_end()):
        assert [line for line in seen.lines if cells(line) > columns and str(tmp_path) not in line] == []


def test_models_that_are_none_come_with_a_way_to_one(busy: RunningDaemon, idle: RunningDaemon) -> None:
    idle.environment.pop("LLM_FAKE")
    idle.start()
    try:
        assert "→ start Ollama, or rappd models connect" in on_terminal(idle, "models", "list").text
    finally:
        idle.stop()
    assert "rappd models connect" not in on_terminal(busy, "models", "list").text
