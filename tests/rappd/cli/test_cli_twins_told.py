"""``rappd twins list``, ``show`` and ``lineage``: who lives here, and how they are related."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import on_terminal

from agents.runtimes.python.pools.started_processes import descendants
from rappd.cli.tables import cells
from tests.rappd.cli.twins_verbs import error, lay, run, told
from twins.workspace.rappid import Rappid

UP_OR_DOWN = pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])


def test_the_list_is_the_table_of_six_columns(desk: RunningDaemon) -> None:
    run(desk, "new", "gardener", "--kind", "twin")
    run(desk, "boot", "gardener")
    run(desk, "chat", "gardener", "remember that the tomatoes are dry")
    run(desk, "new", "herbalist", "--kind", "twin")
    seen = on_terminal(desk, "twins", "list")
    header, *rows = [line for line in seen.lines if re.match("TWIN|gardener|herbalist", line)]
    assert header.split() == ["TWIN", "KIND", "STATE", "PORT", "MEMORIES", "LAST", "TALK"]
    port = told(desk, "twin", "show", "gardener")["port"]
    assert re.fullmatch(rf"gardener +twin +running +{port} +1 +\d+ s ago", rows[0])
    assert re.fullmatch(r"herbalist +twin +stopped +0 +never", rows[1])
    starts = [header.index(word) for word in ("TWIN", "KIND", "STATE", "PORT", "MEMORIES", "LAST")]
    assert [rows[0].index(word) for word in ("gardener", "twin", "running", str(port))] == starts[:4]
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
    assert re.search(r"^sound +personal +stopped +\? +never$", out, re.MULTILINE)
    assert len(re.findall(r"^✗ \S+/twins/(?:torn|empty) cannot be read: ", out, re.MULTILINE)) == 2
    assert "no-twin-at-all" not in out
    found = json.loads(run(idle, "list", "--json"))
    assert [row["name"] for row in found["twins"]] == ["sound"]
    assert found["twins"][0]["memories"] is None
    assert {Path(one["folder"]).name for one in found["unreadable"]} == {"torn", "empty"}
    assert all(one["problem"] for one in found["unreadable"])


@pytest.mark.own_process(zygote=True)
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
    awake = json.loads(run(idle, "list", "--json"))
    for row in awake["twins"]:
        assert row.pop("activity"), "only a daemon knows it"
    for row in asleep["twins"]:
        assert row.pop("activity") == ""
    assert awake == asleep
    assert set(descendants(idle.process.pid)) <= before, "whatever the start still had to do may have ended"
    assert not list((idle.home / "twins").glob("*/soul.md")), "nobody was woken, nothing was written"
    assert [cell for cell in lines[1:] if "(" in cell] == [line for line in lines if "twin 00" in line], (
        "namesakes"
    )
    assert max(map(cells, lines)) <= 80
    assert told(idle, "twin", "show", "twin 500")["name"] == "twin 500"


def test_namesakes_are_told_apart_wherever_they_are_named(desk: RunningDaemon) -> None:
    first, second = (told(desk, "twin", "new", "Rose", "--kind", "namesake", "--force") for _ in range(2))
    assert (first["namesakes"], second["namesakes"]) == (0, 1)
    found = error(desk, "show", "rose", exits=9)
    assert found["code"] == "twin_conflict"
    for one in (first, second):
        assert one["key"][:12] in found["error"]
        [line] = [line for line in run(desk, "list").splitlines() if f"({one['key'][:4]}" in line]
        shown = re.search(r"Rose \((\w+)\)", line)
        assert shown
        assert told(desk, "twin", "show", shown[1])["key"] == one["key"]
    third = run(desk, "new", "rose", "--kind", "namesake", "--force").splitlines()[1]
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
    assert out.splitlines()[0] == f"whole  personal, running on port {port}"
    assert f"  Rappid    rappid:@desk/whole:{key}\n" in out, "never shortened"
    assert "  Agents    kettle_agent.py\n" in out
    assert "  Services  pump_service.py\n  Organs    heart_organ.py\n  Senses    mood_sense.py\n" in out
    assert told(desk, "twin", "show", "whole")["senses"] == ["mood_sense.py"]
    assert "  Talked    never\n" in out
    assert "Parent" not in out


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
