"""``organism.yaml`` on a daemon: what it names is offered, within a second; a fault changes nothing."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.sandboxed_daemon import SandboxedDaemon

from envelopes.payloads.form import Field, PayloadForm, Type
from rappd.organism.schemas import ListenerSchemas

DICE = agent_source("Dice", 'return "six"', "Rolls dice.")
NOTE = agent_source("Note", 'return "noted"', "Notes things.")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = RunningDaemon(tmp_path_factory.mktemp("organism") / "home")
    running.drop("dice_agent.py", DICE)
    running.drop("note_agent.py", NOTE)
    yield running.start()
    running.stop()


@pytest.fixture(autouse=True)
def without_a_file(daemon: RunningDaemon) -> None:
    (daemon.home / "organism.yaml").unlink(missing_ok=True)
    daemon.post("/organism/reload", {}, control=True)


def names(daemon: RunningDaemon) -> list[str]:
    found: list[str] = daemon.get("/health").json()["agents"]
    return found


def write(daemon: RunningDaemon, text: str) -> None:
    (daemon.home / "organism.yaml").write_text(text)


def test_only_what_the_file_names_is_offered_and_the_rest_is_listed(daemon: RunningDaemon) -> None:
    assert {"Dice", "Note", "Timer"} <= set(names(daemon))
    write(daemon, "listeners:\n  - name: Dice\n")
    daemon.wait_for(lambda: names(daemon) == ["Dice"], what="the list")
    listed = {one["name"] for one in daemon.get("/organism/listeners").json()["listeners"]}
    assert listed == {"Dice"}
    cards = [card for file in daemon.get("/agents").json()["files"] for card in file["cards"]]
    assert {card["name"] for card in cards if card["offered"]} == {"Dice"}
    assert "not in organism.yaml" in daemon.cli("agents", "list").stdout
    ran = daemon.cli("agents", "run", "Note")
    assert ran.returncode != 0 and "rappd organism add listener Note" in ran.stderr
    tested = daemon.cli("agents", "test", "Note")
    assert tested.returncode != 0 and "rappd organism add listener Note" in tested.stderr
    made = daemon.cli("agents", "new", "Sorter", "Sorts words.", "--listener")
    assert "sorter is not in organism.yaml" in made.stdout and "ready" not in made.stdout
    (daemon.agents / "sorter_listener.py").unlink()
    (daemon.home / "organism.yaml").unlink()
    daemon.wait_for(lambda: "Note" in names(daemon), what="all that is installed")


def test_a_list_as_long_as_the_file_may_be_is_shown(daemon: RunningDaemon) -> None:
    write(daemon, "listeners:\n  - name: Dice\n" + "".join(f"  - name: a{n}\n" for n in range(3500)))
    daemon.post("/organism/reload", {}, control=True)
    listed = daemon.get("/organism", control=True).json()["listeners"]
    assert [one["state"] for one in listed] == ["ready"] + ["not installed"] * 3500


def test_what_is_no_file_is_a_fault_and_never_waited_for(daemon: RunningDaemon) -> None:
    path = daemon.home / "organism.yaml"
    write(daemon, "listeners: [{name: Dice}]")
    daemon.wait_for(lambda: names(daemon) == ["Dice"], what="the list")
    path.unlink()
    os.mkfifo(path)
    daemon.wait_for(
        lambda: "no regular file" in str(daemon.get("/organism", control=True).json()["faults"]), what="fault"
    )
    assert names(daemon) == ["Dice"]
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "no regular file" in daemon.cli("organism", "reload").stderr
    path.unlink()
    write(daemon, "listeners: [{name: Note}]")
    daemon.wait_for(lambda: names(daemon) == ["Note"], what="the next version")


def test_an_edit_keeps_a_link_and_the_ends_of_lines(daemon: RunningDaemon, tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_bytes(b"\xef\xbb\xbflisteners:\r\n  - name: Dice  # mine\r\n")
    (daemon.home / "organism.yaml").symlink_to(real)
    assert daemon.cli("organism", "add", "listener", "Note").returncode == 0
    assert (daemon.home / "organism.yaml").is_symlink()
    assert real.read_bytes() == b"\xef\xbb\xbflisteners:\r\n  - name: Dice  # mine\r\n  - name: Note\r\n"


def test_an_entry_of_agents_may_have_the_name_of_what_is_not_offered(daemon: RunningDaemon) -> None:
    (daemon.home / "prompts").mkdir(exist_ok=True)
    (daemon.home / "prompts" / "dice.md").write_text("Roll.")
    write(daemon, "agents: [{name: Dice, prompt: prompts/dice.md}]")
    daemon.wait_for(lambda: daemon.get("/organism", control=True).json()["agents"], what="the driven one")
    ran = daemon.cli("agents", "run", "Dice", "text=roll")
    assert (ran.returncode, ran.stderr) == (0, "") and "(no model)" in ran.stdout


@pytest.mark.parametrize(
    "bad", ["listeners: [{nmae: Dice}]", "listeners: [", "oob: {bind: 0.0.0.0}"], ids=["key", "yaml", "oob"]
)
def test_the_last_good_version_stays_in_force(daemon: RunningDaemon, bad: str) -> None:
    write(daemon, "listeners: [{name: Dice}]")
    daemon.wait_for(lambda: names(daemon) == ["Dice"], what="the list")
    write(daemon, bad)
    ran = daemon.cli("organism", "reload")
    assert ran.returncode != 0 and "line 1, column" in ran.stderr
    assert names(daemon) == ["Dice"]
    shown = daemon.get("/organism", control=True).json()
    assert shown["faults"][0]["line"] == 1 and [one["name"] for one in shown["listeners"]] == ["Dice"]
    assert "stays in force" in str(daemon.get("/notices", control=True).json())
    write(daemon, "listeners: [{name: Dice}]  # mended")
    daemon.wait_for(lambda: "stays in force" not in str(daemon.get("/notices", control=True).json()))


def test_the_last_good_version_survives_a_restart(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon()
    daemon.drop("dice_agent.py", DICE)
    write_early = daemon.home / "organism.yaml"
    write_early.write_text("listeners: [{name: Dice}]")
    daemon.start()
    assert names(daemon) == ["Dice"]
    write_early.write_text("lisneters: []")
    daemon.stop()
    daemon.start()
    assert names(daemon) == ["Dice"]
    assert "stays in force" in str(daemon.get("/notices", control=True).json())
    daemon.stop()
    write_early.unlink()
    daemon.start()
    assert "Timer" in names(daemon)
    write_early.write_text("lisneters: []")
    assert daemon.cli("organism", "reload").returncode != 0
    assert "Timer" in names(daemon)


def test_commands_make_edit_and_check_the_file(daemon: RunningDaemon) -> None:
    before = names(daemon)
    assert daemon.cli("organism", "init").returncode == 0
    assert names(daemon) == before
    again = daemon.cli("organism", "init")
    assert again.returncode != 0 and "already" in again.stderr
    assert daemon.cli("organism", "remove", "listener", "Note").returncode == 0
    assert names(daemon) == [one for one in before if one != "Note"]
    shown = json.loads(daemon.cli("organism", "show", "--json").stdout)
    assert shown["not_named"] == ["Note"]
    assert "not offered: Note" in daemon.cli("organism", "show").stdout
    assert daemon.cli("organism", "add", "listener", "Note").returncode == 0
    nobody = daemon.cli("organism", "add", "listener", "Nobody")
    assert (nobody.returncode, nobody.stdout.splitlines()[0][2:]) == (
        0,
        "organism.yaml names the listener Nobody. It is not installed.",
    )
    states = {one["name"]: one["state"] for one in daemon.get("/organism", control=True).json()["listeners"]}
    assert states["Note"] == "ready" and states["Nobody"] == "not installed"
    assert (daemon.home / "organism.yaml").read_text().startswith("# What exists")
    refused = daemon.cli("organism", "add", "timer", "m", "--when", "in ten minutes", "--ask", "news")
    assert refused.returncode != 0 and "repeated" in refused.stderr


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (("listener", "Dice"), "names the listener Dice"),
        (("agent", "clerk", "--prompt", "prompts/clerk.md"), "the agent clerk. It is without its prompt."),
        (("gateway", "lab", "--fingerprint", "ab" * 32), "the gateway lab. It is not paired."),
        (("timer", "m", "--when", "every hour", "--ask", "news"), "names the timer m"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_add_says_where_an_entry_gives_nothing_yet(
    daemon: RunningDaemon, entry: tuple[str, ...], said: str
) -> None:
    write(daemon, "listeners: [{name: Note}, {name: Timer}]")
    ran = daemon.cli("organism", "add", *entry)
    assert ran.returncode == 0 and ran.stdout.splitlines()[0].endswith(said), ran.stdout
    assert ("It is" in said) == (len(ran.stdout.splitlines()) > 1), "what to do about it"


def test_the_first_entry_of_a_list_says_that_the_rest_is_not_offered(daemon: RunningDaemon) -> None:
    ran = daemon.cli("organism", "add", "timer", "m", "--when", "every hour", "--ask", "news")
    assert "not offered" not in ran.stdout
    first = daemon.cli("organism", "add", "listener", "Dice")
    assert "installed here are not offered any more." in " ".join(first.stdout.split())
    assert "not offered" not in daemon.cli("organism", "add", "listener", "Note").stdout


def test_check_says_line_column_and_nearest_key(daemon: RunningDaemon, tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text("organism: {name: x}\nlisteners:\n  - nmae: Dice\n")
    ran = daemon.cli("organism", "check", str(file))
    assert ran.returncode != 0
    assert "line 3, column 5: `nmae` is no key of `listeners`. Did you mean `name`?" in ran.stdout
    file.write_text("organism: {name: x, port: 8765}\n")
    ran = daemon.cli("organism", "check", str(file))
    assert ran.returncode == 0 and "has no meaning here" in ran.stdout


def test_check_names_entries_that_give_nothing(daemon: RunningDaemon) -> None:
    file = daemon.home / "organism.yaml"
    before = file.read_bytes() if file.exists() else None
    file.write_text(
        "listeners:\n  - name: Dcie\n  - name: Dice\nagents:\n  - {name: clerk, prompt: prompts/none.md}\n"
    )
    try:
        ran = daemon.cli("organism", "check")
        listed = json.loads(daemon.cli("organism", "check", "--json").stdout)["not_ready"]
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)
        daemon.post("/organism/reload", {}, control=True)
    assert [(one["name"], one["state"]) for one in listed] == [
        ("Dcie", "not installed"),
        ("clerk", "without its prompt"),
    ]
    assert "listener Dcie: It is not installed" in ran.stdout
    assert "prompts/none.md" in ran.stdout and "Nothing is wrong" not in ran.stdout
    assert ran.returncode == 0


def test_a_copy_in_the_workspace_is_data(daemon: RunningDaemon) -> None:
    (daemon.home / "brainstem" / "organism.yaml").write_text("listeners: []")
    daemon.post("/organism/reload", {}, control=True)
    assert "Dice" in names(daemon)


def test_its_structure_is_the_owners_alone(daemon: RunningDaemon) -> None:
    for method, path in (("GET", "/organism"), ("POST", "/organism/init"), ("POST", "/organism/reload")):
        answer = daemon.get(path) if method == "GET" else daemon.post(path, {})
        assert answer.status in (401, 403), (path, answer.status)


ADDER = '''
from dataclasses import dataclass

from agents.listener import listener


@listener(category="tests")
@dataclass
class Sum:
    """Adds one."""

    number: int
    "A number."


def handle(payload: Sum) -> str:
    return str(payload.number + 1)
'''


def test_the_file_names_a_listener_that_says_no_name_itself(daemon: RunningDaemon) -> None:
    daemon.drop("adder_listener.py", ADDER)
    daemon.wait_for(lambda: "adder" in names(daemon), what="the listener under its file's name")
    write(daemon, "listeners: [{name: math.add, file: adder_listener.py}]")
    daemon.wait_for(lambda: daemon.get("/organism/listeners/math.add").status == 200, what="its given name")
    assert names(daemon) == ["math.add"]
    ran = daemon.post("/agents/run", {"agent": "math.add", "args": {"number": 41}}, control=True).json()
    assert (ran["ok"], ran["result"]) == (True, "42")
    found = daemon.get("/organism/listeners/math.add").json()
    assert found["namespace"].endswith("/tests/math.add/v1") and "math.add/v1" in found["xsd"]
    daemon.wait_for(lambda: (daemon.home / "schemas" / "math.add" / "v1.xsd").is_file(), what="its schema")
    (daemon.home / "organism.yaml").unlink()
    daemon.wait_for(lambda: "adder" in names(daemon), what="its own name again")


def test_no_agent_reads_or_writes_it(sandboxed_daemon: SandboxedDaemon) -> None:
    daemon = sandboxed_daemon.start()
    file = daemon.home / "organism.yaml"
    (daemon.home / "prompts").mkdir()
    attack = f"""
        import pathlib
        done = []
        for path in ({str(file)!r}, {str(daemon.home / ".organism.good.yaml")!r}, {str(daemon.home / "prompts" / "a.md")!r}):
            try:
                pathlib.Path(path).write_text("listeners: []")
                done.append(path)
            except OSError:
                pass
        return done or "nothing"
    """
    assert daemon.run_code(textwrap.dedent(attack))["result"] == "nothing"
    assert not file.exists()


ONE, OTHER, THIRD = (
    PayloadForm("double", "sums", "double", "Doubles.", (Field(name, Type("int")),))
    for name in ("number", "value", "amount")
)


@pytest.mark.parametrize(
    ("kept", "served"),
    [
        ([], {1}),
        ([ONE], {1}),
        ([ONE, OTHER], {1, 2}),
        ([ONE, OTHER, ONE], {1, 2}),
        ([ONE, OTHER, THIRD], {1, 2, 3}),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_listener_has_the_namespaces_of_the_versions_there_are(
    tmp_path: Path, kept: list[PayloadForm], served: set[int], restarted: bool
) -> None:
    schemas = ListenerSchemas(tmp_path)
    for form in kept:
        schemas.keep([form])
    if restarted:
        schemas = ListenerSchemas(tmp_path)
        schemas.keep(kept[-1:])
    current = kept[-1] if kept else ONE
    found = {
        version
        for version in range(10)
        if current.serves(current.namespace(version), "double", schemas.newest(current))
    }
    assert found == served
    assert current.serves("", "double") and not current.serves("", "triple")


def test_init_without_a_daemon_names_what_one_would_offer(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("resting")
    home.drop("clock_agent.py", agent_source("Clock"))
    home.home.chmod(0o700)
    assert home.cli("twins", "new", "Rose").returncode == 0
    drawn = home.cli("organism", "graph").stdout
    assert "Clock (agent)" in drawn and "HackerNews (agent)" in drawn and "Rose (twin, stopped)" in drawn
    made = home.cli("organism", "init")
    assert made.returncode == 0, made.stderr
    shown = home.cli("organism", "show").stdout
    home.start()
    assert shown == home.cli("organism", "show").stdout
    assert "Not in organism.yaml" not in shown
    assert {"Clock", "HackerNews"} <= set(home.agent_names())


def test_file_that_names_nothing_says_so(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("resting")
    home.home.mkdir(mode=0o700, exist_ok=True)
    (home.home / "organism.yaml").write_text("organism:\n  name: desk\n")
    assert home.cli("organism", "show").stdout == "organism.yaml names nothing yet.\n"
