"""Programs are found where workers cannot write, and run with an environment made from nothing."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.ordinary_account import NOBODY

from agents.programs import programs
from agents.programs.programs import ProgramNotFoundError


@pytest.fixture(autouse=True)
def nothing_found_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_found", {})


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that only root writes, as a system's folders are; the only one that is searched."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make a folder like the system's")
    with tempfile.TemporaryDirectory(dir="/opt", prefix="programs-") as name:
        Path(name).chmod(0o755)
        monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (f"{name}/bin",))
        Path(name, "bin").mkdir()
        yield Path(name, "bin")


def make(path: Path, script: str = "exit 0") -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_find_takes_the_systems_program_once(folder: Path) -> None:
    make(folder / "tool")
    assert programs.find("tool") == str(folder / "tool")
    (folder / "tool").unlink()
    assert programs.find("tool") == str(folder / "tool"), "remembered"
    assert programs.find("other") is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda folder: (folder / "tool").chmod(0o777), "others may write it"),
        (lambda folder: (folder / "tool").chmod(0o775), "its group may write it"),
        (lambda folder: os.chown(folder / "tool", NOBODY, NOBODY), "another account owns it"),
        (lambda folder: folder.chmod(0o777), "others may write its folder"),
        (lambda folder: folder.parent.chmod(0o777), "others may write the folder above"),
        (lambda folder: os.chown(folder.parent, NOBODY, NOBODY), "another account owns the folder above"),
        (lambda folder: (folder / "tool").chmod(0o644), "it is no program"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_find_refuses_what_agents_could_replace(folder: Path, change, why: str) -> None:
    make(folder / "tool")
    assert programs.find("tool"), "the positive control"
    programs._found.clear()
    change(folder)
    assert programs.find("tool") is None, why


def test_find_follows_links_to_safe_places_only(folder: Path, tmp_path: Path) -> None:
    make(folder / "real")
    (folder / "link").symlink_to("real")
    assert programs.find("link") == str(folder / "link")
    (folder / "astray").symlink_to(make(tmp_path / "planted"))
    assert programs.find("astray") is None
    (folder.parent / "by_folder").symlink_to(tmp_path)
    (folder / "twice").symlink_to(folder.parent / "by_folder" / "planted")
    assert programs.find("twice") is None
    (folder / "loop").symlink_to("loop")
    assert programs.find("loop") is None


def test_find_refuses_homes_and_temporary_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(folder / "tool")
    for name in ("RAPP_HOME", "HOME"):
        with monkeypatch.context() as inside:
            inside.setenv(name, str(folder.parent))
            inside.setattr(programs, "SYSTEM_FOLDERS", (str(folder), "/usr/bin"))
            inside.setattr(programs, "_found", {})
            # a home that holds a searched folder hides nothing else of the system
            inside.setattr(programs, "writable_folders", lambda: [str(folder.parent)])
            assert programs.find("tool") is None
    assert os.path.realpath(tempfile.gettempdir()) in programs.writable_folders()
    assert os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir) in programs.writable_folders()


def test_find_as_ordinary_user_takes_only_what_others_own(nobody_python: Path) -> None:
    code = (
        "import os, tempfile; from agents.programs import programs; from pathlib import Path\n"
        "own = Path(tempfile.mkdtemp()) / 'ls'; own.write_text('#!/bin/sh'); own.chmod(0o555)\n"
        "own.parent.chmod(0o555)\n"
        "programs.SYSTEM_FOLDERS = (str(own.parent),); programs.writable_folders = lambda: []\n"
        "assert programs.find('ls') is None, 'its owner may change its rights'\n"
        "programs.SYSTEM_FOLDERS = ('/usr/bin', '/bin')\n"
        "print(programs.find('ls'))\n"
        "own.parent.chmod(0o755); own.unlink(); own.parent.rmdir()\n"
    )
    done = subprocess.run(
        [nobody_python, "-I", "-c", code], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() in ("/usr/bin/ls", "/bin/ls"), done.stderr


def test_run_refuses_a_path_that_agents_could_replace(tmp_path: Path) -> None:
    with pytest.raises(ProgramNotFoundError):
        programs.run([str(make(tmp_path / "planted", f"touch {tmp_path}/ran"))])
    assert not (tmp_path / "ran").exists()


def test_run_gives_an_environment_made_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_OF_NOBODY", "x")
    monkeypatch.setenv("PYTHONPATH", "/planted")
    code = "import json, os, sys; print(json.dumps([dict(os.environ), os.getcwd(), sys.flags.isolated, os.getpgrp()]))"
    done = programs.run(programs.python("-c", code), environment={"NAMED": "yes"})
    environment, directory, isolated, group = json.loads(done.output)
    assert environment.keys() <= {"PATH", "LANG", "NAMED", "PYTHONNOUSERSITE", "LC_CTYPE"}
    assert (environment["NAMED"], directory, isolated) == ("yes", "/", 1)
    assert group != os.getpgrp(), "a group of its own"
    assert all(part in programs.SYSTEM_FOLDERS for part in environment["PATH"].split(":"))
    with_home = programs.run(programs.python("-c", "import os; print(os.environ['HOME'])"), home=True)
    assert with_home.text.strip() == os.environ["HOME"]


def test_run_keeps_the_end_of_what_is_written() -> None:
    code = "import sys; sys.stdout.write('a' * 5_000_000 + 'end'); sys.stderr.write('b' * 300_000 + 'bad'); sys.exit(3)"
    done = programs.run(programs.python("-c", code), keep=1000)
    assert (done.code, len(done.output), len(done.errors)) == (3, 1000, 1000)
    assert done.output.endswith(b"end")
    assert done.errors.endswith(b"bad")


def test_run_hands_over_input_and_none_otherwise() -> None:
    echo = programs.python("-c", "import sys; print(len(sys.stdin.read()))")
    assert programs.run(echo, given=b"x" * 1_000_000).text.strip() == "1000000"
    assert programs.run(echo).text.strip() == "0"


def test_run_ends_a_program_that_takes_too_long(tmp_path: Path) -> None:
    code = f"import os, time; os.fork(); open(f'{tmp_path}/{{os.getpid()}}', 'w').close(); time.sleep(3600)"
    with pytest.raises(TimeoutError):
        programs.run(programs.python("-c", code), seconds=5.0)
    _assert_gone(tmp_path)


def test_run_ends_what_a_program_leaves_behind(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        f"    open(f'{tmp_path}/{{os.getpid()}}', 'w').close(); time.sleep(3600)\n"
        f"while not os.listdir({str(tmp_path)!r}): time.sleep(0.01)\n"
        "print('done')\n"
    )
    assert programs.run(programs.python("-c", code), seconds=100.0).text == "done\n"
    _assert_gone(tmp_path)


async def test_run_async_ends_the_program_of_a_cancelled_caller(tmp_path: Path) -> None:
    code = f"import os, time; open(f'{tmp_path}/{{os.getpid()}}', 'w').close(); time.sleep(60)"
    running = asyncio.create_task(programs.run_async(programs.python("-c", code), seconds=60.0))
    while not list(tmp_path.iterdir()):
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    _assert_gone(tmp_path)


def test_start_goes_on_and_is_ended() -> None:
    running = programs.start(programs.python("-c", "import time; time.sleep(60)"))
    assert running.exit_code() is None
    assert running.wait(0.05) is None
    running.terminate()
    assert running.wait(100) == -15


def test_cancelled_run_is_a_timeout_to_a_thread() -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(TimeoutError):
        programs.run(programs.python("-c", "import time; time.sleep(60)"), cancelled=cancelled)


def test_interpreter_and_its_neighbours_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Path(sys.executable).parent / "pip"
    if not beside.exists():
        pytest.skip("no program beside this interpreter")
    assert programs.find("pip") == str(beside)


def _assert_gone(folder: Path) -> None:
    """Every process whose number is the name of a file there has ended, or does within a moment."""
    until = time.monotonic() + 100
    assert list(folder.iterdir()), "the programs had begun"
    while alive := [path.name for path in folder.iterdir() if _is_alive(path.name)]:
        assert time.monotonic() < until, alive
        time.sleep(0.02)


def _is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
