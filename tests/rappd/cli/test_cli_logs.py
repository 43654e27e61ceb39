"""The log: its end, following it, what is masked, what an attached terminal is told."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import Terminal
from hypothesis import given, settings
from hypothesis import strategies as st

from rappd.daemon import log

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=40), max_size=30)


@settings(deadline=None)
@given(LINES, st.integers(0, 40), st.integers(1, 50), st.booleans())
def test_the_end_of_a_file_is_its_last_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], wanted: int, block: int, finished: bool
) -> None:
    path = tmp_path_factory.mktemp("log") / "x.log"
    text = "\n".join(lines) + ("\n" if finished and lines else "")
    path.write_text(text, newline="")
    expected = text.removesuffix("\n").split("\n") if text else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "_BLOCK", block)
        assert log.tail(path, wanted) == (expected[-wanted:] if wanted else [])


def test_no_log_is_no_lines(tmp_path: Path) -> None:
    assert log.tail(tmp_path / "none", 5) == []


@pytest.fixture
def logging_to(tmp_path: Path) -> Iterator[Path]:
    """A process's logging, sent to a file, as the daemon does it."""
    before = logging.getLogger().handlers[:]
    log.start(tmp_path / "rappd.log")
    yield tmp_path / "rappd.log"
    logging.getLogger().handlers[:] = before


def _written(path: Path, words: str) -> str:
    for _ in range(1000):
        if path.exists() and words in path.read_text():
            return path.read_text()
        os.sched_yield()
    raise AssertionError(path.read_text())


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_abcdefgh12345678",
        "github_pat_11ABCDEFG0abc",
        "sk-proj-abcdefgh",
        "Bearer abcdefgh.ijkl",
        "gho_abcdefgh1",
    ],
)
def test_secrets_are_masked_in_every_log_line(logging_to: Path, secret: str) -> None:
    logging.getLogger("worker").info("the key is %s, said the agent", secret)
    try:
        raise ValueError(secret)
    except ValueError:
        logging.getLogger("x").exception("failed")
    logging.getLogger("x").info("the end")
    text = _written(logging_to, "the end")
    assert secret not in text
    assert text.count("[secret]") >= 2
    assert "said the agent" in text


def test_the_operators_link_is_masked(logging_to: Path) -> None:
    logging.getLogger("x").info("at http://127.0.0.1:7071/#k=abcdefgh12345678 now")
    assert "#k=[secret] now" in _written(logging_to, " now")


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x85", "\u2028", "\x1b[2K\x1b[G"])
def test_nobody_writes_lines_of_others(logging_to: Path, end: str) -> None:
    logging.getLogger("worker").info(f"one{end}2026-01-01 00:00:00 WARNING security: all is well")
    text = _written(logging_to, "all is well")
    assert "\x1b" not in text and "\r" not in text and "one" in text
    assert len([line for line in text.splitlines() if not line.startswith("    ")]) == 1


def test_the_log_is_private_after_rotation_too(logging_to: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        for _ in range(3):
            logging.getLogger("x").info("x" * (log.MAX_BYTES // 2))
        logging.getLogger("x").info("the end")
        _written(logging_to, "the end")
    finally:
        os.umask(before)
    files = sorted(logging_to.parent.glob("rappd.log*"))
    assert len(files) > 1
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.timeout(1200)
def test_logs_shows_the_end_and_follows_across_rotation(talked: RunningDaemon) -> None:
    path = talked.home / "rappd.log"
    path.write_text("".join(f"line {number}\n" for number in range(100)))
    assert talked.cli("logs", "-n", "2").stdout == "line 98\nline 99\n"
    assert talked.cli("logs", "-n", "0").stdout == ""
    assert json.loads(talked.cli("logs", "-n", "1", "--json").stdout) == {"log": ["line 99"]}
    terminal = Terminal(talked, "logs", "-f", "-n", "1")
    terminal.read_until(lambda seen: "line 99" in seen.words, 100)
    with path.open("a") as file:
        file.write("half")
        file.flush()
        file.write(" a line\n")
    terminal.read_until(lambda seen: "half a line" in seen.words, 100)
    path.rename(path.with_suffix(".log.1"))
    path.write_text("anew\n")
    terminal.read_until(lambda seen: "anew" in seen.text, 100)
    path.write_text("cut\n")  # shorter than before: begun anew in place
    seen = terminal.read_until(lambda seen: "cut" in seen.text, 100)
    assert seen.lines == ["line 99", "half a line", "anew", "cut"]
    terminal.send(signal.SIGINT)
    assert terminal.to_end().code == 130


def test_lines_before_a_rotation_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("first\n")
    following = log.follow(path, 1)
    assert next(following) == "first"
    with path.open("a") as file:
        file.write("last\n")
    path.rename(tmp_path / "x.log.1")
    path.write_text("anew\n")
    assert [next(following), next(following)] == ["last", "anew"]


def test_following_begins_before_there_is_a_log(idle: RunningDaemon) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rappd", "logs", "-f", "--json"],
        env=idle.environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    idle.start()
    assert process.stdout is not None
    assert any("ContextMemory is ready" in json.loads(line)["line"] for line in process.stdout)
    process.send_signal(signal.SIGINT)
    assert process.wait(100) == 130
    process.stdout.close()


def test_agent_output_is_logged_without_control_characters(idle: RunningDaemon) -> None:
    idle.drop("loud_agent.py", agent_source("Loud", 'print("\\x1b[2Jhello from within"); return "done"'))
    idle.start()
    assert idle.cli("agents", "run", "Loud").returncode == 0
    idle.wait_for_log("hello from within")
    shown = idle.cli("logs")
    assert "hello from within" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_an_empty_log_says_so(idle: RunningDaemon) -> None:
    done = idle.cli("logs")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "The log is empty.\n")
