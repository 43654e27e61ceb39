"""Agents from the command line: written, tested, run, listed, taken out and brought back."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import on_terminal
from hypothesis import given
from hypothesis import strategies as st

from agents.contract import contract_tests
from agents.contract.scaffold import scaffold
from agents.errors import AgentError
from rappd.store.reader import Reader

HOSTILE = [
    "../../etc/passwd", "a/b\\c", "; rm -rf /", "$(id)", "name\nimport os", 'x"""\nimport os\n"""', "{0}{name}",
    "__import__('os')", "a" * 500, "-", "..", "con.py", "tea_agent.py", "\x1b[31mred", "café & crème",
]  # fmt: skip


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_new_then_test_then_run_is_a_chain_that_works(idle: RunningDaemon, up: bool) -> None:
    if up:
        idle.start()
    made = idle.cli("agents", "new", "Tea Timer", "Says", "when the tea is ready.", "--json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)["agent"]
    assert told["file"] == "tea_timer_agent.py"
    assert Path(told["path"]) == idle.agents / "tea_timer_agent.py"
    assert "Says when the tea is ready." in Path(told["path"]).read_text()
    for name in ("teatimer", "tea_timer_agent.py", told["path"]):
        tested = idle.cli("agents", "test", name)
        assert tested.returncode == 0, tested.stdout + tested.stderr
        assert "✓ perform_returns_str" in tested.stdout
        assert "! has_manifest" in tested.stdout
        assert "✗" not in tested.stdout
    if not up:
        idle.start()
    ran = idle.cli("agents", "run", "teatimer", "text=green tea")
    assert (ran.returncode, ran.stdout) == (0, "TeaTimer was asked: green tea\n")
    again = idle.cli("agents", "new", "tea timer")
    assert again.returncode == 5
    assert again.stderr.startswith("✗ tea_timer_agent.py exists already\n")


def test_new_listener_is_tested_and_run_as_an_agent_is(idle: RunningDaemon) -> None:
    idle.start()
    told = json.loads(idle.cli("agents", "new", "Rain gauge", "Reads it.", "--listener", "--json").stdout)
    assert told["agent"]["file"] == "rain_gauge_listener.py"
    tested = idle.cli("agents", "test", "rain_gauge")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "✓ answers_its_example" in tested.stdout
    ran = idle.cli("agents", "run", "rain_gauge", "text=now")
    assert (ran.returncode, ran.stdout) == (0, "rain_gauge was asked: now\n")
    refused = idle.cli("agents", "run", "rain_gauge", "words=now")
    assert refused.returncode == 1
    assert "has no field 'words'. Its fields: text." in refused.stderr


def test_new_name_with_an_apostrophe_keeps_its_word_whole(idle: RunningDaemon) -> None:
    made = idle.cli("agents", "new", "--json", "Grandma's tea’s end")
    assert json.loads(made.stdout)["agent"]["file"] == "grandmas_teas_end_agent.py"


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_remove_tells_the_command_that_brings_it_back(idle: RunningDaemon, tmp_path: Path, up: bool) -> None:
    source = agent_source("Weather", 'return "rain"')
    (tmp_path / "weather_agent.py").write_text(source)
    if up:
        idle.start()
    added = idle.cli("agents", "add", str(tmp_path / "weather_agent.py"))
    assert added.returncode == 0, added.stderr
    removed = on_terminal(idle, "agents", "remove", "Weather")
    assert removed.lines[0] == "✓ weather_agent.py is out of service."
    assert not (idle.agents / "weather_agent.py").exists()
    back = removed.lines[1].split(" rappd ")[1].split()
    assert idle.cli(*back).returncode == 0
    assert (idle.agents / "weather_agent.py").read_text() == source
    second = idle.cli(*back)
    assert second.returncode == 4


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_adding_what_is_no_agent_is_refused_with_its_line(
    idle: RunningDaemon, tmp_path: Path, up: bool
) -> None:
    if up:
        idle.start()
    (tmp_path / "bad_agent.py").write_text("x = 1\nclass A(:\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    bad = idle.cli("agents", "add", str(tmp_path / "bad_agent.py"))
    assert bad.returncode == 5
    assert bad.stderr.startswith("✗ bad_agent.py line 2: ")
    assert idle.cli("agents", "add", str(tmp_path / "picture.png"), "--json").returncode == 5
    assert not idle.agents.exists() or list(idle.agents.iterdir()) == []


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_approving_by_name_or_file_works_and_only_for_yours(idle: RunningDaemon, up: bool) -> None:
    idle.drop("twin_agent.py", agent_source("Twin"))
    if up:
        idle.start()
    for name in ("Twin", "twin_agent.py"):
        told = json.loads(idle.cli("agents", "approve", name, "--json").stdout)["agent"]
        assert told["file"] == "twin_agent.py"
    refused = idle.cli("agents", "approve", "LearnNew")
    assert refused.returncode == 5
    assert refused.stderr.startswith("✗ LearnNew is shipped, not a file of yours\n")


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_faults_are_listed_below_the_table(idle: RunningDaemon, up: bool) -> None:
    idle.drop("broken_agent.py", "x = 1\nclass A(:\n")
    idle.drop("a_agent.py", agent_source("Same"))
    idle.drop("b_agent.py", agent_source("Same"))
    idle.drop("sub_agent.py", "import surely_no_such_module_here\n")
    idle.environment["RAPPD_INSTALL_PACKAGES"] = "off"
    if up:
        idle.start()
    seen = on_terminal(idle, "agents", "list")
    table, _, faults = seen.text.partition("\n\n")
    assert re.search(r"✗  broken_agent\.py +not running", table)
    assert re.search(r"!  Same +not used: b_agent\.py has the name", table)
    assert "✗ broken_agent.py line 2: " in faults
    assert "  → fix and save; it reloads by itself" in faults.split("\n")
    assert "surely_no_such_module_here" in faults
    rows = json.loads(idle.cli("agents", "list", "--json").stdout)["agents"]
    broken = next(row for row in rows if row["file"] == "broken_agent.py")
    assert (broken["quarantined"], broken["line"], broken["name"]) == (True, 2, "")


def test_a_file_whose_earlier_version_serves_is_told_so(idle: RunningDaemon) -> None:
    idle.drop("weather_agent.py", agent_source("Weather"))
    idle.start()
    idle.drop("weather_agent.py", "class A(:\n")
    idle.wait_for(lambda: idle.get("/health").json()["quarantined"])
    seen = on_terminal(idle, "agents", "list")
    assert any(line.startswith("!  Weather ") for line in seen.lines)
    told = r"✗ weather_agent\.py line 1: invalid syntax\. The \d\d:\d\d version works on\."
    assert any(re.fullmatch(told, line) for line in seen.lines)


def test_a_failing_agent_is_an_error_with_its_words_on_stderr(idle: RunningDaemon) -> None:
    idle.drop("sad_agent.py", agent_source("Sad", 'raise ValueError("no \\x1b[2J tea")'))
    idle.start()
    ran = idle.cli("agents", "run", "Sad")
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert "no  tea" in ran.stderr
    assert "\x1b" not in ran.stderr
    error = json.loads(idle.cli("agents", "run", "Sad", "--json").stderr)
    assert error["code"] == "agent"
    thread = error["do"].split()[-1]
    assert "Sad" in idle.cli("threads", "show", thread).stdout


def test_agents_answer_is_recorded_before_it_is_shown(idle: RunningDaemon) -> None:
    idle.drop("glad_agent.py", agent_source("Glad"))
    idle.start()
    for _ in range(20):
        thread = idle.post("/agents/run", {"agent": "Glad", "args": {}}, control=True).json()["thread"]
        with Reader(idle.home / "rappd.db") as record:
            assert [event.verb for event in record.events_of(thread)] == ["HELP", "DONE"]


def test_arguments_are_numbers_texts_and_lists(idle: RunningDaemon) -> None:
    idle.drop(
        "echo_agent.py",
        agent_source(
            "Echo", "return repr(sorted((k, v) for k, v in kwargs.items() if k in ('a', 'b', 'c', 'd')))"
        ),
    )
    idle.start()
    ran = idle.cli("agents", "run", "Echo", "a=1", "b=word", "c=[1, 2]", "d=x=y")
    assert ran.stdout == "[('a', 1), ('b', 'word'), ('c', [1, 2]), ('d', 'x=y')]\n"


def test_hostile_names_make_a_plain_file_inside_or_are_refused(idle: RunningDaemon) -> None:
    files = []
    for name in HOSTILE:
        made = idle.cli("agents", "new", "--json", "--", name)
        if made.returncode:
            assert made.returncode == 2
            assert json.loads(made.stderr)["code"] == "mistyped"
        else:
            files.append(json.loads(made.stdout)["agent"]["file"])
    written = [path.relative_to(idle.home.parent) for path in idle.home.parent.rglob("*_agent.py")]
    assert {path.name for path in written} == set(files)
    assert {path.parent for path in written} == {Path("idle/brainstem/agents")}
    assert all(file.isascii() and len(file) < 80 for file in files)
    rows = json.loads(idle.cli("agents", "list", "--json").stdout)["agents"]
    yours = [row for row in rows if row["origin"] == "yours"]
    assert {row["file"] for row in yours} == set(files)
    assert not any(row["reason"] for row in yours), "each of them works"


@pytest.mark.parametrize("name", ["None", "7 wonders", "listener", "Dataclass", "Str", 'a"""b', "basic"])
def test_new_listener_of_an_odd_name_is_one_that_serves(name: str, tmp_path: Path) -> None:
    file, source = scaffold(name, 'It\'s "so" \\ {text}', listener=True)
    assert re.fullmatch(r"[a-z][a-z0-9_]*_listener\.py", file)
    path = tmp_path / file
    path.write_text(source)
    found = contract_tests.run(path, tmp_path)
    assert found["passed"], found


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_words_leave_valid_python(name: str, description: str) -> None:
    try:
        file, source = scaffold(name, description)
        listener = scaffold(name, description, listener=True)[1]
    except AgentError as problem:
        assert problem.code == "mistyped"
        return
    shape = [type(node) for node in ast.parse(listener).body]
    assert shape == [ast.Expr, ast.ImportFrom, ast.ImportFrom, ast.ClassDef, ast.FunctionDef]
    module = ast.parse(source)
    assert [type(node) for node in module.body] == [ast.Expr, ast.Try, ast.ClassDef]
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    assert len(calls) == 3, "super(), its __init__, kwargs.get"
    assert file.endswith("_agent.py")
    assert file != "basic_agent.py"


