"""``rappd twins``: every verb with the daemon up and down, what it prints, and what it ends with."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from daemon_under_test import RunningDaemon, agent_source
from terminal_under_test import Terminal, on_terminal

from agents.worker.ancestry import descendants
from rappd.cli.tables import cells
from twins.identity_file import Identity
from twins.rappid import Rappid

UP_OR_DOWN = pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
BORN = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A running daemon without a model. Tests of a module share it; each speaks of twins of its own."""
    daemon = RunningDaemon(tmp_path_factory.mktemp("desk") / "home", RAPPD_NAME="desk").start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def down(tmp_path_factory: pytest.TempPathFactory) -> RunningDaemon:
    """A home whose daemon never runs."""
    return RunningDaemon(tmp_path_factory.mktemp("down") / "home", RAPPD_NAME="desk")


@pytest.fixture
def home(request: pytest.FixtureRequest, up: bool) -> RunningDaemon:
    """One of the two."""
    found: RunningDaemon = request.getfixturevalue("desk" if up else "down")
    return found


def run(daemon: RunningDaemon, *arguments: str, exits: int = 0, **more: Any) -> str:
    """``rappd twins …``; returns stdout of one that ended as it should, stderr of one that did not."""
    done = daemon.cli("twins", *arguments, **more)
    assert done.returncode == exits, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if exits else done.stdout


def told(daemon: RunningDaemon, noun: str, *arguments: str, exits: int = 0, **more: Any) -> Any:
    """What is under ``noun`` of a verb's one object."""
    done = daemon.cli("twins", arguments[0], "--json", *arguments[1:], **more)
    assert done.returncode == exits, done.stdout + done.stderr
    return json.loads(done.stdout)[noun]


def error(daemon: RunningDaemon, *arguments: str, exits: int, **more: Any) -> dict[str, str]:
    """The error of a verb that was refused."""
    done = daemon.cli("twins", arguments[0], "--json", *arguments[1:], **more)
    assert done.returncode == exits, done.stderr
    [line] = done.stderr.splitlines()
    found: dict[str, str] = json.loads(line)
    assert found.keys() == {"error", "do", "code"}
    return found


def lay(
    daemon: RunningDaemon, name: str, number: int, *, parent: Rappid | None = None, kind: str = "personal"
) -> Rappid:
    """A twin laid down by hand, without the cost of a birth; ``number`` makes its rappid."""
    rappid = Rappid.parse(f"rappid:@desk/{'x'}:{number:064x}")
    folder = daemon.home / "twins" / rappid.key
    folder.mkdir(parents=True)
    identity = Identity.new(rappid, name=name, kind=kind, born_at=BORN, parent=parent)
    (folder / "rappid.json").write_bytes(identity.encode())
    return rappid


# From birth to end.


