"""Conversations: listed, searched, shown, renamed, exported and verified, with the daemon up and down."""

from __future__ import annotations

import itertools
import json
import sqlite3
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import on_terminal

from rappd.store import verify as verifying


def test_a_conversation_is_shown_in_order_with_its_calls(talked: RunningDaemon) -> None:
    rows = json.loads(talked.cli("threads", "list", "--json").stdout)["threads"]
    assert [row["title"] for row in rows] == ["other", "first"]
    seen = on_terminal(talked, "threads", "show", rows[1]["id"][:8])
    said = [line[10:].strip() for line in seen.lines]
    assert said.index("you           first") < said.index("you           second")
    assert any(line.endswith("ContextMemory") for line in said)
    assert "brainstem     fake-llm: first" in said
    assert all(len(line) <= 80 for line in seen.lines)
    events = json.loads(talked.cli("threads", "show", rows[1]["id"], "--json").stdout)
    assert events["thread"]["count"] == len(events["events"]) == 8


def test_tree_shows_what_led_to_an_answer_above_it(talked: RunningDaemon) -> None:
    rows = json.loads(talked.cli("threads", "list", "--json").stdout)["threads"]
    seen = on_terminal(talked, "threads", "tree", rows[1]["id"][:8])
    lines = [line.rstrip() for line in seen.lines]
    assert all(len(line) <= 80 for line in lines)
    asked, called, answered = (
        next(n for n, line in enumerate(lines) if text in line)
        for text in ("s  first", "ContextMemory", "fake-llm: first")
    )
    assert asked < called < answered
    assert len(lines[called]) - len(lines[called].lstrip()) > len(lines[asked]) - len(lines[asked].lstrip())
    tree = json.loads(talked.cli("threads", "tree", rows[1]["id"], "--json").stdout)["tree"]
    assert [step["asked"] for step in tree["steps"]] == ["first", "second with two lines"]
    assert tree["thread"]["path"] == [rows[1]["id"]]


def test_a_prefix_that_fits_several_is_answered_with_them(talked: RunningDaemon) -> None:
    talked.start()
    for number in range(15):
        talked.chat("hi", session_id=f"further {number}")
    ids = [row["id"] for row in json.loads(talked.cli("threads", "list", "--json").stdout)["threads"]]
    # Of 17 ids two begin with the same of 16 digits.
    first, _ = next(two for two in itertools.pairwise(sorted(ids)) if two[0][0] == two[1][0])
    done = talked.cli("threads", "show", first[0])
    assert done.returncode == 2
    assert f'"{first[0]}" fits several threads: ' in done.stderr and first[:8] in done.stderr
    listed = talked.cli("threads", "list", "--limit", "1").stdout.splitlines()
    assert len(listed) == 2


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_export_is_the_same_on_stdout_in_a_file_and_in_json(
    talked: RunningDaemon, tmp_path: Path, form: str
) -> None:
    thread = json.loads(talked.cli("threads", "list", "--json").stdout)["threads"][0]["id"]
    asked = ("threads", "export", thread[:8], "--format", form)
    on_stdout = talked.cli(*asked).stdout
    assert "other" in on_stdout
    done = talked.cli(*asked, "--output", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "out").read_text() == on_stdout
    assert json.loads(talked.cli(*asked, "--json").stdout)["export"]["content"] == on_stdout


def test_an_empty_home_has_nothing_to_show(idle: RunningDaemon) -> None:
    assert idle.cli("threads", "list").stdout == "No conversation is recorded here.\n"
    assert (
        idle.cli("threads", "verify").stdout == "✓ 0 events in 0 threads, none changed; not anchored yet.\n"
    )


