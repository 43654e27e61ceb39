"""``rappd call`` from one real machine to another: what it shows, what it ends with, what it sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import Terminal, on_terminal

from rappd.cli.printer import JsonPrinter
from rappd.features.calls.cli import call_many

Both = tuple[Machine, Machine]

ECHO = "return ', '.join(f'{key}={value}' for key, value in sorted(kwargs.items()))"
TEXT = '{"zone": {"type": "string"}, "count": {"type": "integer"}}'


def wants(source: str, *names: str) -> str:
    return source.replace('"required": []', f'"required": {json.dumps(names)}')


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Desk and pi, which trust each other; pi has agents and a twin."""
    folder = tmp_path_factory.mktemp("two")
    desk, pi = (
        Machine(folder / "desk", "desk", LLM_FAKE="1"),
        Machine(folder / "pi", "pi", LLM_FAKE="1", RAPPD_AGENT_TIMEOUT="300"),
    )
    pi.drop("clock_agent.py", wants(agent_source("Clock", ECHO, properties=TEXT), "zone", "count"))
    pi.drop("loose_agent.py", agent_source("Loose", ECHO, properties=TEXT))
    waits = (
        'import os, time\n        while not os.path.exists(".brainstem_data/go"): time.sleep(0.02)\n        '
    )
    pi.drop("slow_agent.py", agent_source("Slow", f'{waits}return "at last"'))
    pi.drop("broken_agent.py", agent_source("Broken", 'raise RuntimeError("the sensor is loose")'))
    pi.drop("dry_agent.py", agent_source("Dry", 'return {"status": "error", "message": "no water"}'))
    pi.drop("table_agent.py", agent_source("Table", 'return "a\\x1b[2Jb\\nc"'))
    desk.start()
    pi.start()
    assert pi.cli("twins", "new", "Gardener").returncode == 0
    acquaint(desk, pi)
    yield desk, pi
    desk.stop()
    pi.stop()


def called(daemon: RunningDaemon, *arguments: str, exits: int = 0) -> Any:
    """The call's object."""
    done = daemon.cli("call", *arguments, "--json")
    assert done.returncode == exits, done.stdout + done.stderr
    return json.loads(done.stdout)["call"]


def error(daemon: RunningDaemon, *arguments: str, exits: int) -> dict[str, Any]:
    done = daemon.cli("call", *arguments, "--json")
    assert done.returncode == exits, done.stdout + done.stderr
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    found: dict[str, Any] = json.loads(line)
    assert found.keys() >= {"error", "do", "code"}
    return found


def test_an_answer_comes_with_where_and_how_long(both: Both) -> None:
    desk = both[0]
    seen = on_terminal(desk, "call", "pi", "how", "are you?")
    assert seen.code == 0
    answer, detail = seen.lines
    assert answer == "fake-llm: how are you?"
    assert re.fullmatch(r"  done on pi in [\d.]+ m?s, thread [0-9a-f]{4}", detail)
    shown = desk.cli("threads", "show", detail.split()[-1])
    assert "how are you?" in shown.stdout, "the thread is there under these characters"
    piped = desk.cli("call", "pi", "again")
    assert piped.stdout == "fake-llm: again\n", "stdout is the answer and nothing else"
    assert desk.cli("call", "pi", stdin="from a pipe\n").stdout == "fake-llm: from a pipe\n"


def test_the_object_has_everything(both: Both) -> None:
    row = called(both[0], "pi", "hello")
    assert (row["peer"], row["state"], row["result"]) == ("pi", "done", "fake-llm: hello")
    assert row["seconds"] >= 0
    assert {"id", "thread", "data"} <= set(row)


