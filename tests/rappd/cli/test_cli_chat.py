"""Talking from the command line: one sentence, a pipe, and a conversation on a real terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import BIN, on_terminal

from rappd.features.conversations.turn_renderer import TurnRenderer

SLOW = 'import time; print("slow has begun", flush=True); time.sleep(600); return "done"'


TIME = r"(?:\d+ ms|[\d.]+ s)"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon without a model: keyword matching picks the agent that the words name."""
    daemon = RunningDaemon(tmp_path_factory.mktemp("desk") / "home", RAPPD_NAME="desk")
    daemon.drop("slowpoke_agent.py", agent_source("Slowpoke", SLOW, description="Takes its time."))
    daemon.drop(
        "kettle_agent.py",
        agent_source("Kettle", 'return "The kettle **boils**."', description="Boils water."),
    )
    daemon.home.chmod(0o700)
    daemon.start()
    yield daemon
    daemon.stop()


def test_one_sentence_is_answered_with_call_on_stderr(desk: RunningDaemon) -> None:
    done = desk.cli("chat", "kettle", "please")
    assert done.returncode == 0
    assert done.stdout == "(no model) The kettle **boils**.\n"
    assert re.fullmatch(rf"Kettle +{TIME}\n{TIME}\n", done.stderr)
    piped = desk.cli("chat", stdin="kettle please\n")
    assert piped.stdout == done.stdout


def test_json_is_the_whole_answer(desk: RunningDaemon) -> None:
    done = desk.cli("chat", "kettle please", "--json", "--session", "abc", "--user", str(uuid.UUID(int=7)))
    answer = json.loads(done.stdout)["chat"]
    assert answer["response"] == answer["assistant_response"] == "(no model) The kettle **boils**."
    assert answer["session_id"] == "abc"
    assert answer["agent_logs"] == "[Kettle] The kettle **boils**."
    assert done.stderr == ""


def test_nothing_to_say_is_a_mistake_not_a_question(desk: RunningDaemon) -> None:
    for arguments in (("chat",), ("chat", "  "), ("chat", "--json")):
        done = desk.cli(*arguments, stdin="\n")
        assert done.returncode == 2
        assert "TEXT is missing." in done.stderr or done.stderr.startswith("✗ TEXT is missing\n")


def test_a_refused_turn_is_an_error_in_the_one_shape(desk: RunningDaemon) -> None:
    too_long = "word " * (4 << 20)
    human = desk.cli("chat", stdin=too_long)
    assert human.returncode == 1
    assert human.stdout == ""
    assert human.stderr.startswith("✗ The request is too large\n  → ")
    machine = desk.cli("chat", "--json", stdin=too_long)
    assert json.loads(machine.stderr)["code"] == "too_large"
    assert machine.stdout == ""


def test_on_a_terminal_markdown_is_shown_not_spelled(desk: RunningDaemon) -> None:
    seen = on_terminal(desk, "chat", "kettle please")
    assert seen.lines[-2] == "(no model) The kettle boils."
    assert re.fullmatch(rf"{TIME}", seen.lines[-1])
    assert "\x1b[1m" in seen.raw
    assert re.match(r"Kettle {50,}\d+ ms$|Kettle {50,}[\d.]+ s$", seen.lines[0])
    assert len(seen.lines[0]) == 74


