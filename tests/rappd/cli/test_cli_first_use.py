"""The first things people type, and the first things that go wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.ordinary_account import NOBODY
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import Terminal

from rappd.cli.commands import COMMANDS

HOW = '{"how": {"type": "string"}}'
FAILS = """if kwargs["how"] == "raises": raise ValueError("the pump is stuck")
        return {"text": "Error: the pump is stuck", "object": {"status": "error", "message": "the pump is stuck"},
                "json": '{"error": "the pump is stuck"}'}.get(kwargs["how"], "pumping")"""


@pytest.fixture
def newcomer(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A home that nobody made yet."""
    return make_daemon("newcomer")


@pytest.fixture
def ordinary(nobody_python: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """``rappd`` as an account that may not do everything; its ``folder`` belongs to it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, NOBODY, NOBODY)

        def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
            environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": name, "RAPP_HOME": str(home)}
            return subprocess.run(
                [nobody_python, "-m", "rappd", *words], env=environment, user=NOBODY, group=NOBODY,
                extra_groups=[], cwd="/", capture_output=True, text=True, check=False,
            )  # fmt: skip

        run.folder = folder  # type: ignore[attr-defined]
        yield run


# Twins.


def test_second_twin_of_a_name_needs_force(desk: RunningDaemon, newcomer: RunningDaemon) -> None:
    for home in (desk, newcomer):  # with a daemon, and without
        assert home.cli("twins", "new", "Poppy").returncode == 0
        refused = home.cli("twins", "new", " poppy ")
        assert refused.returncode == 9
        assert refused.stderr.startswith("✗ A twin called poppy lives here already\n")
        assert "--force" in refused.stderr
        assert home.cli("twins", "new", "poppy", "--force").returncode == 0
        assert len(json.loads(home.cli("twins", "list", "--json").stdout)["twins"]) == 2
        for twin in json.loads(home.cli("twins", "list", "--json").stdout)["twins"]:
            home.cli("twins", "archive", twin["key"])


@pytest.mark.parametrize("verb", [("list",), ("list", "--archived"), ("list", "--purged"), ("lineage",)])
def test_looking_at_twins_makes_no_home(newcomer: RunningDaemon, verb: tuple[str, ...]) -> None:
    assert newcomer.cli("twins", *verb).returncode == 0
    assert newcomer.cli("twins", "show", "rose").returncode == 4
    assert newcomer.cli("twins", "checkpoints", "rose").returncode == 4
    assert not newcomer.home.exists()


@pytest.mark.parametrize(
    "verb",
    [
        ("agents", "list"),
        ("egg", "hatchings"),
        ("egg", "signers"),
        ("fleet", "status"),
        ("neighborhood", "snapshots"),
    ],
    ids=" ".join,
)
def test_looking_at_what_was_kept_makes_no_home(newcomer: RunningDaemon, verb: tuple[str, ...]) -> None:
    done = newcomer.cli(*verb)
    assert done.returncode == 0, done.stderr
    assert not newcomer.home.exists()


def test_agents_of_no_home_are_those_that_come_with_it(newcomer: RunningDaemon) -> None:
    looked = json.loads(newcomer.cli("agents", "list", "--json").stdout)["agents"]
    newcomer.home.mkdir(mode=0o700)
    assert looked == json.loads(newcomer.cli("agents", "list", "--json").stdout)["agents"] != []


def test_signers_of_no_home_name_no_key(newcomer: RunningDaemon) -> None:
    assert json.loads(newcomer.cli("egg", "signers", "--json").stdout) == {"signers": [], "own": None}
    assert "no key yet" in newcomer.cli("egg", "signers").stdout


# Agents that fail.


@pytest.mark.parametrize("how", ["raises", "text", "object", "json"])
def test_failed_agent_prints_its_message_and_exits_1(desk: RunningDaemon, how: str) -> None:
    desk.drop("pump_agent.py", agent_source("Pump", FAILS, properties=HOW))
    desk.wait_for(lambda: "Pump" in desk.agent_names())
    failed = desk.cli("agents", "run", "Pump", f"how={how}")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "the pump is stuck" in failed.stderr.splitlines()[0]
    assert "{" not in failed.stderr
    error = json.loads(desk.cli("agents", "run", "Pump", f"how={how}", "--json").stderr)
    assert "the pump is stuck" in error["error"]
    assert error["run"]["thread"]
    assert desk.cli("agents", "run", "Pump", "how=well").stdout == "pumping\n"


# First answers without a model.


def test_what_is_told_to_be_remembered_answers_a_question(desk: RunningDaemon) -> None:
    assert "stored" in desk.cli("chat", "remember: the boiler is serviced in May").stdout
    said = desk.cli("chat", "when is the boiler serviced?").stdout
    assert said == "(no model) I remember: the boiler is serviced in May\n"


def test_what_a_new_home_offers_works_at_once(newcomer: RunningDaemon) -> None:
    newcomer.start()
    rows = json.loads(newcomer.cli("agents", "list", "--json").stdout)["agents"]
    assert {row["name"] for row in rows if row["origin"] == "shipped" and not row["try"]} == {
        "AskPeer", "HatchEgg", "NeighborhoodRun", "SwarmFactory",
    }  # fmt: skip
    [tries] = [line for line in newcomer.cli("chat", "hello").stdout.splitlines() if line.startswith("Try: ")]
    offered = [*tries.removeprefix("Try: ").split("; ")]
    offered += [
        row["try"] for row in rows if row["try"] and row["name"] != "HackerNews"
    ]  # it needs the Internet
    for text in dict.fromkeys(offered):
        said = newcomer.cli("chat", text).stdout
        assert not any(sign in said for sign in (" failed", "None of my agents", " needs ", "is required")), (
            said
        )


def test_agents_list_shows_the_lines_for_people(desk: RunningDaemon) -> None:
    listed = desk.cli("agents", "list").stdout
    assert "Recalls what was remembered" in listed
    assert "Remembers a fact, a wish or a task" in listed


# Homes that cannot be used.


def _explained(start: subprocess.CompletedProcess[str], doctor: subprocess.CompletedProcess[str]) -> str:
    """The sentence that both print; neither sends people to the other."""
    assert (start.returncode, doctor.returncode, start.stdout) == (1, 1, "")
    what, do = (line[2:].strip() for line in start.stderr.splitlines())
    assert "doctor" not in start.stderr
    found, remedy = (line.strip() for line in doctor.stdout.splitlines()[:2])
    assert found == f"✗ Data       {what}"
    assert remedy == do
    return f"{what}\n{do}"


def test_home_that_is_a_file_is_explained(newcomer: RunningDaemon) -> None:
    newcomer.home.write_text("mine")
    said = _explained(newcomer.cli("start"), newcomer.cli("doctor"))
    assert said.startswith(f"{newcomer.home} is a file, not a folder\n→ move it away, or RAPP_HOME=FOLDER ")
    assert newcomer.home.read_text() == "mine"
    below = {"RAPP_HOME": str(newcomer.home / "deeper")}
    said = _explained(newcomer.cli("start", **below), newcomer.cli("doctor", **below))
    assert said.startswith(f"{newcomer.home} is a file")


def test_home_that_is_a_link_to_nothing_is_explained(newcomer: RunningDaemon) -> None:
    newcomer.home.symlink_to(newcomer.home.parent / "gone")
    said = _explained(newcomer.cli("start", "--detach"), newcomer.cli("doctor"))
    assert said.startswith(f"{newcomer.home} is a link to nothing\n")


def test_home_on_a_full_disk_is_explained(newcomer: RunningDaemon, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs", disk], check=True)
    try:
        start = newcomer.cli("start", RAPP_HOME=str(disk / "home"))
    finally:
        subprocess.run(["umount", disk], check=True)
    assert start.returncode == 1
    said, do = start.stderr.splitlines()
    assert said == f"✗ {disk}/home cannot be made: No space left on device"
    assert "make room on its disk, or name another folder: RAPP_HOME=FOLDER " in do


def test_unwritable_homes_are_explained(ordinary: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    folder: Path = ordinary.folder  # type: ignore[attr-defined]
    closed, foreign, partly = folder / "closed", folder / "foreign", folder / "partly"
    for home, owner, mode in ((closed, NOBODY, 0o500), (foreign, 0, 0o755), (partly, NOBODY, 0o700)):
        home.mkdir()
        home.chmod(mode)
        os.chown(home, owner, owner)
    (partly / "rappd.db").touch(mode=0o600)  # as after one `sudo rappd start`

    def explained(home: Path) -> str:
        return _explained(ordinary(home, "start"), ordinary(home, "doctor"))

    assert f"{closed} may not be read and written\n→ chmod u+rwX {closed}" in explained(closed)
    assert f"{foreign} belongs to root, and rappd runs as nobody\n" in explained(foreign)
    assert f"→ sudo chown -R nobody {foreign}" in explained(foreign)
    assert f"{partly}/rappd.db belongs to root" in explained(partly)
    deep = foreign / "a" / "home"
    assert f"{deep} cannot be made: {foreign} belongs to root\n" in explained(deep)
    named = ordinary(closed, "twins", "new", "rose")
    assert named.stderr.startswith(f"✗ {closed} may not be read and written\n"), "other commands say it, too"


# Eggs that are none.


@pytest.mark.parametrize("verb", ["plan", "inspect", "hatch", "verify"])
def test_file_that_is_no_egg_is_one_line_of_error(newcomer: RunningDaemon, tmp_path: Path, verb: str) -> None:
    for name, content, says in (
        ("notes.txt", "Buy milk.\nAnd bread.\n", "is not an egg: it is neither a ZIP archive nor JSON"),
        ("empty.egg", "", "is empty"),
    ):
        path = tmp_path / name
        path.write_text(content)
        done = newcomer.cli("egg", verb, path)
        assert (done.returncode, done.stdout) == (5, "")
        error, remedy = done.stderr.splitlines()
        assert error == f"✗ {name} {says}; nothing was written"
        assert remedy == "  → Get it again, or another file"


# The end of a start.


def test_ctrl_c_of_start_says_what_stop_says(newcomer: RunningDaemon) -> None:
    assert newcomer.cli("start", "--detach").returncode == 0
    stopped = newcomer.cli("stop").stdout
    terminal = Terminal(newcomer, "start")
    terminal.read_until(lambda seen: "is running" in seen.words)
    terminal.send(signal.SIGINT)
    ended = terminal.to_end()
    assert ended.code == 0
    assert ended.lines[-1] == stopped.rstrip("\n") == "✓ Stopped. What was answered is kept."


def test_two_homes_have_two_machine_names(make_daemon: Callable[..., RunningDaemon]) -> None:
    names = []
    for name in ("one", "two"):
        home = make_daemon(name).start()
        names.append(json.loads(home.cli("status", "--json").stdout)["status"]["name"])
        home.stop()
    assert len(set(names)) == 2
    again = make_daemon("one").start()
    assert json.loads(again.cli("status", "--json").stdout)["status"]["name"] == names[0]
    called = make_daemon("three", RAPPD_NAME="desk").start()
    assert json.loads(called.cli("status", "--json").stdout)["status"]["name"] == "desk"


# Help and completion.


def test_help_is_a_command(newcomer: RunningDaemon) -> None:
    assert newcomer.cli("help").stdout == newcomer.cli("--help").stdout
    for path in (("config", "set"), ("twins",), ("start",)):
        told, usual = newcomer.cli("help", *path), newcomer.cli(*path, "--help")
        assert told.returncode == 0
        assert told.stdout == usual.stdout
    unknown = newcomer.cli("help", "confg")
    assert unknown.returncode == 2
    assert "rappd config?" in unknown.stderr
    assert not newcomer.home.exists()


def _completed(home: RunningDaemon, *words: str) -> list[str]:
    asked = {
        "_RAPPD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("rappd", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = home.cli(**asked)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_shell_completes_names(desk: RunningDaemon) -> None:
    twin = json.loads(desk.cli("twins", "new", "Quince", "--json").stdout)["twin"]
    spaced = json.loads(desk.cli("twins", "new", "Quince of the Garden", "--json").stdout)["twin"]
    desk.chat("what can you do?")
    thread = json.loads(desk.cli("threads", "list", "--json").stdout)["threads"][0]["id"]
    assert _completed(desk, "agents", "run", "hack") == ["HackerNews"]
    assert _completed(desk, "twins", "show", "Qui") == ["Quince"]
    assert spaced["key"][:12] in _completed(desk, "twins", "archive", "")
    assert _completed(desk, "egg", "pack", "quince") == ["Quince"]
    assert _completed(desk, "config", "unset", "peers.po") == ["peers.port"]
    assert thread[:8] in _completed(desk, "threads", "show", thread[:4])
    assert _completed(desk, "help", "conf") == ["config"]
    assert "unset" in _completed(desk, "help", "config", "")
    for key in (twin["key"], spaced["key"]):
        desk.cli("twins", "archive", key)


def test_completion_makes_no_home_and_stays_silent(newcomer: RunningDaemon) -> None:
    for words in (
        ("agents", "run", ""),
        ("twins", "show", ""),
        ("threads", "show", ""),
        ("call", ""),
        ("x", ""),
    ):
        _completed(newcomer, *words)
    assert not newcomer.home.exists()
    newcomer.drop("pump_agent.py", agent_source("Pump"))
    assert _completed(newcomer, "agents", "test", "") == ["pump_agent.py"]
    shutil.rmtree(newcomer.home)
    newcomer.home.write_text("no folder")
    assert _completed(newcomer, "twins", "show", "") == []
    assert set(_completed(newcomer, "")) == set(COMMANDS)