def test_text_fills_the_one_required_text_of_an_agent(both: Both) -> None:
    desk = both[0]
    assert called(desk, "pi:Clock", "UTC")["result"] == "zone=UTC"
    assert called(desk, "pi:clOCK", "UTC", "+1")["result"] == "zone=UTC +1", "in whatever case it is typed"
    assert called(desk, "pi:clock", "UTC", "--args", '{"count": 2}')["result"] == "count=2, zone=UTC"
    given = called(desk, "pi:clock", "UTC", "--args", '{"zone": "CET"}')
    assert given["result"] == "zone=CET", "what was said by name is not overwritten"
    assert called(desk, "pi:Loose", "UTC")["result"] == "query=UTC, user_input=UTC"
    assert called(desk, "pi:loose", "--args", '{"count": 3}')["result"] == "count=3"
    assert called(desk, "pi:loose")["result"] == ""


def test_a_twin_of_the_other_machine_answers(both: Both) -> None:
    desk, pi = both
    assert called(desk, "pi/Gardener", "hello")["state"] == "done"
    [talked] = json.loads(pi.cli("twins", "list", "--json").stdout)["twins"]
    assert talked["last_talk"] is not None
    assert error(desk, "pi/nobody", "hello", exits=4)["error"] == 'No twin "nobody" here.'


def test_foreign_words_do_not_steer_the_terminal(both: Both) -> None:
    seen = on_terminal(both[0], "call", "pi:Table")
    assert "\x1b[2J" not in seen.raw
    assert seen.lines[:2] == ["a[2Jb", "c"] or seen.lines[:2] == ["ab", "c"]


def test_what_is_not_shared_is_refused_and_what_to_do(both: Both) -> None:
    desk, pi = both
    assert pi.cli("peers", "scopes", "desk", "HELP.brainstem.Clock").returncode == 0
    try:
        seen = on_terminal(desk, "call", "pi", "hello")
        assert seen.code == 5
        assert seen.lines == [
            "✗ pi refused this call", "  → its owner can allow it: rappd peers show desk",
        ]  # fmt: skip
        refused = error(desk, "pi", "hello", exits=5)
        assert (refused["error"], refused["peer"]) == ("pi refused this call.", "pi")
        assert pi.cli("peers", "show", "desk").returncode == 0, "what it says to type there"
    finally:
        assert pi.cli("peers", "scopes", "desk", "mine").returncode == 0


def test_what_is_not_there(both: Both) -> None:
    desk = both[0]
    nobody = on_terminal(desk, "call", "pie", "hello")
    assert (nobody.code, nobody.lines) == (4, ['✗ No peer "pie"', "  → did you mean pi?"])
    near = on_terminal(desk, "call", "pi:Clok", "UTC")
    assert near.code == 4
    assert near.lines == [
        '✗ pi has no agent "Clok" for this machine',
        "  → did you mean rappd call pi:Clock?",
    ]
    assert error(desk, "pi:Unheard", exits=4)["code"] == "no_agent"


def test_agent_that_answers_with_an_error_ends_with_one(both: Both) -> None:
    desk = both[0]
    shown = desk.cli("call", "pi:Dry")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith("✗ no water\n  → ")
    failed = error(desk, "pi:Dry", exits=1)
    assert (failed["error"], failed["code"]) == ("no water", "agent")
    assert failed["call"]["state"] == "done"


@pytest.mark.parametrize(
    ("which", "states", "exits"),
    [
        ("all", ["done", "done"], 0),
        ("all", ["done", "failed"], 7),
        ("all", ["done", "late"], 7),
        ("first", ["failed", "done", "stopped"], 0),
        ("first", ["failed", "late"], 1),
        ("all", ["failed", "failed"], 1),
        ("all", ["away", "late"], 8),
    ],
)
def test_calls_to_several_end_with_the_code_of_what_came(
    monkeypatch: pytest.MonkeyPatch, which: str, states: list[str], exits: int
) -> None:
    calls = [{"peer": str(at), "state": state, "seconds": 0.1} for at, state in enumerate(states)]
    winner = str(states.index("done")) if "done" in states else None
    answers = SimpleNamespace(do=lambda *_, **__: {"calls": calls, "winner": winner})
    monkeypatch.setattr("rappd.features.calls.cli.ControlClient", lambda *_, **__: answers)
    assert call_many(which, "all", {"wait": 1}, JsonPrinter()) == exits