class Tmux:
    """``rappd chat`` inside tmux, as a person has it."""

    def __init__(self, daemon: RunningDaemon, folder: Path, columns: int) -> None:
        self._socket = str(folder / "tmux")
        environment = {**daemon.environment, "PATH": f"{BIN}:{daemon.environment['PATH']}", "LANG": "C.UTF-8"}
        words = " ".join(f"{name}={shlex.quote(text)}" for name, text in environment.items())
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", "40",
                   f"env -i TERM=screen {words} sh -c 'trap : INT; rappd chat; echo left=$?; sleep 600'")  # fmt: skip

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def key(self, name: str) -> bool:
        """Presses a key; False, so that a condition can press it anew while it waits."""
        self._tmux("send-keys", name)
        return False

    @property
    def screen(self) -> list[str]:
        return self._tmux("capture-pane", "-p").rstrip("\n").split("\n")

    def until(self, condition: Callable[[list[str]], bool], seconds: float = 100) -> list[str]:
        until = time.monotonic() + seconds
        while not condition(self.screen):
            if time.monotonic() > until:
                raise AssertionError("\n".join(self.screen))
            time.sleep(0.05)
        return self.screen

    def ready(self) -> list[str]:
        """Waits for the prompt at the end."""
        return self.until(lambda screen: screen[-1].rstrip() == "you")

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def tmux(desk: RunningDaemon, tmp_path: Path) -> Iterator[Callable[[int], Tmux]]:
    if shutil.which("tmux") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("tmux is missing here; a conversation is only tested in it")
        pytest.skip("tmux is not installed: a conversation needs a real terminal")
    opened: list[Tmux] = []

    def open_(columns: int) -> Tmux:
        opened.append(Tmux(desk, tmp_path, columns))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def test_a_conversation_looks_as_designed(tmux: Callable[[int], Tmux]) -> None:
    talk = tmux(80)
    screen = talk.ready()
    assert screen[0] == "desk, no model, 17 agents" + " " * 37 + "/help  /exit"
    talk.type("kettle please")
    talk.until(lambda screen: any("boils" in line for line in screen))
    screen = talk.ready()
    assert screen[1] == "you   kettle please"
    assert re.fullmatch(r"      Kettle +(\d+ ms|[\d.]+ s)", screen[2])
    assert len(screen[2]) == 74
    assert screen[3] == "desk  (no model) The kettle boils."
    assert re.fullmatch(rf"      {TIME}", screen[4])
    talk.type("write me a poem about the sea and the harbour")
    talk.until(lambda screen: any("None of my agents" in line for line in screen))
    screen = talk.ready()
    assert all(line.startswith("      ") for line in screen[7:-1]), "long answers are indented below the name"
    talk.type("/help")
    talk.until(lambda screen: any(line.startswith("/exit    leave") for line in screen))
    talk.type("/agents")
    talk.until(lambda screen: "  Kettle" in screen)
    talk.type("/model")
    talk.until(lambda screen: "  no model" in screen)
    talk.type("/model big")
    talk.until(lambda screen: "✗ There is no model to choose from" in screen)
    talk.type("/nothing")
    talk.until(lambda screen: "/nothing is none of these:" in screen)
    talk.type("/exit")
    talk.until(lambda screen: "left=0" in screen)


def test_ctrl_c_stops_the_turn_and_only_the_turn(desk: RunningDaemon, tmux: Callable[[int], Tmux]) -> None:
    talk = tmux(60)
    screen = talk.ready()
    assert screen[0] == "desk, no model, 17 agents                       /help  /exit"
    before = desk.log.count("slow has begun")
    talk.type("slowpoke")
    desk.wait_for(lambda: desk.log.count("slow has begun") > before)
    talk.until(lambda screen: screen[-1].strip() == "Slowpoke")
    talk.key("C-c")
    talk.until(lambda screen: any(re.match(r" {6}Stopped after [\d.]+ (s|ms)\.", line) for line in screen))
    talk.ready()
    talk.type("kettle please")
    talk.until(lambda screen: any("boils" in line for line in screen))
    lines = len(talk.ready())
    talk.until(lambda screen: talk.key("C-c") or (len(screen) > lines and screen[-1].rstrip() == "you"))
    talk.until(lambda screen: talk.key("C-d") or "left=0" in screen)
    assert "Stopped." in _refusals(desk, "slowpoke")


def test_ctrl_c_at_one_sentence_stops_it_in_the_daemon_too(desk: RunningDaemon) -> None:
    import signal
    import sys

    before = desk.log.count("slow has begun")
    process = subprocess.Popen(
        [sys.executable, "-m", "rappd", "chat", "slowpoke now"], env=desk.environment, stderr=subprocess.PIPE
    )
    desk.wait_for(lambda: desk.log.count("slow has begun") > before)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=100)
    assert process.returncode == 130
    assert b"Traceback" not in told
    desk.wait_for(lambda: "Stopped." in _refusals(desk, "slowpoke now"))


def test_daemon_restart_keeps_the_conversation_open(desk: RunningDaemon, tmux: Callable[[int], Tmux]) -> None:
    talk = tmux(80)
    talk.ready()
    desk.stop()
    talk.type("kettle please")
    talk.until(lambda screen: "✗ rappd isn't running here" in screen and "  → rappd start" in screen)
    desk.start()
    talk.ready()
    talk.type("kettle please")
    talk.until(lambda screen: any("boils" in line for line in screen))


