"""Every verb: for people and for scripts, with the daemon up and down; exit codes and the error's shape."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from fixtures.running_daemon import RunningDaemon

from rappd.cli import app

LISTS = [  # verb, the noun its object is keyed by, whether it works without a daemon
    (("agents", "list"), "agents", True),
    (("agents", "test", "HackerNews"), "tests", True),
    (("threads", "list"), "threads", True),
    (("threads", "verify"), "verify", True),
    (("config", "show"), "settings", True),
    (("config", "show", "port"), "settings", True),
    (("config", "path"), "path", True),
    (("logs",), "log", True),
    (("doctor",), "doctor", True),
    (("service", "install", "--print"), "service", True),
    (("status",), "status", False),
    (("open",), "link", False),
    (("rapps", "list"), "rapps", False),
    (("chat", "hello"), "chat", False),
    (("agents", "run", "Weather"), "run", False),
]

MISTAKES = [  # verb, exit code, code, how the sentence begins
    (("nonsense",), 2, "mistyped", 'No such command "nonsense"'),
    (("--nonsense",), 2, "mistyped", "No such option"),
    (("agents", "lst"), 2, "mistyped", 'No such command "lst"'),
    (("agents", "run"), 2, "mistyped", "Missing argument 'NAME'"),
    (("agents", "run", "Weather", "word"), 2, "mistyped", '"word" is not NAME=VALUE'),
    (("agents", "new", "日本"), 2, "mistyped", '"日本" has no letter'),
    (("agents", "new", "basic"), 2, "mistyped", "basic_agent.py is what agents are made of"),
    (("config", "set", "port", "99999"), 2, "mistyped", "port must be 1 to 65535"),
    (("config", "set", "voice_mode", "loud"), 2, "mistyped", "voice_mode is a switch"),
    (("config", "set", "agents.timeout", "-1"), 2, "mistyped", "agents.timeout must be 1 to 86400"),
    (("config", "set", "name", "a\x1bb"), 2, "mistyped", "name takes one line of plain text"),
    (("config", "set", "prot", "1"), 4, "not_found", 'No setting "prot"'),
    (("config", "show", "prot"), 4, "not_found", 'No setting "prot"'),
    (("agents", "add", "/no/such_agent.py"), 4, "not_found", 'No file "/no/such_agent.py"'),
    (("agents", "remove", "Nobody"), 4, "not_found", 'No agent "Nobody"'),
    (("agents", "approve", "Nobody"), 4, "not_found", 'No agent "Nobody"'),
    (("agents", "test", "Nobody"), 4, "not_found", 'No agent "Nobody"'),
    (("agents", "undo", "1-2"), 4, "no_such_file", "That cannot be brought back"),
    (("agents", "remove", "HackerNews"), 5, "refused", "HackerNews is shipped"),
    (("threads", "show", "zzzz"), 4, "not_found", 'No thread "zzzz"'),
    (("threads", "export", "zzzz"), 4, "not_found", 'No thread "zzzz"'),
    (("logs", "-n", "many"), 2, "mistyped", "Invalid value for"),
]

NEEDS_A_DAEMON = [
    ("status",), ("open",), ("stop",), ("chat", "hello"), ("rapps", "list"), ("rapps", "install", "kanban"),
    ("rapps", "uninstall", "kanban"), ("agents", "run", "HackerNews"),
]  # fmt: skip


def _error(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    found: dict[str, str] = json.loads(lines[0])
    assert set(found) == {"error", "do", "code"}
    return found


@pytest.mark.parametrize(
    ("verb", "noun"), [row[:2] for row in LISTS], ids=lambda it: " ".join(it) if isinstance(it, tuple) else it
)
def test_with_the_daemon_up_answers_are_text_or_one_object(
    busy: RunningDaemon, verb: tuple[str, ...], noun: str
) -> None:
    human = busy.cli(*verb)
    assert human.returncode == 0, human.stderr
    assert human.stdout.strip()
    assert "Traceback" not in human.stderr
    assert "\x1b" not in human.stdout, "no colours without a terminal"
    machine = busy.cli(*verb, "--json")
    assert machine.returncode == 0
    assert list(json.loads(machine.stdout)) == [noun]
    assert "✓" not in machine.stdout.replace("\\u2713", "✓") or noun in ("log", "chat")


@pytest.mark.parametrize(
    "verb,noun",
    [row[:2] for row in LISTS if row[2]],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else it,
)
def test_what_needs_no_daemon_works_without_one(
    idle: RunningDaemon, verb: tuple[str, ...], noun: str
) -> None:
    human = idle.cli(*verb)
    assert human.returncode == 0, human.stderr
    machine = idle.cli(*verb, "--json")
    assert machine.returncode == 0, machine.stderr
    assert list(json.loads(machine.stdout)) == [noun]
    assert not (idle.home / "rappd.sock").exists()


@pytest.mark.parametrize(
    ("verb", "exit_code", "code", "sentence"),
    MISTAKES,
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else None,
)
def test_mistakes_have_an_exit_code_a_sentence_and_a_way_on(
    busy: RunningDaemon, verb: tuple[str, ...], exit_code: int, code: str, sentence: str
) -> None:
    human = busy.cli(*verb)
    assert human.returncode == exit_code, human.stderr
    assert human.stdout == ""
    what, do = human.stderr.splitlines()
    assert what.startswith(f"✗ {sentence}")
    assert do.startswith("  → ")
    assert len(do) > 4
    error = _error(busy.cli(*verb, "--json"))
    assert error["code"] == code
    assert error["error"].startswith(sentence)


@pytest.mark.parametrize("verb", NEEDS_A_DAEMON, ids=" ".join)
def test_what_needs_a_daemon_says_so_without_one(idle: RunningDaemon, verb: tuple[str, ...]) -> None:
    human = idle.cli(*verb)
    assert human.returncode == 3
    assert human.stdout == ""
    what, do = human.stderr.splitlines()
    assert what == "✗ rappd isn't running here"
    assert do.startswith("  → ")
    assert do.endswith("rappd start")
    error = _error(idle.cli(*verb, "--json"))
    assert error == {"error": "rappd isn't running here.", "do": "rappd start", "code": "not_running"}


def test_a_near_miss_is_named(busy: RunningDaemon) -> None:
    for verb, meant in (
        (("strat",), "rappd start?"),
        (("agents", "lisst"), "rappd agents list?"),
        (("config", "show", "voicemode"), "voice_mode?"),
        (("agents", "run", "wether"), "Weather?"),
    ):
        assert busy.cli(*verb).stderr.splitlines()[1].endswith(meant)


@pytest.mark.own_process
def test_a_daemon_that_ends_in_the_middle_of_an_answer_is_told(idle: RunningDaemon) -> None:
    idle.start()
    idle.drop("slow_agent.py", SLOW)
    idle.wait_for(lambda: "Slow" in idle.agent_names())
    process = subprocess.Popen(
        [sys.executable, "-m", "rappd", "agents", "run", "Slow"], env=idle.environment, stderr=subprocess.PIPE
    )
    idle.wait_for_log("slow has begun")
    idle.kill()
    _, told = process.communicate(timeout=100)
    assert process.returncode == 1
    assert told.decode().startswith("✗ rappd ended before it answered\n  → ")


SLOW = """
import time
from agents.basic_agent import BasicAgent