def test_threads_search_finds_what_was_said_and_names_its_conversation(talked: RunningDaemon) -> None:
    assert talked.cli("threads", "search", "lines").returncode == 3, "the daemon searches"
    talked.start()
    (row,) = [one for one in _listed(talked) if one["title"] == "first"]
    seen = on_terminal(talked, "threads", "search", "LINES", "second").lines
    assert seen == [
        f"{row['id'][:8]}  first",
        "          they  fake-llm: second with two lines",
        "          you   second with two lines",
    ]
    (found,) = json.loads(talked.cli("threads", "search", "second", "lines", "--json").stdout)["found"]
    assert found["conversation"]["id"] == row["id"]
    assert [excerpt["yours"] for excerpt in found["excerpts"]] == [False, True]
    assert len(json.loads(talked.cli("threads", "search", "fake", "--json").stdout)["found"]) == 2
    assert talked.cli("threads", "search", "second", "other").stdout == "Nothing was found.\n"
    assert talked.cli("threads", "search").returncode == 2
    talked.chat("a turtle \x1b[2J crosses", session_id="three")
    assert "\x1b" not in talked.cli("threads", "search", "turtle").stdout


def test_threads_rename_gives_a_title_that_list_and_search_know(talked: RunningDaemon) -> None:
    (thread,) = [one["id"] for one in _listed(talked) if one["title"] == "first"]
    assert talked.cli("threads", "rename", thread[:8], "Garden").returncode == 3, "the daemon writes"
    talked.start()
    assert talked.cli("threads", "rename", thread[:8], "The", "garden").stdout == "✓ The garden\n"
    assert "The garden" in talked.cli("threads", "list").stdout
    assert talked.cli("threads", "search", "garden").stdout.startswith(f"{thread[:8]}  The garden\n")
    refused = talked.cli("threads", "rename", thread, "x" * 1000)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert talked.cli("threads", "rename", "nothing", "Garden").returncode == 4
    back = json.loads(talked.cli("threads", "rename", thread, "--json").stdout)["conversation"]
    assert (back["id"], back["title"]) == (thread, "first")
    assert sorted(row["title"] for row in _listed(talked)) == ["first", "other"]


def _listed(home: RunningDaemon) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(home.cli("threads", "list", "--json").stdout)["threads"]
    return found


def test_a_changed_record_is_found_and_named(talked: RunningDaemon) -> None:
    with sqlite3.connect(talked.home / "rappd.db") as database:
        for (guard,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {guard}")
        body = database.execute("SELECT body FROM events WHERE seq = 1").fetchone()[0]
        database.execute("UPDATE events SET body = ? WHERE seq = 1", (body.replace(b"first", b"worst"),))
    done = talked.cli("threads", "verify")
    assert done.returncode == 1
    assert "event 1: its text, time or hash was changed" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(" in 12 events.")
    report = json.loads(talked.cli("threads", "verify", "--json").stdout)["verify"]
    assert report["found"] >= 1
    assert report["problems"][0]["n"] == 1


def test_a_file_that_is_no_record_is_an_error_in_words(talked: RunningDaemon) -> None:
    (talked.home / "rappd.db").write_bytes(b"nothing of the kind" * 500)
    for verb in ("list", "verify"):
        done = talked.cli("threads", verb)
        assert done.returncode == 1
        assert "rappd.db is damaged" in done.stderr or "rappd.db cannot be opened" in done.stdout


def test_long_checks_show_where_they_are_on_a_terminal_only(talked: RunningDaemon, tmp_path: Path) -> None:
    # Small portions stand for a big store: one line is written per portion, half a second after the start.
    starter = tmp_path / "site"
    starter.mkdir()
    slow = f"import time\nimport {verifying.__name__} as v\nv.CHUNK = 2\nlink = v.link\n"
    slow += "def slowly(*given):\n    time.sleep(0.2)\n    return link(*given)\nv.link = slowly\n"
    (starter / "sitecustomize.py").write_text(slow)
    talked.environment["PYTHONPATH"] = str(starter)
    seen = on_terminal(talked, "threads", "verify")
    assert "of 12 events…" in seen.raw
    said = " ".join(line.strip() for line in seen.lines)
    assert said.startswith("✓ 12 events in 2 threads, none changed; anchored up to event "), (
        "and it is gone in the end"
    )
    piped = talked.cli("threads", "verify")
    assert piped.stderr == ""