def _refusals(daemon: RunningDaemon, words: str) -> list[str]:
    """The refused or stopped turns of the latest conversation that began with these words."""
    rows = daemon.get("/threads", control=True).json()["threads"]
    thread = next((row["id"] for row in rows if row["title"] == words), None)
    if thread is None:  # not written down yet
        return []
    events = daemon.get(f"/threads/{thread}", control=True).json()["events"]
    return [event["data"]["msg"] for event in events if event["verb"] == "ERROR"]


def _said(capsys: pytest.CaptureFixture[str], *events: dict[str, object], label: str = "desk  ") -> str:
    spoken = TurnRenderer(label)
    spoken._live = True  # a terminal, without one
    spoken.begin()
    for event in events[:-1]:
        spoken.event(event)
    spoken.answer(str(events[-1]["response"]))
    spoken.end()
    return capsys.readouterr().out


def test_streamed_answer_is_printed_block_by_block(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "One.\n\n```\na\n\nb\n```\n\nLast."
    deltas = [{"type": "delta", "text": text[at : at + 5]} for at in range(0, len(text), 5)]
    out = _said(capsys, *deltas, {"response": text})
    assert out.startswith("desk  One.\n\n")
    assert out.count("One.") == out.count("Last.") == 1
    assert re.search(r"\n +a *\n *\n +b *\n", out), "a fence is one block"
    assert out.endswith("\n\n      Last.\n")


def test_plan_is_shown_while_it_is_made_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    def plan(*states: str) -> dict[str, object]:
        todos = [{"id": str(n), "text": f"paper {n}", "state": one} for n, one in enumerate(states)]
        return {"type": "work", "work": {"kind": "plan", "by": "clerk", "todos": todos}}

    spoken = TurnRenderer("desk  ")
    for event in (plan("open"), plan("open", "open"), plan("came", "open"), plan("came", "given up")):
        spoken.event(event)
    spoken.answer("Done.")
    spoken.end()
    told = capsys.readouterr().err.split("\n")
    lines = [line.strip() for line in told if "clerk" in line]
    assert lines == [
        "[ ] clerk: paper 0, waited for",
        "[ ] clerk: paper 1, waited for",
        "[x] clerk: paper 0, came",
        "[-] clerk: paper 1, given up",
    ]


def test_words_before_a_call_and_the_answer_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    out = _said(
        capsys,
        {"type": "delta", "text": "Let me look."},
        {"type": "call", "call": "c1", "name": "Kettle", "args": {}},
        {"type": "result", "call": "c1", "name": "Kettle", "ok": True, "seconds": 0.1},
        {"type": "delta", "text": "It boils."},
        {"response": "It boils."},
    )
    assert out == "desk  Let me look.\ndesk  It boils.\n"


def test_an_answer_other_than_what_streamed_is_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(capsys, {"type": "delta", "text": "half a"}, {"response": "Something else."}).endswith(
        "desk  Something else.\n"
    )
    assert (
        _said(capsys, {"type": "delta", "text": "half"}, {"response": "half and more."})
        == "desk  half and more.\n"
    )


def test_a_model_that_does_not_answer_is_told_with_the_answer(idle: RunningDaemon) -> None:
    del idle.environment["LLM_FAKE"]
    idle.environment["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"
    idle.start()
    done = idle.cli("chat", "what can you do?")
    assert done.returncode == 0
    assert done.stdout.startswith("(no model) ")
    assert done.stderr.startswith("! local model doesn't answer; replied without it — ")
    assert "doesn't answer" in idle.cli("status").stdout
    assert json.loads(idle.cli("status", "--json").stdout)["status"]["state"] == "doesn't answer"


@pytest.mark.parametrize(("names", "told"), [([], True), (["Weather"], False), (None, False)])
def test_an_answer_of_the_model_alone_says_so(
    capsys: pytest.CaptureFixture[str], names: list[str] | None, told: bool
) -> None:
    spoken = TurnRenderer("desk  ")
    spoken.answer("Hello.")
    spoken.answered({"type": "done", "agents_used": names})
    assert ("no agent was used" in capsys.readouterr().err) is told