class SlowAgent(BasicAgent):
    def __init__(self):
        self.name = "Slow"
        self.metadata = {"name": "Slow", "description": "Slow.", "parameters": {"type": "object", "properties": {}}}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        print("slow has begun", flush=True)
        time.sleep(600)
        return "done"
"""


def test_a_reader_that_goes_is_no_error(busy: RunningDaemon) -> None:
    done = subprocess.run(
        f"{sys.executable} -m rappd config show | head -1",
        shell=True, env=busy.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "Changed\n"
    assert done.stderr == ""


def test_an_unwritable_home_is_told_in_words(idle: RunningDaemon) -> None:
    idle.environment["RAPP_HOME"] = "/proc/nowhere"
    done = idle.cli("start")
    assert done.returncode == 1
    assert done.stderr.startswith("✗ /proc/nowhere cannot be made: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("egg", "hatch", "rose.egg", "--trust-signer"), "rappd egg hatch"),
        (("egg", "hatch", "--trust-signer"), "rappd egg hatch"),
        (("twins", "archive", "Rose", "--reason"), "rappd twins archive"),
        (("logs", "--lines"), "rappd logs"),
    ],
)
def test_option_without_value_points_to_help(
    idle: RunningDaemon, arguments: tuple[str, ...], command: str
) -> None:
    done = idle.cli(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"✗ Option '{arguments[-1]}' requires an argument\n  → ")
    assert done.stderr.endswith(f"{command} --help\n")


def test_without_arguments_it_helps(idle: RunningDaemon) -> None:
    for arguments in ((), ("--help",), ("-h",)):
        done = idle.cli(*arguments)
        assert done.returncode == 0
        assert done.stdout.startswith("Usage: rappd [OPTIONS] COMMAND")
        assert max(map(len, done.stdout.splitlines())) <= 80
    assert idle.cli("--version").stdout.startswith("rappd ")
    assert not idle.home.exists()


def _leaves(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, *words, name)


def test_empty_word_in_the_place_of_a_required_argument_is_a_missing_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAPP_HOME", str(tmp_path))
    tried = 0
    for words, command in _leaves(app.rappd):
        required = [one for one in command.params if isinstance(one, click.Argument) and one.required]
        if required:
            tried += 1
            assert app.run([*words, *(" " for _ in required)]) == 2, words
            assert (
                f"Missing argument '{required[0].make_metavar(click.Context(command))}'"
                in capsys.readouterr().err
            )
    assert tried > 80


def test_empty_word_for_what_may_be_left_out_is_taken(busy: RunningDaemon) -> None:
    assert busy.cli("config", "set", "name", "").returncode == 0


@pytest.mark.parametrize(
    "verb", [("organism", "add"), ("cartridge", "convert", "x.egg"), ("mcp", "config", "vim")]
)
def test_choices_are_told_on_one_line(idle: RunningDaemon, verb: tuple[str, ...]) -> None:
    refused = idle.cli(*verb)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 2 and "\t" not in refused.stderr


def test_help_names_every_program_that_lines_can_be_printed_for(idle: RunningDaemon) -> None:
    lines = idle.cli("mcp", "config", "--help").stdout.splitlines()
    assert lines[0] == "Usage: rappd mcp config [OPTIONS] CLIENT"
    refused = idle.cli("mcp", "config", "vim").stderr.splitlines()[0]
    known = re.findall(r"'([^']+)'", refused.partition("is not one of")[2])
    assert known and all(f" {one}" in " ".join(lines) for one in known)
