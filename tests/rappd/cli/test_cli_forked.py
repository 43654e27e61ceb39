"""A forked command answers as one that is started anew, for every verb."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from fixtures import prefork
from fixtures.running_daemon import RunningDaemon

from rappd.cli.commands import COMMANDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forked on Linux alone")

COMMANDS = [
    (),
    ("--version",),
    ("nonsense",),
    ("status",),
    ("status", "--json"),
    ("agents", "list"),
    ("config", "show", "--json"),
    ("config", "set", "door.peers"),
    ("egg", "inspect", "/nowhere.egg"),
    *((verb, "--help") for verb in COMMANDS),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_says_and_ends_the_same(talked: RunningDaemon, command: tuple[str, ...]) -> None:
    forked = prefork.run(list(command), talked.environment, "", 60)
    anew = prefork.run_anew(list(command), talked.environment, "", 60)
    assert (forked.returncode, forked.stdout, forked.stderr) == (anew.returncode, anew.stdout, anew.stderr)


@pytest.mark.own_process
def test_it_reads_what_it_is_told_and_ends_by_signals(idle: RunningDaemon) -> None:
    told = prefork.run(["chat"], idle.environment, "hi\n" * 50_000, 60)
    anew = prefork.run_anew(["chat"], idle.environment, "hi\n" * 50_000, 60)
    assert (told.returncode, told.stderr) == (anew.returncode, anew.stderr)
    idle.start()
    assert isinstance(idle.process, prefork.Process)
    assert idle.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        idle.process.wait(0.1)
    idle.process.send_signal(signal.SIGINT)
    assert idle.process.wait(100) in (0, 130)
    idle.start()
    idle.kill()
    assert idle.process.returncode == -signal.SIGKILL
