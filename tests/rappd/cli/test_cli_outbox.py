"""``rappd outbox``: what waits for a machine that is away, from being queued to being done, once."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import agent_source
from fixtures.terminal import on_terminal

from rappd.cli.tables import cells

Both = tuple[Machine, Machine]

NOTE = 'with open(kwargs["file"], "a") as file: file.write("x")\n        return "noted"'


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    """desk, and shed, which it trusts and which is away."""
    desk, shed = (
        Machine(tmp_path / "desk", "desk", LLM_FAKE="1"),
        Machine(tmp_path / "shed", "shed", LLM_FAKE="1"),
    )
    shed.drop("gauge_agent.py", agent_source("Gauge", NOTE))
    desk.start()
    shed.start()
    acquaint(desk, shed)
    shed.stop()
    yield desk, shed
    desk.stop()
    shed.stop()


def rows(daemon: Machine) -> list[dict[str, Any]]:
    done = daemon.cli("outbox", "list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["outbox"]
    return found


def test_a_call_to_a_machine_that_is_away_waits_and_is_done_once(both: Both, tmp_path: Path) -> None:
    desk, shed = both
    file = shed.data / "noted"
    queued = on_terminal(desk, "call", "shed:Gauge", "--args", json.dumps({"file": str(file)}))
    assert queued.code == 8
    found = re.fullmatch(
        r"! Queued: shed is away\. Goes by itself\. → rappd threads show ([0-9a-f]+)", queued.text
    )
    assert found, queued.text
    assert desk.cli("threads", "show", found[1]).returncode == 0
    narrow = on_terminal(desk, "call", "shed", "read the rain gauge", columns=40)
    assert narrow.lines[0] == "! Queued: shed is away. Goes by itself."
    assert re.fullmatch(r"  → rappd threads show [0-9a-f]+", narrow.lines[1])
    assert [row["state"] for row in rows(desk)] == ["queued", "queued"]
    assert all(set(row) >= {"id", "to", "what", "tries", "next", "expires"} for row in rows(desk))
    assert not file.exists()
    shed.start()
    desk.wait_for(lambda: {row["state"] for row in rows(desk)} == {"done"}, what="both to be done")
    assert file.read_text() == "x"
    assert "noted" in desk.cli("threads", "show", found[1]).stdout
    listed = on_terminal(desk, "outbox", "list").lines
    assert re.fullmatch(r'[0-9a-f]{4}  shed  "read the rain gauge"  done +\d+', listed[2]), listed


def test_the_list_has_the_columns_of_the_design_at_any_width(both: Both) -> None:
    desk = both[0]
    assert desk.cli("outbox", "list").stdout == "Nothing waits for another machine.\n"
    for text in ("read the rain gauge", "tell me all about the weather of the last hundred years, please"):
        assert desk.cli("call", "shed", text, "--wait", "1").returncode == 8
    desk.wait_for(
        lambda: json.loads(desk.cli("peers", "list", "--json").stdout)["peers"][0]["presence"] == "away",
        what="shed to be away",
    )
    header, row, other = on_terminal(desk, "outbox", "list").lines
    assert header.split() == ["ID", "TO", "WHAT", "STATE", "TRIES", "NEXT", "EXPIRES"]
    assert re.fullmatch(r'[0-9a-f]{4}  shed  "read the rain gauge" +queued  \d+ +when back  in 23 h', row), (
        row
    )
    assert "…" in other
    for columns in (60, 40, 20):
        lines = on_terminal(desk, "outbox", "list", columns=columns).lines
        assert len(lines) == 3
        assert all(cells(line) <= columns for line in lines), lines
    waiting = on_terminal(desk, "peers", "list").lines[1]
    assert re.fullmatch(r"shed  last seen \d+ s ago  last address  \d+ +2", waiting), waiting
    desk.stop()
    down = on_terminal(desk, "outbox", "list").lines
    assert down[0] == header
    assert down[-2:] == ["! Nothing goes out: rappd isn't running", "  → rappd start"]
    assert [one["what"] for one in rows(desk)] == [
        "read the rain gauge", "tell me all about the weather of the last hundred years, please",
    ]  # fmt: skip


def test_changed_time_to_wait_counts_from_the_next_call_on(both: Both) -> None:
    desk = both[0]
    for hours in (24, 2):
        assert desk.cli("config", "set", "peers.keep_hours", str(hours)).returncode == 0
        assert desk.cli("call", "shed", f"wait {hours} hours", "--wait", "1").returncode == 8
        assert [
            row["expires"] - row["created"] for row in rows(desk) if row["what"] == f"wait {hours} hours"
        ] == [hours * 3600.0]


def test_row_is_retried_or_dropped_by_id_prefix(both: Both) -> None:
    desk = both[0]
    assert desk.cli("call", "shed", "read the rain gauge", "--wait", "1").returncode == 8
    [row] = rows(desk)
    retried = desk.cli("outbox", "retry", row["id"][:4])
    assert retried.returncode == 0
    assert retried.stdout.startswith('✓ Tried now: "read the rain gauge" to shed.\n')
    assert json.loads(desk.cli("outbox", "retry", row["id"], "--json").stdout)["retried"]["id"] == row["id"]
    dropped = desk.cli("outbox", "drop", row["id"][:6])
    assert dropped.stdout == '✓ Dropped: "read the rain gauge" to shed.\n'
    assert [one["state"] for one in rows(desk)] == ["dropped"]
    shown = desk.cli("threads", "show", row["thread"]).stdout
    assert "Not wanted any more." in shown
    assert "Nobody answered" not in shown
    for verb in ("retry", "drop"):
        over = desk.cli("outbox", verb, row["id"], "--json")
        assert over.returncode == 9, over.stderr
        unknown = desk.cli("outbox", verb, "ffffffff", "--json")
        assert (unknown.returncode, json.loads(unknown.stderr)["code"]) == (4, "not_in_outbox")


def test_what_nobody_waits_for_any_more_can_still_be_seen(both: Both) -> None:
    desk = both[0]
    for number in range(12):
        body = {"peer": "shed", "text": f"question {number}", "wait": 0.2}
        assert desk.post("/call", body, control=True).json()["call"]["state"] == "queued"
    for row in rows(desk):
        assert desk.request("DELETE", f"/outbox/{row['id']}", control=True).status == 200
    lines = on_terminal(desk, "outbox", "list").lines
    assert len(lines) == 1 + 10 + 1
    assert lines[-1] == "2 older ones: rappd outbox list --all"
    assert len(on_terminal(desk, "outbox", "list", "--all").lines) == 1 + 12


def test_call_follows_its_machine_when_that_was_set_up_anew(both: Both) -> None:
    desk, shed = both
    args = json.dumps({"file": str(shed.data / "noted")})
    assert desk.cli("call", "shed:Gauge", "--args", args).returncode == 8
    [row] = rows(desk)
    refused = desk.cli("outbox", "redirect", row["id"], "shed")
    assert (refused.returncode, "which is paired" in refused.stderr) == (9, True), refused.stderr
    shutil.rmtree(shed.home)
    shed.drop("gauge_agent.py", agent_source("Gauge", 'return "it rains"'))
    shed.start()
    assert desk.cli("peers", "revoke", "shed", "--yes").returncode == 0
    acquaint(desk, shed)
    assert rows(desk)[0]["state"] == "queued", "nothing goes to another key by itself"
    assert desk.cli("outbox", "redirect", row["id"][:6], "nobody").returncode == 4
    told = desk.cli("outbox", "redirect", row["id"][:6], "shed")
    assert told.stdout.startswith('✓ It goes to shed now: "'), told
    desk.wait_for(lambda: "it rains" in desk.cli("threads", "show", row["thread"]).stdout, what="the answer")
    assert "Not wanted" not in desk.cli("threads", "show", row["thread"]).stdout
    assert sorted(one["state"] for one in rows(desk)) == ["done", "dropped"]
