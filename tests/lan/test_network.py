"""The network for tests is one: what tests take for granted of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lan.network import Lan, require

pytestmark = pytest.mark.needs_root

ASK = """
import socket, sys, time
began = time.monotonic()
with socket.create_connection((sys.argv[1], 7000), timeout=8) as line:
    line.sendall(b"x" * 200_000)
    line.shutdown(socket.SHUT_WR)
    print(line.makefile("rb").read().decode(), time.monotonic() - began)
"""

ANSWER = """
import socket
with socket.create_server(("", 7000)) as server:
    print("ready", flush=True)
    while True:
        line, _ = server.accept()
        line.sendall(str(len(line.makefile("rb").read())).encode())
        line.close()
"""


def _ask(lan: Lan, who: int, whom: int) -> tuple[int, float]:
    asked = lan.machines[who].run([sys.executable, "-c", ASK, lan.machines[whom].address])
    if asked.returncode:
        return 0, 0.0
    octets, seconds = asked.stdout.split()
    return int(octets), float(seconds)


def _answer(lan: Lan, who: int) -> None:
    server = lan.machines[who].start([sys.executable, "-c", ANSWER], stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"ready\n"


def test_machines_reach_each_other_unless_unplugged_or_parted(lan: Lan) -> None:
    for name in ("desk", "pi", "shed"):
        lan.machine(name)
    _answer(lan, 1)
    assert _ask(lan, 0, 1)[0] == 200_000
    lan.machines[1].unplug()
    assert _ask(lan, 0, 1)[0] == 0
    lan.machines[1].plug()
    assert _ask(lan, 0, 1)[0] == 200_000
    lan.part(lan.machines[2])
    assert _ask(lan, 2, 1)[0] == 0
    assert _ask(lan, 0, 1)[0] == 200_000
    lan.heal()
    assert _ask(lan, 2, 1)[0] == 200_000
    lan.machines[1].move("10.77.0.99")
    assert _ask(lan, 0, 1)[0] == 200_000


def test_a_relayed_link_delays_and_loses(lan: Lan) -> None:
    lan.machine("desk")
    far = lan.machine("far", relayed=True)
    _answer(lan, 1)
    assert _ask(lan, 0, 1)[0] == 200_000
    far.weather(delay=0.1)
    octets, seconds = _ask(lan, 0, 1)
    assert octets == 200_000
    assert seconds > 0.4  # two round trips at least
    far.weather(delay=0.01, loss=0.05)
    assert _ask(lan, 0, 1)[0] == 200_000
    far.weather(loss=1.0)
    assert _ask(lan, 0, 1)[0] == 0


def test_nothing_is_left(lan: Lan) -> None:
    with Lan() as other:
        machine = other.machine("desk", relayed=True)
        sleeper = machine.start(["sleep", "600"])
        tag = other.tag
    assert sleeper.returncode is not None
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert tag not in left
    assert lan.tag in left


def test_under_ci_it_is_never_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        require()
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception):
        require()