def test_shell_completes_peers(both: Both) -> None:
    asked = {"_RAPPD_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    for words, cword in (("rappd call p", "2"), ("rappd peers show p", "3")):
        done = both[0].cli(**{**asked, "COMP_WORDS": words, "COMP_CWORD": cword})
        assert done.stdout == "plain,pi\n"


def test_what_fails_there_is_told_and_ends_with_one(both: Both) -> None:
    desk = both[0]
    seen = on_terminal(desk, "call", "pi:Broken")
    assert seen.code == 1
    assert "the sensor is loose" in seen.text
    assert seen.lines[0].startswith("✗ ")
    failed = error(desk, "pi:Broken", exits=1)
    assert "the sensor is loose" in failed["error"]
    assert failed["thread"]


def test_slow_call_is_accepted_and_answered_later(both: Both) -> None:
    desk, pi = both
    seen = on_terminal(desk, "call", "pi:Slow", "--wait", "4")
    assert seen.code == 8
    assert seen.lines[0] == "! Accepted: pi works on it still. The answer comes by itself."
    thread = seen.lines[1].split()[-1]
    assert seen.lines[1] == f"  → rappd threads show {thread}"
    row = called(desk, "pi:Slow", "--wait", "4", exits=8)
    assert row["state"] == "accepted"
    (pi.data / "go").touch()
    desk.wait_for(
        lambda: "at last" in desk.cli("threads", "show", row["thread"]).stdout, what="the answer to come"
    )
    desk.wait_for(lambda: "at last" in desk.cli("threads", "show", thread).stdout, what="the first answer")


MISTAKES = [
    (("pi", ""), "There is nothing to ask."),
    (("pi:Clock", "--args", "[1]"), "--args is no JSON object."),
    (("pi:Clock", "--args", "{zone"), "--args is no JSON: "),
    (("pi", "--args", "{}"), "--args are for one agent."),
    (("pi", "x", "--wait", "0"), "Invalid value for '--wait'"),
    ((), "Missing argument 'PEER[/TWIN][:AGENT]'"),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"), MISTAKES, ids=lambda it: it if isinstance(it, str) else ""
)
def test_mistakes_are_told(both: Both, arguments: tuple[str, ...], sentence: str) -> None:
    found = error(both[0], *arguments, exits=2)
    assert found["error"].startswith(sentence)
    assert found["do"]


def test_nothing_goes_over_plain_http_without_a_yes(both: Both) -> None:
    desk, pi = both
    assert desk.cli("peers", "add", f"http://127.0.0.1:{pi.port}").returncode == 0
    try:
        refused = error(desk, "127.0.0.1", "hello", exits=6)
        assert refused["error"].startswith("127.0.0.1 speaks plain http")
        asked = Terminal(desk, "call", "127.0.0.1", "hello")
        asked.read_until(lambda seen: "Send? [y/N]" in seen.words)
        asked.type("n\n")
        ended = asked.to_end()
        assert (ended.code, ended.lines[-1]) == (6, "Nothing was sent.")
        before = len(json.loads(pi.cli("threads", "list", "--json").stdout)["threads"])
        done = desk.cli("call", f"http://127.0.0.1:{pi.port}", "hello", "--yes")
        assert done.stdout == "fake-llm: hello\n", done.stderr
        after = len(json.loads(pi.cli("threads", "list", "--json").stdout)["threads"])
        assert after == before + 1
    finally:
        desk.cli("peers", "forget", f"http://127.0.0.1:{pi.port}")


def test_without_a_daemon_it_says_so(both: Both, make_daemon: Any) -> None:
    down = make_daemon("down", RAPPD_PEERS_PORT=str(free_port()))
    assert error(down, "pi", "hello", exits=3)["code"] == "not_running"
