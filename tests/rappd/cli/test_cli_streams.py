"""Odd streams and words: closed ones, full ones, and what is no text."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rappd.cli import app

RAPPD = str(Path(sys.executable).parent / "rappd")


def shell(line: str, home: Path, *words: str | bytes) -> subprocess.CompletedProcess[str]:
    """Runs a line of shell with ``rappd`` as ``$0`` and the words as ``$1`` and so on."""
    return subprocess.run(
        ["sh", "-c", line, RAPPD, *words],
        env={**os.environ, "RAPP_HOME": os.fspath(home), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
@pytest.mark.parametrize(("verb", "code"), [("config show", 0), ("config show nosuch", 4)])
def test_a_closed_stream_is_no_traceback(tmp_path: Path, closed: str, verb: str, code: int) -> None:
    done = shell(f'"$0" {verb} {closed}', tmp_path / "home")
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_nothing_is_written_into_a_file_in_the_place_of_a_closed_stdout(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert shell('"$0" config set provider.model m1 >&- 2>&-', home).returncode == 0
    assert (home / "rappd.toml").read_text() == '[provider]\nmodel = "m1"\n'


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("verb", ["config show", "config show --json", "help"])
def test_a_full_device_as_stdout_is_named(tmp_path: Path, verb: str) -> None:
    done = shell(f'"$0" {verb} >/dev/full', tmp_path / "home")
    assert done.returncode == 1
    assert "The output could not be written: No space left on device" in done.stderr
    assert "doctor" not in done.stderr and "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("words", ["config show nosuch", "config show nosuch --json"])
def test_a_full_stderr_changes_no_exit_code(tmp_path: Path, words: str) -> None:
    assert shell(f'"$0" {words} 2>/dev/full', tmp_path / "home").returncode == 4


@pytest.mark.parametrize(
    "words",
    [
        "config show",
        "config show --json",
        "egg",  # the help of a group
        "egg --help",
        "--version",
        "twins list",
        "agents list --json",
        "doctor",
    ],
)
def test_reader_that_has_seen_enough_is_no_error(tmp_path: Path, words: str) -> None:
    done = shell(f'("$0" {words}; echo $? >&3) 3>"$1" | true', tmp_path / "home", str(tmp_path / "code"))
    assert (done.stdout, done.stderr, (tmp_path / "code").read_text()) == ("", "", "0\n")


@pytest.mark.parametrize("verb", ["chat", "egg verify", "config set name"])
def test_words_that_are_not_utf8_are_told_as_such(tmp_path: Path, verb: str) -> None:
    done = shell(f'"$0" {verb} "$1"', tmp_path / "home", b"caf\xe9.egg")
    assert done.returncode == 2
    assert done.stderr.startswith('✗ "caf\\xe9.egg" is not UTF-8 text')


def test_words_in_utf8_are_taken_whatever_the_locale(tmp_path: Path) -> None:
    line = 'PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 LC_ALL=POSIX "$0" config show "$1"'
    done = shell(line, tmp_path / "home", "caf\u00e9".encode())
    assert (done.returncode, done.stderr.splitlines()[0]) == (4, 'x No setting "caf?"')


@pytest.mark.parametrize("verb", ["config set name", "call pi"])
@pytest.mark.parametrize("locale", ["C.UTF-8", "en_US.UTF-8", "POSIX"])
def test_an_answer_on_stdin_that_is_not_utf8_is_told_as_such(tmp_path: Path, verb: str, locale: str) -> None:
    line = f"printf 'caf\\351\\n' | PYTHONUTF8=0 LC_ALL={locale} \"$0\" {verb}"
    done = shell(line, tmp_path / "home")
    assert done.returncode == 2
    assert done.stderr.lstrip("✗x ").startswith("What came in on standard input is not UTF-8 text")


@pytest.mark.parametrize("locale", ["C.UTF-8", "POSIX"])
def test_text_on_stdin_is_taken_whatever_the_locale(tmp_path: Path, locale: str) -> None:
    line = f"printf 'caf\\303\\251\\n' | PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 LC_ALL={locale} \"$0\" config set name"
    done = shell(line, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert 'name = "caf\u00e9"' in (tmp_path / "home" / "rappd.toml").read_text()


@pytest.mark.parametrize(
    ("number", "words", "what", "do"),
    [
        (errno.ENOSPC, "egg list", "/disk/x: The disk is full.", "make room, then run it again"),
        (errno.EDQUOT, "doctor", "/disk/x: The disk is full.", "make room, then run it again"),
        (errno.EMFILE, "egg list", "/disk/x: Too many open files", "ulimit -n 1024, then again"),
        (errno.ENFILE, "doctor", "/disk/x: Too many open files", "ulimit -n 1024, then again"),
        (errno.EACCES, "egg list", "/disk/x: Permission denied", "rappd doctor"),
        (errno.EACCES, "doctor", "/disk/x: Permission denied", "look at its owner and rights"),
    ],
)
def test_failure_of_the_disk_is_told_with_what_helps(
    number: int, words: str, what: str, do: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "/disk/x")

    monkeypatch.setattr(app.rappd, "invoke", fails)
    assert app.run([*words.split(), "--json"]) == 1
    told = json.loads(capsys.readouterr().err)
    assert (told["error"].startswith(what), told["do"]) == (True, do), told


@pytest.mark.parametrize("verb", ["start", "start --detach", "doctor"])
def test_a_home_whose_path_is_not_utf8_is_refused_in_a_line(tmp_path: Path, verb: str) -> None:
    home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xf6se"))
    done = shell(f'"$0" {verb}', home)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "r\\xf6se has a name that is not UTF-8" in said and "rename it" in said
    assert not home.exists()
