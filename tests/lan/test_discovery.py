"""Machines find each other by real multicast DNS, each in its own network namespace."""

from __future__ import annotations

import hashlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lan.discovering import HERE, PACE
from lan.network import Lan, Machine

pytestmark = [pytest.mark.needs_root, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).with_name("discovering.py")
PATIENCE = 100.0


def fingerprint(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


class Discovering:
    """A process that discovers, and what it said."""

    def __init__(self, machine: Machine, name: str, folder: Path, *peers: str, port: int = 7443) -> None:
        self.name, self.id, self.machine = name, fingerprint(name), machine
        folder = folder / name
        folder.mkdir(exist_ok=True)
        self._begin = [sys.executable, SCRIPT, folder, name, self.id, str(port), *map(fingerprint, peers)]
        self.restart()

    def restart(self) -> None:
        self.said: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self.process = self.machine.start(
            self._begin, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def wait(self, event: str, *, since: float = 0.0, **like: Any) -> dict[str, Any]:
        """The first thing said like that after a moment; fails when a minute passes without it."""

        def fits(one: dict[str, Any]) -> bool:
            return one["event"] == event and one["t"] >= since and all(one[k] == v for k, v in like.items())

        until = time.monotonic() + PATIENCE
        while not (found := next(filter(fits, self.said), None)):
            try:
                self.said.append(json.loads(self._lines.get(timeout=max(0.01, until - time.monotonic()))))
            except queue.Empty:
                raise AssertionError(f"{self.name} never said {event} {like}: {self.said[-12:]}") from None
        return found

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def announced(self) -> float:
        return float(next(one for one in self._until_announced() if one["instance"])["t"])

    def _until_announced(self) -> list[dict[str, Any]]:
        self.wait("announced", instance=f"{self.name}_{self.id[:16]}._rappd._tcp.local.")
        return [one for one in self.said if one["event"] == "announced"]

    def _read(self) -> None:
        lines, process = self._lines, self.process
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[str, float], None]:
    """Prints a figure (shown by ``-s``). Figures are told, not asserted."""
    return lambda what, seconds: print(f"\n  {request.node.name}: {what} {seconds:.2f} s", end="")


Measured = Callable[[str, float], None]


def test_five_machines_find_each_other(lan: Lan, tmp_path: Path, measured: Measured) -> None:
    names = ["desk", "pi", "shed", "attic", "cellar"]
    every = [Discovering(lan.machine(name), name, tmp_path) for name in names]
    for one in every:
        one.announced()
    slowest = 0.0
    for one in every:
        for other in every:
            if one is not other:
                found = one.wait("appeared", peer=other.id, name=other.name)
                slowest = max(slowest, found["t"] - max(one.announced(), other.announced()))
                assert found["port"] == 7443
                assert other.machine.address in found["addresses"]
    measured("the slowest of 20 sightings after both were announced", slowest)
    measured("from start to announced", max(one.announced() - one.wait("started")["t"] for one in every))
    now = time.time()
    every[0].tell("close")
    measured("closing", every[0].wait("closed")["seconds"])
    for other in every[1:]:
        other.wait("gone", peer=every[0].id, since=now)
    assert every[0].process.wait(100) == 0


def test_one_is_renamed(lan: Lan, tmp_path: Path, measured: Measured) -> None:
    desk = Discovering(lan.machine("desk"), "desk", tmp_path, "pi")
    pi = Discovering(lan.machine("pi"), "pi", tmp_path)
    desk.wait("here", peer=pi.id)
    now = time.time()
    pi.tell("rename strawberry")
    measured("found by the new name", desk.wait("appeared", peer=pi.id, name="strawberry")["t"] - now)
    desk.wait("gone", peer=pi.id, name="pi")
    desk.tell("state")
    state = desk.wait("state")
    assert state["sources"]["nearby"] == [1, ""]
    assert state["presence"][pi.id][0] == "here"


def test_one_is_killed_and_restarted(lan: Lan, tmp_path: Path, measured: Measured) -> None:
    desk = Discovering(lan.machine("desk"), "desk", tmp_path, "pi")
    pi = Discovering(lan.machine("pi"), "pi", tmp_path)
    desk.wait("here", peer=pi.id)
    now = time.time()
    pi.process.kill()
    away = desk.wait("away", peer=pi.id, since=now)
    measured("killed, away after", away["t"] - now)
    assert not [one for one in desk.said if one["event"] == "gone"]
    time.sleep(3 * PACE.first)  # by now it is asked ever more rarely
    pi.restart()
    announced = pi.announced()
    measured("announced again, here after", desk.wait("here", peer=pi.id, since=now)["t"] - announced)


def test_one_moves_to_another_address(lan: Lan, tmp_path: Path, measured: Measured) -> None:
    desk = Discovering(lan.machine("desk"), "desk", tmp_path, "pi")
    pi = Discovering(lan.machine("pi"), "pi", tmp_path)
    for machine in lan.machines:
        machine.without_ipv6()
    desk.wait("here", peer=pi.id)
    now = time.time()
    pi.machine.move("10.77.0.99")
    while True:
        changed = desk.wait("changed", peer=pi.id, since=now)
        if changed["addresses"][0] == "10.77.0.99":
            break
        now = changed["t"] + 0.000_001
    measured("the new address is known after", changed["t"] - now)
    left = desk.wait("changed", peer=pi.id, since=now, addresses=["10.77.0.99"])
    measured("the old one is forgotten after", left["t"] - now)
    time.sleep(HERE + PACE.every)
    desk.tell("state")
    assert desk.wait("state")["presence"][pi.id][0] == "here"


@pytest.mark.parametrize("how", ["down", "unplug"])
def test_a_link_goes_down_and_comes_up(lan: Lan, tmp_path: Path, measured: Measured, how: str) -> None:
    desk = Discovering(lan.machine("desk"), "desk", tmp_path, "pi")
    pi = Discovering(lan.machine("pi"), "pi", tmp_path, "desk")
    desk.wait("here", peer=pi.id)
    pi.wait("here", peer=desk.id)
    now = time.time()
    getattr(pi.machine, how)()
    trouble = pi.wait("announced", since=now, trouble="No network connection.")
    measured("the lost link is noticed after", trouble["t"] - now)
    measured("away after", desk.wait("away", peer=pi.id, since=now)["t"] - now)
    pi.wait("away", peer=desk.id, since=now)
    now = time.time()
    {"down": pi.machine.up, "unplug": pi.machine.plug}[how]()
    measured("healed, here again after", desk.wait("here", peer=pi.id, since=now)["t"] - now)
    measured("… and the other way", pi.wait("here", peer=desk.id, since=now)["t"] - now)


def test_a_network_parts_in_its_middle_and_heals(lan: Lan, tmp_path: Path, measured: Measured) -> None:
    desk = Discovering(lan.machine("desk"), "desk", tmp_path, "pi")
    pi = Discovering(lan.machine("pi"), "pi", tmp_path, "desk")
    desk.wait("here", peer=pi.id)
    pi.wait("here", peer=desk.id)
    now = time.time()
    lan.part(pi.machine)
    measured("away after", desk.wait("away", peer=pi.id, since=now)["t"] - now)
    pi.wait("away", peer=desk.id, since=now)
    now = time.time()
    lan.heal()
    measured("healed, here again after", desk.wait("here", peer=pi.id, since=now)["t"] - now)
    pi.wait("here", peer=desk.id, since=now)


def test_two_on_one_machine(lan: Lan, tmp_path: Path) -> None:
    both = lan.machine("desk")
    one = Discovering(both, "one", tmp_path, "two")
    two = Discovering(both, "two", tmp_path, "one", port=7444)
    third = Discovering(lan.machine("pi"), "pi", tmp_path, "one", "two")
    assert one.wait("appeared", peer=two.id)["port"] == 7444
    assert two.wait("appeared", peer=one.id)["port"] == 7443
    for who, whom in ((one, two), (two, one), (third, one), (third, two)):
        who.wait("here", peer=whom.id)


def test_a_copy_of_an_identity_takes_another_name(lan: Lan, tmp_path: Path) -> None:
    first = Discovering(lan.machine("desk"), "desk", tmp_path)
    first.announced()
    copy = Discovering(lan.machine("copy"), "desk", tmp_path)
    copy.wait("announced", instance=f"desk_{copy.id[:16]}-2._rappd._tcp.local.")


def test_without_any_network_trouble_is_told_until_there_is_one(
    lan: Lan, tmp_path: Path, measured: Measured
) -> None:
    lonely = lan.machine("lonely", address="")
    lonely.without_ipv6()
    desk = Discovering(lan.machine("desk"), "desk", tmp_path)
    pi = Discovering(lonely, "pi", tmp_path, "desk")
    pi.wait("announced", trouble="No network connection.", instance="")
    pi.tell("state")
    assert pi.wait("state")["sources"]["nearby"] == [0, "No network connection."]
    now = time.time()
    lonely.add_address("10.77.0.50")
    measured("an address came, found after", desk.wait("appeared", peer=pi.id)["t"] - now)
    assert pi.wait("announced", since=now, trouble="")["instance"]
    pi.wait("here", peer=desk.id)


def test_no_route_is_needed(lan: Lan, tmp_path: Path) -> None:
    for name in ("desk", "pi"):
        machine = lan.machine(name)
        machine.without_ipv6()
        machine.run(["ip", "route", "flush", "table", "main"], check=True)
        assert not machine.run(["ip", "route"], check=True).stdout
    desk, pi = (Discovering(machine, machine.name, tmp_path) for machine in lan.machines)
    desk.wait("appeared", peer=pi.id)
    pi.wait("appeared", peer=desk.id)


def test_blocked_multicast_is_told_and_tried_again(lan: Lan, tmp_path: Path, measured: Measured) -> None:
    desk, mute = Discovering(lan.machine("desk"), "desk", tmp_path), lan.machine("pi")
    mute.without_ipv6()
    mute.run(["sysctl", "-qw", "net.ipv4.igmp_max_memberships=0"], check=True)
    pi = Discovering(mute, "pi", tmp_path)
    blocked = "Multicast is blocked: this machine does not even hear its own announcement."
    pi.wait("announced", trouble=blocked)
    mute.run(["sysctl", "-qw", "net.ipv4.igmp_max_memberships=20"], check=True)
    now = time.time()
    pi.wait("announced", since=now, trouble="")
    measured("no longer blocked, found after", desk.wait("appeared", peer=pi.id)["t"] - now)


def test_another_program_keeps_the_port(lan: Lan, tmp_path: Path) -> None:
    machine = lan.machine("pi")
    holding = "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5353)); print('x', flush=True); time.sleep(600)"
    holder = machine.start([sys.executable, "-c", holding], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    pi = Discovering(machine, "pi", tmp_path)
    told = "Another program keeps multicast DNS (UDP port 5353) for itself."
    pi.wait("announced", trouble=told, instance="")
    holder.kill()
    assert pi.wait("announced", trouble="", since=time.time())["instance"]


def test_a_flood_of_announcements_hides_nobody(lan: Lan, tmp_path: Path, measured: Measured) -> None:
    desk = Discovering(lan.machine("desk"), "desk", tmp_path, "pi")
    pi = Discovering(lan.machine("pi"), "pi", tmp_path)
    desk.wait("here", peer=pi.id)
    flood = lan.machine("flood").run(
        [sys.executable, Path(__file__).with_name("flooding.py"), lan.machines[2].address, "5000", pi.id]
    )
    assert flood.returncode == 0, flood.stderr
    now = time.time()
    desk.tell("state")
    state = desk.wait("state", since=now)
    measured("answers after the flood in", state["t"] - now)
    assert 500 < state["sources"]["nearby"][0] <= 2000
    assert state["presence"][pi.id][0] == "here"
    time.sleep(HERE + PACE.every)
    later = time.time()
    desk.tell("state")
    assert desk.wait("state", since=later)["presence"][pi.id][0] == "here"
