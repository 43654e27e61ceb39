"""A command opens the home itself where no daemon runs: shared, closed again, left whole by a kill, and only read by what reads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures import prefork
from fixtures.running_daemon import REPO, RunningDaemon

_HOLDS = """
import asyncio, sys
from rappd.daemon.home import Home
from rappd.daemon.open_home import open_home
from rappd.settings.load import Settings

async def hold():
    home = Home.here()
    async with open_home(home, Settings.load(home), mode="work"):
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(hold())
"""

READING = [
    ("twins", "list"),
    ("twins", "list", "--archived"),
    ("twins", "show", "Rose"),
    ("twins", "soul", "Rose"),
    ("twins", "lineage"),
    ("twins", "checkpoints", "Rose"),
    ("peers", "list"),
    ("outbox", "list"),
    ("token", "list"),
    ("agents", "list"),
    ("neighborhood", "list"),
    ("neighborhood", "members"),
    ("neighborhood", "snapshots"),
    ("neighborhood", "schedule"),
    ("fleet", "status"),
    ("threads", "list"),
    ("config", "show"),
]

_NOSY = """
import glob, socket

def answer(path):
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(path)
        except OSError as error:
            return error.strerror
        asked.sendall(b"GET /twins HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
        return asked.recv(100).decode().split()[1]

raise RuntimeError(f"it got {[answer(path) for place in PLACES for path in glob.glob(place)]}")
"""


@contextmanager
def _worked_on(home: RunningDaemon) -> Iterator[subprocess.Popen[str]]:
    """Another process works on the home until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDS],
        env=home.environment,
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    try:
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.communicate("\n", timeout=100)


def _lies(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))  # what SQLite needs to look at a file
    }


@pytest.mark.own_process
def test_commands_share_the_home_that_one_has_open(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("home", LLM_FAKE="1")
    with _worked_on(home) as other:
        assert home.cli("twins", "new", "Rose").returncode == 0
        assert "Rose" in home.cli("twins", "list").stdout
        for verb in (("status",), ("chat", "hello")):
            assert "isn't running" in home.cli(*verb).stderr, "a command is no daemon"
        assert other.poll() is None
    assert not list(home.home.glob("*.sock"))
    assert "Rose" in home.cli("twins", "list").stdout


@pytest.mark.own_process
def test_a_start_waits_for_a_command_that_works(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("home", LLM_FAKE="1")
    with _worked_on(home):
        starting = threading.Thread(target=home.start)
        starting.start()
        home.wait_for(lambda: home.process is not None, what="the process of the daemon")
        time.sleep(0.5)
        assert starting.is_alive()
        assert not home.is_ready()
    starting.join(100)
    assert home.get("/readyz").status == 200
    assert home.cli("twins", "new", "Rose").returncode == 0


@pytest.mark.own_process
def test_a_kill_leaves_nothing_in_the_way(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("home", LLM_FAKE="1")
    with _worked_on(home) as other:
        os.kill(other.pid, signal.SIGKILL)
    assert (home.home / "work.sock").exists(), "it had no time to clear up"
    assert home.cli("twins", "list").returncode == 0
    for number, seconds in enumerate((0.02, 0.06, 0.1, 0.15, 0.2, 0.3)):
        forking = prefork.start(["twins", "new", f"Twin {number}"], home.environment)
        time.sleep(seconds)
        forking.kill()
        forking.wait(100)
    assert home.cli("twins", "new", "Rose").returncode == 0
    made = home.cli("twins", "list").stdout
    assert "Rose" in made
    assert "cannot be read" not in made
    home.start()
    assert home.chat("hello")["response"]
    home.stop()
    assert "✓" in home.cli("threads", "verify").stdout


def test_two_commands_at_once_both_do_their_work(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("home", LLM_FAKE="1")
    names = ("Rose", "Ink", "Iris", "Poppy")
    ends: list[str] = []
    work = [
        threading.Thread(target=lambda name=name: ends.append(home.cli("twins", "new", name).stderr))
        for name in names
    ]
    for one in work:
        one.start()
    for one in work:
        one.join(100)
    assert ends == [""] * len(names)
    listed = home.cli("twins", "list").stdout
    assert all(name in listed for name in names)


def test_what_only_reads_writes_nothing(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("home", LLM_FAKE="1").start()
    home.chat("the apple tree was planted")
    assert home.cli("twins", "new", "Rose").returncode == 0
    home.drop("kettle_agent.py", "x = 1\n")
    home.stop()
    before = _lies(home.home)
    for verb in READING:
        done = home.cli(*verb)
        assert done.returncode == 0, (verb, done.stderr)
        assert _lies(home.home) == before, verb


def test_what_only_reads_makes_no_home(make_daemon: Callable[..., RunningDaemon]) -> None:
    home = make_daemon("nowhere")
    for verb in READING:
        assert home.cli(*verb).returncode == (4 if "Rose" in verb else 0), verb
        assert not home.home.exists(), verb


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_agents_do_not_get_at_the_home_through_a_command(
    make_daemon: Callable[..., RunningDaemon], sandbox: str
) -> None:
    home = make_daemon("home", LLM_FAKE="1", RAPPD_SANDBOX=sandbox)
    assert home.cli("twins", "new", "Rose").returncode == 0
    home.drop("nosy_agent.py", _NOSY.replace("PLACES", repr([str(home.home / "work.sock")])))
    listed = home.cli("agents", "list").stdout
    assert "it got []" in listed, "a home that is only read has no socket"
    told = home.cli("agents", "test", "nosy_agent.py").stdout
    assert "it got" in told, told
    assert "200" not in told
    assert sandbox == "auto" or "403" in told


def test_nobody_asks_whether_a_daemon_runs() -> None:
    """A command that forks on it does its work twice; starting, stopping, looking after and restoring a home may ask."""
    allowed = {
        "cli/start.py", "cli/backup.py", "cli/home_client.py", "diagnostics/finding.py", "features/operator/cli.py",
        "features/programs/stdio_cli.py",  # it starts one where that is wanted
    }  # fmt: skip
    asks = re.compile(r"\b(daemon|client|ControlClient\([^)]*\))\.running\(\)")
    rappd = REPO / "rappd"
    found = {str(path.relative_to(rappd)) for path in rappd.rglob("*.py") if asks.search(path.read_text())}
    assert found <= allowed


def test_reading_a_home_imports_no_http_library() -> None:
    """An HTTP library costs more than half of what a reading command takes."""
    code = "import sys, rappd.cli.home_reader; print({'aiohttp', 'yarl', 'multidict'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout.strip() == "set()"
