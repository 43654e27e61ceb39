"""``rappd twins checkpoint|checkpoints|rollback``: with the daemon up and down, on the screen and as objects."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import Terminal, on_terminal

from rappd.cli.tables import cells
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout

UP_OR_DOWN = pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("desk") / "home", RAPPD_NAME="desk").start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def down(tmp_path_factory: pytest.TempPathFactory) -> RunningDaemon:
    return RunningDaemon(tmp_path_factory.mktemp("down") / "home", RAPPD_NAME="desk")


@pytest.fixture
def home(request: pytest.FixtureRequest, up: bool) -> RunningDaemon:
    found: RunningDaemon = request.getfixturevalue("desk" if up else "down")
    return found


def twin(daemon: RunningDaemon, name: str) -> Path:
    """A new twin's folder."""
    return mint(TwinLayout(daemon.home), name, owner="desk").workspace.root


def run(daemon: RunningDaemon, *arguments: str, exits: int = 0) -> subprocess.CompletedProcess[str]:
    done = daemon.cli("twins", *arguments)
    assert done.returncode == exits, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def told(daemon: RunningDaemon, noun: str, *arguments: str, exits: int = 0) -> Any:
    return json.loads(run(daemon, *arguments, "--json", exits=exits).stdout)[noun]


@UP_OR_DOWN
def test_a_twin_is_kept_changed_brought_back_and_undone(home: RunningDaemon, up: bool) -> None:
    root = twin(home, "rose")
    said = run(home, "checkpoint", "rose", "--note", "in bloom").stdout
    assert re.match(r"✓ Checkpoint of rose saved: 3 files, 0 records, \S+ (kB|bytes)\n", said)
    assert said.endswith("rappd twins rollback rose\n")
    soul = (root / "soul.md").read_text()
    (root / "soul.md").write_text("Withered.\n")
    (root / "agents" / "moth_agent.py").write_text("MOTH = 1\n")

    done = run(home, "rollback", "rose", "--yes").stdout
    assert re.search(r"✓ rose is as it was on \d+ \w+ \d{4} \d\d:\d\d: 1 file restored, 1 removed\n", done)
    assert (root / "soul.md").read_text() == soul
    assert not (root / "agents" / "moth_agent.py").exists()
    undo = re.search(r"to undo it: \S*rappd twins (rollback rose \S+)", done)
    assert undo

    run(home, *undo[1].split(), "--yes")
    assert (root / "soul.md").read_text() == "Withered.\n"
    rows = told(home, "checkpoints", "checkpoints", "rose")
    assert [row["note"].partition(" going")[0] for row in rows] == ["in bloom", "before", "before"]
    assert rows[1]["before"] == rows[0]["id"]
    table = run(home, "checkpoints", "rose").stdout
    assert rows[0]["id"] in table
    assert "in bloom" in table


@UP_OR_DOWN
def test_nothing_is_touched_without_a_yes(home: RunningDaemon, up: bool) -> None:
    root = twin(home, "lily")
    run(home, "checkpoint", "lily")
    (root / "soul.md").write_text("Withered.\n")
    refused = run(home, "rollback", "lily", exits=6)
    assert "  restore     1  soul.md\n  remove      0" in refused.stdout
    assert "nothing was touched" in refused.stderr
    assert "--yes" in refused.stderr
    meant = told(home, "rollback", "rollback", "lily", exits=6)
    assert (meant["mode"], meant["restored"], meant["before"]) == ("dry-run", ["soul.md"], None)
    assert (root / "soul.md").read_text() == "Withered.\n"
    assert len(told(home, "checkpoints", "checkpoints", "lily")) == 1
    done = told(home, "rollback", "rollback", "lily", "--yes")
    assert (done["mode"], done["restored"], done["removed"]) == ("execute", ["soul.md"], [])


@UP_OR_DOWN
def test_where_there_is_nothing_to_do_it_says_so(home: RunningDaemon, up: bool) -> None:
    root = twin(home, "iris")
    empty = run(home, "checkpoints", "iris").stdout
    assert re.fullmatch(r"iris has no checkpoint yet\.\n  → \S*rappd twins checkpoint iris\n", empty)
    assert told(home, "checkpoints", "checkpoints", "iris") == []
    missing = run(home, "rollback", "iris", "--yes", exits=4).stderr
    assert missing.startswith("✗ iris has no checkpoint\n")
    made = told(home, "checkpoint", "checkpoint", "iris", "--note", "n")
    assert made["path"].endswith(f"{made['id']}.egg")
    assert run(home, "rollback", "iris").stdout == "✓ iris is as it was then already; nothing was touched.\n"
    error = json.loads(run(home, "rollback", "iris", "1999", "--yes", "--json", exits=4).stderr)
    assert (error["error"], error["code"]) == ('iris has no checkpoint "1999".', "no_such_checkpoint")
    assert error["do"].endswith(f"rappd twins checkpoints {root.name[:12]}")


@pytest.mark.parametrize("answer", ["y", "n"])
def test_somebody_at_a_terminal_is_asked(down: RunningDaemon, answer: str) -> None:
    root = twin(down, f"fern {answer}")
    run(down, "checkpoint", f"fern {answer}")
    (root / "soul.md").write_text("Withered.\n")
    terminal = Terminal(down, "twins", "rollback", root.name[:12])
    terminal.read_until(lambda seen: "What it is now is kept as a checkpoint." in seen.words)
    terminal.type(f"{answer}\n")
    assert terminal.to_end().code == (0 if answer == "y" else 6)
    assert ((root / "soul.md").read_text() == "Withered.\n") is (answer == "n")


def test_a_narrow_screen_shows_names_whole(down: RunningDaemon) -> None:
    twin(down, "aster")
    made = told(down, "checkpoint", "checkpoint", "aster", "--note", "a note that is much too long " * 5)
    for columns in (40, 80):
        seen = on_terminal(down, "twins", "checkpoints", "aster", columns=columns)
        assert max(map(cells, seen.lines)) <= columns
        assert made["id"] in seen.text