def test_removing_asks_nothing_and_needs_no_terminal(idle: RunningDaemon) -> None:
    idle.drop("weather_agent.py", agent_source("Weather"))
    assert idle.cli("agents", "remove", "weather").returncode == 0
    assert idle.cli("agents", "remove", "weather").returncode == 4


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_foreign_file_name_is_not_found(idle: RunningDaemon, up: bool) -> None:
    idle.drop("weather_agent.py", agent_source("Weather"))
    beside = idle.home / "brainstem" / "beside_agent.py"
    beside.write_text(agent_source("Beside"))
    if up:
        idle.start()
    for verb in ("remove", "approve"):
        for name in ("a" * 5000, "../beside_agent.py", "../beside", str(beside)):
            done = idle.cli("agents", verb, "--json", "--", name)
            assert done.returncode == 4, done
            assert json.loads(done.stderr)["code"] == "not_found"
    assert beside.is_file()
    if up:
        assert idle.cli("rapps", "install", "--", f"{'a' * 5000}.zip").returncode == 4


def test_what_lies_deeper_in_the_folder_is_found_by_its_path(idle: RunningDaemon) -> None:
    idle.drop("weather_agent.py", agent_source("Weather"))
    kitchen = idle.agents / "kitchen"
    kitchen.mkdir()
    (kitchen / "tea_agent.py").write_text(agent_source("Tea"))
    (kitchen / "notes.py").write_text("no agent\n")
    for name in ("kitchen/tea", "kitchen/notes.py"):
        done = idle.cli("agents", "remove", name)
        assert done.returncode == 0, done
    assert list(kitchen.glob("*.py")) == []