@UP_OR_DOWN
def test_a_life_from_birth_to_tombstone(home: RunningDaemon) -> None:
    born = told(home, "twin", "new", "Life", "--kind", "place", "--soul", "-", stdin="You are a place.\n")
    key = born["key"]
    assert born["rappid"] == f"rappid:@desk/life:{key}"
    assert run(home, "soul", "Life") == "You are a place.\n"
    [row] = [row for row in told(home, "twins", "list") if row["key"] == key]
    assert row | {"born_at": ""} == {
        "key": key, "rappid": born["rappid"], "name": "Life", "kind": "place", "state": "asleep", "port": None,
        "memories": 0, "last_talk": None, "born_at": "", "parent_rappid": "",
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
    assert run(home, "unarchive", "Afterlife").startswith("✓ Afterlife is back, asleep.\n")
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
    (("nwe", "x"), 2, "mistyped", 'No verb "nwe"'),
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
        assert "No twin" in run(home, "show", "\udc80", exits=4)
    assert run(desk, "new", "\udc80", exits=2)


# The list.


def test_the_list_is_the_table_of_six_columns(desk: RunningDaemon) -> None:
    run(desk, "new", "gardener", "--kind", "twin")
    run(desk, "boot", "gardener")
    run(desk, "chat", "gardener", "remember that the tomatoes are dry")
    run(desk, "new", "herbalist", "--kind", "twin")
    seen = on_terminal(desk, "twins", "list")
    header, *rows = [line for line in seen.lines if re.match("TWIN|gardener|herbalist", line)]
    assert header.split() == ["TWIN", "KIND", "STATE", "PORT", "MEMORIES", "LAST", "TALK"]
    port = told(desk, "twin", "show", "gardener")["port"]
    assert re.fullmatch(rf"gardener +twin +awake +{port} +1 +\d+ s ago", rows[0])
    assert re.fullmatch(r"herbalist +twin +asleep +0 +never", rows[1])
    starts = [header.index(word) for word in ("TWIN", "KIND", "STATE", "PORT", "MEMORIES", "LAST")]
    assert [rows[0].index(word) for word in ("gardener", "twin", "awake", str(port))] == starts[:4]
    narrow = on_terminal(desk, "twins", "list", columns=40)
    assert max(map(cells, narrow.lines)) <= 40
    assert narrow.lines[0].split()[:3] == ["TWIN", "KIND", "STATE"]
    assert "LAST TALK" not in narrow.text, "the rightmost columns go"


@UP_OR_DOWN
def test_a_folder_that_cannot_be_read_is_told_and_hides_nobody(idle: RunningDaemon, up: bool) -> None:
    lay(idle, "sound", 1)
    for name, content in (("torn", b'{"rappid": '), ("empty", b"{}")):
        (idle.home / "twins" / name).mkdir()
        (idle.home / "twins" / name / "rappid.json").write_bytes(content)
    (idle.home / "twins" / "no-twin-at-all").mkdir()
    memory = idle.home / "twins" / f"{1:064x}" / ".brainstem_data" / "shared_memories"
    memory.mkdir(parents=True)
    (memory / "memory.json").write_text("[1, 2")
    if up:
        idle.start()
    out = run(idle, "list")
    assert re.search(r"^sound +personal +asleep +\? +never$", out, re.MULTILINE)
    assert len(re.findall(r"^✗ \S+/twins/(?:torn|empty) cannot be read: ", out, re.MULTILINE)) == 2
    assert "no-twin-at-all" not in out
    found = json.loads(run(idle, "list", "--json"))
    assert [row["name"] for row in found["twins"]] == ["sound"]
    assert found["twins"][0]["memories"] is None
    assert {Path(one["folder"]).name for one in found["unreadable"]} == {"torn", "empty"}
    assert all(one["problem"] for one in found["unreadable"])


def test_a_thousand_twins_are_a_list_and_nothing_else(idle: RunningDaemon) -> None:
    for number in range(1000):
        lay(idle, f"twin {number % 990:03}", 2**255 + number * 7919)
    asleep = json.loads(run(idle, "list", "--json"))
    assert len({row["key"] for row in asleep["twins"]}) == 1000
    idle.start()
    assert idle.process is not None
    before = set(descendants(idle.process.pid))
    lines = run(idle, "list").splitlines()
    assert len(lines) == 1001
    assert json.loads(run(idle, "list", "--json")) == asleep
    assert set(descendants(idle.process.pid)) <= before, "whatever the start still had to do may have ended"
    assert not list((idle.home / "twins").glob("*/soul.md")), "nobody was woken, nothing was written"
    assert [cell for cell in lines[1:] if "(" in cell] == [line for line in lines if "twin 00" in line], (
        "namesakes"
    )
    assert max(map(cells, lines)) <= 80
    assert told(idle, "twin", "show", "twin 500")["name"] == "twin 500"


def test_namesakes_are_told_apart_wherever_they_are_named(desk: RunningDaemon) -> None:
    first, second = (told(desk, "twin", "new", "Rose", "--kind", "namesake") for _ in range(2))
    assert (first["namesakes"], second["namesakes"]) == (0, 1)
    found = error(desk, "show", "rose", exits=9)
    assert found["code"] == "twin_conflict"
    for one in (first, second):
        assert one["key"][:12] in found["error"]
        [line] = [line for line in run(desk, "list").splitlines() if f"({one['key'][:4]}" in line]
        shown = re.search(r"Rose \((\w+)\)", line)
        assert shown
        assert told(desk, "twin", "show", shown[1])["key"] == one["key"]
    third = run(desk, "new", "rose", "--kind", "namesake").splitlines()[1]
    typed = third.split("chat ")[1]
    assert told(desk, "twin", "show", typed)["name"] == "rose"
    run(desk, "archive", "--filter", "kind=namesake", "--yes")


def test_one_twin_in_full(desk: RunningDaemon) -> None:
    key = told(desk, "twin", "new", "whole")["key"]
    (desk.home / "twins" / key / "agents" / "kettle_agent.py").write_text(agent_source("Kettle"))
    for path in ("services/pump_service.py", "organs/heart_organ.py", "senses/mood_sense.py"):
        file = desk.home / "twins" / key / path
        file.parent.mkdir(exist_ok=True)
        file.write_text('name = "x"\n')
    run(desk, "boot", "whole")
    out = run(desk, "show", "whole")
    port = told(desk, "twin", "show", "whole")["port"]
    assert out.splitlines()[0] == f"whole  personal, awake on port {port}"
    assert f"  Rappid    rappid:@desk/whole:{key}\n" in out, "never shortened"
    assert "  Agents    kettle_agent.py\n" in out
    assert "  Services  pump_service.py\n  Organs    heart_organ.py\n  Senses    mood_sense.py\n" in out
    assert told(desk, "twin", "show", "whole")["senses"] == ["mood_sense.py"]
    assert "  Talked    never\n" in out
    assert "Parent" not in out


# Talking.


def test_one_sentence_to_a_twin_is_answered_by_the_twin(desk: RunningDaemon) -> None:
    key = told(desk, "twin", "new", "cook")["key"]
    kettle = agent_source("Kettle", 'return "The kettle **boils**."', description="Boils water.")
    (desk.home / "twins" / key / "agents" / "kettle_agent.py").write_text(kettle)
    done = desk.cli("twins", "chat", "cook", "kettle", "please")
    assert (done.returncode, done.stdout) == (0, "(no model) The kettle **boils**.\n")
    assert re.fullmatch(r"Kettle +\S+ (ms|s)\n", done.stderr)
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
    assert re.match(r"host of the inn, offline brain, \d+ agents +/help  /exit$", first)
    talk.type("kettle please\n")
    talk.read_until(lambda seen: "The kettle boils." in seen.text and seen.lines[-1].strip() == "you")
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
        assert done.stdout == text.encode(), "whatever the locale is"
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


# Families.


def test_families_are_trees(idle: RunningDaemon) -> None:
    elder = lay(idle, "elder", 1)
    middle = lay(idle, "middle", 2, parent=elder, kind="place")
    lay(idle, "youngest", 3, parent=elder)
    lay(idle, "orphan", 11, parent=middle)
    lay(idle, "newborn", 10, parent=lay(idle, "sibling", 4, parent=elder))
    lay(idle, "stranger's child", 5, parent=Rappid.parse(f"rappid:@far/stranger:{9:064x}"))
    one, other = (Rappid.parse(f"rappid:@desk/x:{number:064x}") for number in (6, 7))
    lay(idle, "snake", 6, parent=other)
    lay(idle, "tail", 7, parent=one)
    run(idle, "archive", "sibling")
    run(idle, "archive", "middle")
    run(idle, "purge", "middle", "--yes")
    drawn = [
        "middle               place, purged",
        "└─ orphan            personal",
        "stranger             elsewhere",
        "└─ stranger's child  personal",
        "elder                personal",
        "├─ sibling           personal, archived",
        "│  └─ newborn        personal",
        "└─ youngest          personal",
        "tail                 personal, descends from itself",
        "└─ snake             personal",
    ]
    assert run(idle, "lineage").splitlines() == drawn
    assert [line.split()[-2:] for line in run(idle, "lineage", "youngest").splitlines()] == [
        line.split()[-2:] for line in drawn[4:8]
    ]
    idle.environment["LANG"] = "C"
    assert [re.sub(" {2,}(?=p)", "  ", line) for line in run(idle, "lineage", "sibling").splitlines()] == [
        "elder  personal", "|- sibling  personal, archived", "|  `- newborn  personal", "`- youngest  personal",
    ]  # fmt: skip
    assert [(row["name"], row["depth"], row["state"]) for row in told(idle, "lineage", "lineage", "elder")] == [
        ("elder", 0, "active"), ("sibling", 1, "archived"), ("newborn", 2, "active"), ("youngest", 1, "active"),
    ]  # fmt: skip


def test_a_long_line_of_descent_fits_a_narrow_screen(idle: RunningDaemon) -> None:
    parent = None
    for number in range(1, 60):
        parent = lay(idle, f"generation {number}", number, parent=parent)
    seen = on_terminal(idle, "twins", "lineage", columns=40)
    assert len(seen.lines) == 59
    assert max(map(cells, seen.lines)) <= 40
    for number, line in enumerate(seen.lines, 1):
        assert f"generation {number}" in line
    assert seen.lines[-1].startswith("… ")


def test_a_fork_says_what_it_left_behind(desk: RunningDaemon) -> None:
    key = told(desk, "twin", "new", "Origin")["key"]
    folder = desk.home / "twins" / key
    (folder / ".env").write_text("TOKEN=x\n")
    (folder / "agents" / "kettle_agent.py").write_text(agent_source("Kettle"))
    (folder / "agents" / "link_agent.py").symlink_to("kettle_agent.py")
    out = run(desk, "fork", "Origin", "--name", "Copy").splitlines()
    assert out[0] == "✓ Copy is a fork of Origin."
    assert out[1].endswith(" twins chat Copy")
    assert set(out[2:]) == {
        "  left behind: .env, a secret, or made anew",
        "  left behind: agents/link_agent.py, a link",
    }
    fork = told(desk, "twin", "show", "Copy")
    assert fork["agents"] == ["kettle_agent.py"]
    assert fork["parent_rappid"].endswith(key)
    assert told(desk, "twin", "fork", "Origin")["name"] == "Origin (fork)"


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
    asked.read_until(lambda seen: "Archive 2 twins? [y/N]" in seen.text)
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
    assert "hatches in another home" in asked.seen.text
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


def test_stopping_and_forking_without_a_daemon_count_at_the_next_start(idle: RunningDaemon) -> None:
    idle.start()
    for name in ("kept", "stopped", "forked"):
        run(idle, "new", name)
        run(idle, "boot", name)
    idle.stop()
    assert {row["state"] for row in told(idle, "twins", "list")} == {"asleep"}
    assert run(idle, "stop", "stopped") == "✓ stopped sleeps.\n"
    run(idle, "fork", "forked")
    run(idle, "archive", "kept")
    run(idle, "unarchive", "kept")
    idle.start()
    idle.wait_for(lambda: any(row["state"] == "awake" for row in told(idle, "twins", "list")))
    states = {row["name"]: row["state"] for row in told(idle, "twins", "list")}
    assert states == {"kept": "asleep", "stopped": "asleep", "forked": "awake", "forked (fork)": "asleep"}


def test_verbs_that_only_ask_a_running_daemon_import_no_event_loop(desk: RunningDaemon) -> None:
    program = (
        "import sys\nfrom rappd.cli.app import run\n"
        "code = run(['twins', 'list', '--json'])\nprint('imported', *sys.modules, file=sys.stderr)\nsys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=desk.environment, capture_output=True, text=True, check=True
    )
    found = {name.split(".")[0] for name in done.stderr.partition("imported ")[2].split()}
    assert "click" in found
    assert not found & {"aiohttp", "asyncio", "rich", "msgspec", "openai", "uvloop", "sqlite3"}


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
        home.wait_for(lambda: "Old rose lay in .trash and is archived now." in home.log)
        assert f"{trash}/notes stays: notes is no twin: it holds no rappid.json." in home.log
    else:
        seen = home.cli("twins", "list", "--archived")
        assert "Old iris lay in .trash and is archived now." in seen.stderr
    rows = told(home, "archived", "list", "--archived")
    assert {row["name"]: row["archived_by"] for row in rows} == {
        "Old rose": "migration",
        "Old iris": "migration",
    }
    run(home, "unarchive", "Old rose")
    assert "Old rose" in run(home, "list")
    assert (trash / "notes").is_dir(), "what is no twin stays where it was"
