"""``rappd demo``, played for real: what it tells, what it counts, and that nothing of it stays."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.runtimes.python.pools.started_processes import descendants
from tests.rappd.cli.module_traps import MODULE, SCRIPT, Traps

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

CALLS = 6
TOLD = [
    "Three machines are running  desk, pi, shed",
    "They (found each other|cannot hear each other here)  .+",
    "desk trusts pi and shed, and they trust desk  each checked the other's fingerprint",
    r"pi answers desk: 18\.4 °C  \d+\.\d\d s",
    "shed is killed while it works  kill -9, as if the plug were pulled",
    r"(5|6) calls wait in desk's outbox  nothing is lost, nobody has to remember",
    "shed is back  the queue goes by itself",
    r"(5 calls are done, each once  1 was cut off by the plug and says so|6 calls are done, each once)",
]


class Demo:
    """A run of ``rappd demo``, and every process that ever descended from it."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        command: Sequence[str] = MODULE,
        where: Path = Path("/"),
        **more: str,
    ) -> None:
        self.folder = folder
        self.ever: set[tuple[int, str]] = set()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RAPP")}
        self.process = subprocess.Popen(
            [*command, "demo", *arguments],
            env={
                **environment,
                "TMPDIR": str(folder),
                "HOME": str(folder / "nobody"),
                "LANG": "C.UTF-8",
                **more,
            },
            cwd=where,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def wait_for_daemons(self, count: int) -> None:
        until = time.monotonic() + 100
        while len(list(self.folder.glob("rappd-demo-*/*/rappd.pid"))) < count:
            assert time.monotonic() < until and self.process.poll() is None, "no daemons were started"
            time.sleep(0.02)

    def to_end(self) -> tuple[str, str]:
        printed = self.process.communicate(timeout=600)
        self._watching.join(100)
        return printed

    def left(self) -> list[tuple[int, str]]:
        """Descendants that still live, half a minute at most after the end: a worker notices in a moment."""
        until = time.monotonic() + 100
        while (alive := [one for one in self.ever if _born(one[0]) == one[1]]) and time.monotonic() < until:
            time.sleep(0.1)
        return alive

    def _watch(self) -> None:
        while self.process.poll() is None:
            family = {self.process.pid, *descendants(self.process.pid)}
            self.ever |= {(pid, born) for pid in family if (born := _born(pid))}
            time.sleep(0.05)


def _stat(pid: int) -> list[str]:
    """The fields of ``stat`` behind the name: state, parent, … A zombie is over."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[0] == "Z" else fields


def _born(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if fields else ""


def _gone(demo: Demo) -> None:
    assert len(demo.ever) > 3, "the daemons were not even seen"
    assert demo.left() == []
    assert list(demo.folder.iterdir()) == []


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """The folder in which a demonstration has its homes."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_the_story_is_told_step_by_step_and_leaves_nothing(empty: Path, traps: Traps) -> None:
    """As a script, in a folder whose files have the names of modules: none of them is imported."""
    where, marker = traps
    demo = Demo(empty, command=SCRIPT, where=where, PYTHONPATH="")
    out, err = demo.to_end()
    assert not marker.exists(), marker.read_text()
    assert demo.process.returncode == 0, err
    *steps, blank, closing = out.splitlines()
    assert blank == ""
    assert len(steps) == len(TOLD)
    for told, line in zip(TOLD, steps, strict=True):
        assert re.fullmatch(f"✓ {told}", line), line
    assert re.fullmatch(r"The same on your own machines: .*rappd peers list", closing)
    assert err == ""
    _gone(demo)


def test_as_json_it_counts_and_every_call_has_its_end(empty: Path, traps: Traps) -> None:
    """As a module, in such a folder, which ``PYTHONPATH`` names."""
    where, marker = traps
    (where / "rappd.py").unlink()
    demo = Demo(empty, "--json", where=where, PYTHONPATH=str(where))
    out, err = demo.to_end()
    assert not marker.exists(), marker.read_text()
    assert demo.process.returncode == 0, err
    counted = json.loads(out)["demo"]
    calls = counted["calls"]
    assert calls["asked"] == CALLS
    assert calls["done"] + calls["cut_off"] == CALLS
    assert calls["cut_off"] <= 1, "only the one that was under way can be cut off"
    assert calls["waited"] >= CALLS - 1
    assert isinstance(counted["found"], bool)
    assert counted["seconds"] > 0
    assert err == ""
    _gone(demo)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_interrupted_it_ends_with_130_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    demo = Demo(tmp_path)
    demo.wait_for_daemons(3)
    demo.process.send_signal(number)
    demo.to_end()
    assert demo.process.returncode == 130
    _gone(demo)


def test_who_is_impatient_again_and_again_leaves_nothing_either(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    demo.wait_for_daemons(3)
    while demo.process.poll() is None:
        demo.process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    demo.to_end()
    assert demo.process.returncode == 130
    _gone(demo)
