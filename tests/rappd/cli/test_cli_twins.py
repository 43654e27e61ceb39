"""``rappd twins``: every verb with the daemon up and down, what it prints, and what it ends with."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import Terminal, on_terminal

from tests.rappd.cli.twins_verbs import error, run, told

UP_OR_DOWN = pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])


@pytest.fixture(scope="module")
def down(tmp_path_factory: pytest.TempPathFactory) -> RunningDaemon:
    """A home whose daemon never runs."""
    return RunningDaemon(tmp_path_factory.mktemp("down") / "home", RAPPD_NAME="desk")


@pytest.fixture
def home(request: pytest.FixtureRequest, up: bool) -> RunningDaemon:
    """A twin of the two."""
    found: RunningDaemon = request.getfixturevalue("desk" if up else "down")
    return found


# From birth to end.


@UP_OR_DOWN
def test_a_life_from_birth_to_tombstone(home: RunningDaemon) -> None:
    born = told(home, "twin", "new", "Life", "--kind", "place", "--soul", "-", stdin="You are a place.\n")
    key = born["key"]
    assert born["rappid"] == f"rappid:@desk/life:{key}"
    assert run(home, "soul", "Life") == "You are a place.\n"
    [row] = [row for row in told(home, "twins", "list") if row["key"] == key]
    assert row | {"born_at": "", "activity": ""} == {
        "key": key, "rappid": born["rappid"], "name": "Life", "kind": "place", "state": "asleep", "port": None,
        "memories": 0, "last_talk": None, "born_at": "", "parent_rappid": "", "answering": False, "activity": "",
    }  # fmt: skip
    shown = told(home, "twin", "show", key[:6])
    assert (shown["name"], shown["path"]) == ("Life", str(home.home / "twins" / key))
    assert run(home, "rename", "life", "Afterlife") == "✓ It is Afterlife now.\n"
    assert told(home, "twin", "show", "Afterlife")["key"] == key
    assert told(home, "archive", "archive", "Afterlife", "--reason", "winter")["mode"] == "execute"
    [archived] = [row for row in told(home, "archived", "list", "--archived") if row["hash"] == key]
    assert (archived["name"], archived["archived_reason"]) == ("Afterlife", "winter")
    assert error(home, "rename", "Afterlife", "x", exits=9) == {
        "error": "Afterlife is archived.", "do": f"rappd twins unarchive {key[:12]}", "code": "twin_conflict",
    }  # fmt: skip
    assert told(home, "twin", "show", "Afterlife")["state"] == "archived"
    assert run(home, "unarchive", "Afterlife").startswith("✓ Afterlife is back, stopped.\n")
    run(home, "archive", "Afterlife")
    assert (
        run(home, "purge", "Afterlife", "--yes", "--reason", "done")
        == "✓ Afterlife is purged; a tombstone stays.\n"
    )
    [purged] = [row for row in told(home, "purged", "list", "--purged") if row["hash"] == key]
    assert (purged["name"], purged["purged_reason"]) == ("Afterlife", "done")
    assert error(home, "show", "Afterlife", exits=9)["error"] == "Afterlife is purged."
    assert key not in {row["key"] for row in told(home, "twins", "list")}


def test_archiving_all_that_fit_works_without_a_daemon(down: RunningDaemon) -> None:
    for name in ("Bulk one", "Bulk two"):
        run(down, "new", name, "--kind", "bulk")
    assert len(told(down, "archive", "archive", "--filter", "kind=bulk", exits=6)["would_archive"]) == 2
    assert run(down, "archive", "--filter", "kind=bulk", "--yes").startswith(
        "✓ 2 twins are archived, whole.\n"
    )
    assert {row["name"] for row in told(down, "archived", "list", "--archived")} >= {"Bulk one", "Bulk two"}


def test_nobody_lives_here_at_first_and_the_list_says_what_to_do(idle: RunningDaemon) -> None:
    assert re.fullmatch(r"No twin lives here yet\.\n  → \S*rappd twins new NAME\n", run(idle, "list"))
    assert run(idle, "list", "--archived") == "No twin is archived.\n"
    assert run(idle, "list", "--purged") == "No twin was purged.\n"
    assert run(idle, "lineage") == "No twin lives here yet.\n"
    assert json.loads(run(idle, "list", "--json")) == {"twins": [], "unreadable": []}


MISTAKES = [
    (("show", "nobody"), 4, "no_such_twin", 'No twin "nobody"'),
    (("fork", "nobody"), 4, "no_such_twin", 'No twin "nobody"'),
    (("purge", "nobody", "--yes"), 4, "no_such_twin", 'No twin "nobody"'),
    (("lineage", "nobody"), 4, "no_such_twin", 'No twin "nobody"'),
    (("new", "two\x1blines"), 2, "bad_name", "A name is one line"),
    (("new", "x", "--kind", "Not A Kind"), 2, "bad_name", "'Not A Kind' cannot be a kind"),
    (("new", "x", "--soul", "/no/such.md"), 4, "not_found", 'No file "/no/such.md"'),
    (("new", "x", "--soul", "/dev/null"), 5, "bad_file", "A soul cannot be empty"),
    (("archive",), 2, "mistyped", "Say one NAME, or --filter"),
    (("archive", "x", "--filter", "kind=place"), 2, "mistyped", "Say one NAME, or --filter"),
    (("archive", "--filter", "colour=red"), 2, "bad_filter", 'The filter has no clause "colour"'),
    (("archive", "--filter", "name_regex=("), 2, "bad_filter", "name_regex is not a regular expression"),
    (("soul", "x", "--history", "--restore", "1"), 2, "mistyped", "Only one of --edit"),
    (("nwe", "x"), 2, "mistyped", 'No such command "nwe"'),
]


@pytest.mark.parametrize(
    ("arguments", "exits", "code", "sentence"),
    MISTAKES,
    ids=lambda it: " ".join(it)[:40] if isinstance(it, tuple) else None,
)
def test_mistakes_change_nothing_and_say_what_to_do(
    desk: RunningDaemon, arguments: tuple[str, ...], exits: int, code: str, sentence: str
) -> None:
    before = _tree(desk)
    found = error(desk, *arguments, exits=exits)
    assert found["code"] == code
    assert found["error"].startswith(sentence)
    assert found["do"]
    assert _tree(desk) == before


@pytest.mark.parametrize(
    ("arguments", "exits", "code", "sentence"),
    MISTAKES[::4],
    ids=lambda it: " ".join(it)[:40] if isinstance(it, tuple) else None,
)
def test_mistakes_are_the_same_without_a_daemon(
    down: RunningDaemon, arguments: tuple[str, ...], exits: int, code: str, sentence: str
) -> None:
    before = _tree(down)
    what, do = run(down, *arguments, exits=exits).splitlines()
    assert what.startswith(f"✗ {sentence}")
    assert do.startswith("  → ")
    assert _tree(down) == before


@pytest.mark.parametrize("verb", ["boot", "chat"])
def test_what_needs_a_daemon_says_so(down: RunningDaemon, verb: str) -> None:
    more = ("hello",) if verb == "chat" else ()
    found = error(down, verb, "anybody", *more, exits=3)
    assert found == {"error": "rappd isn't running here.", "do": "rappd start", "code": "not_running"}


@pytest.mark.parametrize("name", ["a/b", "..", "lineage", "-Zoë%2F?x#日本"])
def test_any_name_can_be_spoken_of(desk: RunningDaemon, name: str) -> None:
    key = told(desk, "twin", "new", "--", name)["key"]
    assert told(desk, "twin", "show", "--", name)["key"] == key
    assert told(desk, "twin", "soul", "--edit", "-", "--", name, stdin="New.")["key"] == key
    assert run(desk, "rename", "--", name, f"{name} two") == f"✓ It is {name} two now.\n"


def test_a_name_that_is_no_text_is_nobodys(desk: RunningDaemon, down: RunningDaemon) -> None:
    for home in (desk, down):
        assert "is not UTF-8 text" in run(home, "show", "\udc80", exits=2)
    assert run(desk, "new", "\udc80", exits=2)


# Talking.


def test_one_sentence_to_a_twin_is_answered_by_the_twin(desk: RunningDaemon) -> None:
    key = told(desk, "twin", "new", "cook")["key"]
    kettle = agent_source("Kettle", 'return "The kettle **boils**."', description="Boils water.")
    (desk.home / "twins" / key / "agents" / "kettle_agent.py").write_text(kettle)
    done = desk.cli("twins", "chat", "cook", "kettle", "please")
    assert (done.returncode, done.stdout) == (0, "(no model) The kettle **boils**.\n")
    assert re.fullmatch(r"Kettle +\S+ m?s\n\S+ m?s\n", done.stderr)
    assert run(desk, "chat", "cook", stdin="kettle please\n") == done.stdout
    answer = told(desk, "chat", "chat", "cook", "kettle please", "--session", "abc")
    assert (answer["session_id"], answer["agent_logs"]) == ("abc", "[Kettle] The kettle **boils**.")
    assert "boils" not in desk.cli("chat", "kettle please").stdout, "the brainstem has no kettle"
    missing = error(desk, "chat", "cook", exits=2)
    assert missing["error"] == "TEXT is missing."
    assert missing["do"] == 'rappd twins chat cook "what can you do?"'
    run(desk, "archive", "cook")
    assert error(desk, "chat", "cook", "hello", exits=9)["error"] == "cook is archived."


def test_a_conversation_with_a_twin(desk: RunningDaemon) -> None:
    key = told(desk, "twin", "new", "host of the inn")["key"]
    kettle = agent_source("Kettle", 'return "The kettle boils."', description="Boils water.")
    (desk.home / "twins" / key / "agents" / "kettle_agent.py").write_text(kettle)
    talk = Terminal(desk, "twins", "chat", "host of the inn")
    talk.read_until(lambda seen: seen.lines[-1].startswith("you"))
    first = talk.seen.lines[0]
    assert re.match(r"host of the inn, no model, \d+ agents +/help  /exit$", first)
    talk.type("kettle please\n")
    talk.read_until(lambda seen: "The kettle boils." in seen.words and seen.lines[-1].strip() == "you")
    assert re.search(r"^host o…e inn  \(no model\) The kettle boils\.$", talk.seen.text, re.MULTILINE)
    talk.type("/agents\n")
    talk.read_until(lambda seen: "  Kettle" in seen.lines)
    talk.type("/exit\n")
    assert talk.to_end().code == 0


# The soul.


def test_a_soul_is_printed_edited_and_taken_back(desk: RunningDaemon, tmp_path: Path) -> None:
    texts = ["# Eins\n\nGrüße, “calm” … and brief", "# Two\r\n\n", "\ufeffThree\n"]
    run(desk, "new", "Souls", "--soul", "-", stdin=texts[0])
    file = tmp_path / "soul.md"
    for number, text in enumerate(texts[1:], 1):
        file.write_bytes(text.encode())
        out = run(desk, "soul", "Souls", "--edit", str(file), "--reason", f"reason {number}")
        assert out == f"✓ Souls has a new soul; the one before is number {number}.\n"
        done = subprocess.run(
            [sys.executable, "-m", "rappd", "twins", "soul", "Souls"],
            env={**desk.environment, "LANG": "C"}, capture_output=True, check=True,
        )  # fmt: skip
        read = text.removeprefix("\ufeff").replace("\r\n", "\n")  # as the model gets it
        assert done.stdout == read.encode(), "whatever the locale is"
    again = told(desk, "twin", "soul", "Souls", "--edit", str(file))
    assert (again["kept_as"], again["message"]) == (0, "Souls has this soul.")
    found = told(desk, "twin", "soul", "Souls")
    assert sorted(kept["reason"] for kept in found["history"]) == ["reason-1", "reason-2"]
    history = run(desk, "soul", "Souls", "--history").splitlines()
    assert history[0].split() == ["SOUL", "REPLACED", "REASON"]
    assert len(history) == 3
    assert run(desk, "soul", "Souls", "--restore", "1") == "✓ Souls has soul 1 again.\n"
    assert told(desk, "twin", "soul", "Souls")["soul"] in texts[:2]
    assert error(desk, "soul", "Souls", "--restore", "99", exits=4)["code"] == "no_such_file"
    before = told(desk, "twin", "soul", "Souls")
    for content in (b"\xff\xfe", b"x" * 300_000):
        file.write_bytes(content)
        assert error(desk, "soul", "Souls", "--edit", str(file), exits=5)["code"] == "bad_file"
    assert told(desk, "twin", "soul", "Souls") == before


def test_a_soul_cannot_steer_the_terminal(desk: RunningDaemon) -> None:
    run(desk, "new", "Steer", "--soul", "-", stdin="Calm.\x1b]0;owned\x07\x1b[2Jx\n")
    assert run(desk, "soul", "Steer") == "Calm.\x1b]0;owned\x07\x1b[2Jx\n", "to a file as it is"
    seen = on_terminal(desk, "twins", "soul", "Steer")
    assert "\x1b[2J" not in seen.raw
    assert "\x07" not in seen.raw
    assert seen.text.startswith("Calm.")


# Set aside, many at once; ended for good.


def test_archiving_all_that_fit_asks_first(desk: RunningDaemon) -> None:
    names = ["Bulk one", "Bulk two", "Bulk three"]
    for name in names:
        run(desk, "new", name, "--kind", "bulk")
    which = ("archive", "--filter", "kind=bulk", "--filter", "name_prefix=Bulk t")
    done = desk.cli("twins", *which)
    assert done.returncode == 6
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == ["TWIN", "Bulk three", "Bulk two"]
    assert done.stderr == "✗ 2 twins would be archived; nothing was done\n  → Add --yes\n"
    machine = desk.cli("twins", *which, "--json")
    assert machine.returncode == 6
    assert [one["name"] for one in json.loads(machine.stdout)["archive"]["would_archive"]] == [
        "Bulk three",
        "Bulk two",
    ]
    assert json.loads(machine.stderr)["code"] == "needs_yes"
    asked = Terminal(desk, "twins", *which)
    asked.read_until(lambda seen: "[y/N]" in seen.text)
    asked.type("n\n")
    refused = asked.to_end()
    assert refused.code == 6
    assert refused.lines[-1] == "Nothing was done."
    assert {"Bulk two", "Bulk three"} <= {row["name"] for row in told(desk, "twins", "list")}
    asked = Terminal(desk, "twins", *which)
    asked.read_until(lambda seen: "Archive 2 twins? [y/N]" in seen.words)
    asked.type("y\n")
    assert asked.to_end().code == 0
    active = {row["name"] for row in told(desk, "twins", "list")}
    assert "Bulk one" in active
    assert not active & {"Bulk two", "Bulk three"}
    last = told(desk, "archive", "archive", "--filter", "kind=bulk", "--reason", "all", "--yes")
    assert [one["name"] for one in last["archived"]] == ["Bulk one"]
    assert run(desk, "archive", "--filter", "kind=bulk") == "No twin fits; nothing was archived.\n"
    assert told(desk, "archive", "archive", "--filter", "kind=bulk")["would_archive"] == []


def test_one_that_cannot_be_archived_stops_no_other_and_is_told(desk: RunningDaemon) -> None:
    keys = {name: told(desk, "twin", "new", name, "--kind", "stuck")["key"] for name in ("free", "stuck")}
    place = desk.home / "twins" / ".archive" / keys["stuck"]
    place.mkdir(parents=True)
    done = desk.cli("twins", "archive", "--filter", "kind=stuck", "--yes")
    assert done.returncode == 7
    assert done.stdout.startswith("✓ free is archived, whole.\n")
    assert done.stderr.startswith("✗ stuck: Another stuck is archived already; this one stays where it is\n")
    assert desk.cli("twins", "archive", "--filter", "kind=stuck", "--yes").returncode == 1
    assert told(desk, "twin", "show", keys["stuck"])["state"] == "asleep"


def test_purging_asks_and_only_takes_what_is_archived(down: RunningDaemon) -> None:
    key = told(down, "twin", "new", "Ended", "--kind", "ended")["key"]
    assert error(down, "purge", "Ended", "--yes", exits=9)["error"] == "Ended is active; archive first."
    run(down, "archive", "Ended")
    place = down.home / "twins" / ".archive" / key
    silent = down.cli("twins", "purge", "Ended")
    assert silent.returncode == 6
    assert silent.stderr.startswith("✗ Ended would be purged; nothing was done\n")
    asked = Terminal(down, "twins", "purge", "Ended")
    asked.read_until(lambda seen: "[y/N]" in seen.text)
    assert "hatches in another home" in " ".join(asked.seen.text.split())
    asked.type("\n")
    assert asked.to_end().code == 6
    assert place.is_dir()
    asked = Terminal(down, "twins", "purge", "Ended")
    asked.read_until(lambda seen: "[y/N]" in seen.text)
    asked.type("y\n")
    assert asked.to_end().code == 0
    assert not place.exists()
    assert re.search(r"^Ended +ended +\d+ s ago", run(down, "list", "--purged"), re.MULTILINE)


# With the daemon coming and going.


def test_offline_stop_and_fork_count_at_next_start(idle: RunningDaemon) -> None:
    idle.start()
    for name in ("kept", "stopped", "forked"):
        run(idle, "new", name)
        run(idle, "boot", name)
    idle.stop()
    assert {row["state"] for row in told(idle, "twins", "list")} == {"asleep"}
    assert run(idle, "stop", "stopped") == "✓ stopped is stopped.\n"
    run(idle, "fork", "forked")
    run(idle, "archive", "kept")
    run(idle, "unarchive", "kept")
    idle.start()
    idle.wait_for(lambda: any(row["state"] == "awake" for row in told(idle, "twins", "list")))
    states = {row["name"]: row["state"] for row in told(idle, "twins", "list")}
    assert states == {"kept": "asleep", "stopped": "asleep", "forked": "awake", "forked (fork)": "asleep"}


def test_query_commands_import_no_event_loop(desk: RunningDaemon) -> None:
    program = (
        "import sys\nfrom rappd.cli.app import run\n"
        "code = run(['twins', 'list', '--json'])\nprint('imported', *sys.modules, file=sys.stderr)\nsys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=desk.environment, capture_output=True, text=True, check=True
    )
    found = {name.split(".")[0] for name in done.stderr.partition("imported ")[2].split()}
    assert "click" in found
    assert not found & {"aiohttp", "asyncio", "rich", "msgspec", "sqlite3"}


def _tree(daemon: RunningDaemon) -> set[str]:
    twins = daemon.home / "twins"
    return {path.name for path in twins.glob("[!.]*")}


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_what_older_tools_put_aside_is_seen_in_the_archive(
    make_daemon: Callable[..., RunningDaemon], up: bool
) -> None:
    home = make_daemon(LLM_FAKE="1")
    trash = home.home / "twins" / ".trash"
    keys = {name: told(home, "twin", "new", name)["key"] for name in ("Old rose", "Old iris")}
    trash.mkdir()
    for key, suffix in ((keys["Old rose"], "-20260601-101500"), (keys["Old iris"], "")):
        (home.home / "twins" / key).rename(trash / f"{key}{suffix}")
    (trash / "notes").mkdir()
    if up:
        home.start()
        stays = f"{trash}/notes stays: notes is no twin: it holds no rappid.json."
        for line in ("Old rose lay in .trash and is archived now.", stays):
            home.wait_for_log(line)
    else:  # the next command that works on the home does it
        assert home.cli("twins", "new", "Poppy").returncode == 0
        home.wait_for_log("Old iris lay in .trash and is archived now.")
    rows = told(home, "archived", "list", "--archived")
    assert {row["name"]: row["archived_by"] for row in rows} == {
        "Old rose": "migration",
        "Old iris": "migration",
    }
    run(home, "unarchive", "Old rose")
    assert "Old rose" in run(home, "list")
    assert (trash / "notes").is_dir(), "what is no twin stays where it was"