@pytest.mark.parametrize("up", [True, False], ids=["daemon up", "daemon down"])
def test_long_work_shows_a_line_on_a_terminal_only(idle: RunningDaemon, up: bool) -> None:
    if up:
        idle.start()
        idle.drop("slow_agent.py", agent_source("Slow", 'import time; time.sleep(4); return "done"'))
        idle.wait_for(lambda: "Slow" in idle.agent_names())
        verb, words, last = ("agents", "run", "Slow"), "Slow…", "done"
    else:
        idle.drop("slow_agent.py", "import time\ntime.sleep(4)\n" + agent_source("Slow"))
        verb, words, last = ("agents", "list"), "Reading agent files…", "yours"
    seen = on_terminal(idle, *verb)
    assert words in seen.raw
    assert words not in seen.text, "and it is gone in the end"
    assert seen.lines[-1].endswith(last)
    assert idle.cli(*verb).stderr == ""


def test_one_fault_of_a_file_is_one_cross(idle: RunningDaemon, tmp_path: Path) -> None:
    faulty = tmp_path / "faulty_agent.py"
    faulty.write_text("class Faulty(\n")
    lines = idle.cli("agents", "test", faulty).stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("✗")] == ["has_basic_agent"]
    assert [line.split()[1] for line in lines if line.startswith("–")] == [
        "manifest_fields", "name_format", "instantiation", "runtime_name_is_tool_safe", "perform_returns_str",
        "standalone_execution", "has_docstring",
    ]  # fmt: skip
