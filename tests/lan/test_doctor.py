"""``rappd doctor`` on networks that hide a machine: each row says what is so, and what would help."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from lan.daemons import Daemon
from lan.network import Lan, Machine, require
from neighborhoods.discovery.address_text import join

TUN = """
import fcntl, os, struct, sys
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", sys.argv[1].encode(), 0x1001))
print("open", flush=True)
sys.stdin.read()
"""
"""Holds a tunnel's end open, as a VPN client does: without it the link has no carrier."""

VPN = ("note", "allow local network in it, or rappd peers add ADDRESS")
JOIN = ("note", "join a network, or rappd peers add ADDRESS")


class Doctor:
    """A machine, its network as the test makes it, and what ``rappd doctor`` says there."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.home: RunningDaemon = RunningDaemon(
            folder / "home", RAPPD_PEERS_LISTEN="on", RAPPD_NEARBY="on", LLM_FAKE="1"
        )

    def ip(self, *words: str) -> None:
        self.machine.run(["ip", *words], check=True)

    def tunnel(self, name: str, address: str, *routes: str) -> subprocess.Popen[Any]:
        """A tunnel that is up; ``routes`` go through it."""
        held = self.machine.start(
            [sys.executable, "-c", TUN, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert held.stdout is not None
        assert held.stdout.readline() == b"open\n"
        self.ip("address", "add", f"{address}/24", "dev", name)
        self.ip("link", "set", name, "up")
        for route in routes:
            self.ip("route", "replace", route, "dev", name)
        return held

    def says(self, **environment: str) -> dict[str, Any]:
        """The row about machines nearby."""
        [row] = [row for row in self.all_rows(**environment) if row["about"] == "Nearby"]
        return dict(row)

    def rows(self, about: str) -> list[tuple[str, str]]:
        """Verdict and text of each row about something."""
        return [(row["verdict"], row["what"]) for row in self.all_rows() if row["about"] == about]

    def all_rows(self, **environment: str) -> list[dict[str, Any]]:
        done = self.machine.run_rappd(["doctor", "--json"], {**self.home.environment, **environment})
        rows = json.loads(done.stdout)["doctor"]
        assert done.returncode == (1 if any(row["verdict"] == "bad" for row in rows) else 0), done.stderr
        found_rows: list[dict[str, Any]] = rows
        return found_rows

    def screen(self) -> str:
        return self.machine.run_rappd(["doctor"], self.home.environment).stdout


@pytest.fixture
def doctor(lan: Lan, tmp_path: Path) -> Iterator[Doctor]:
    """A machine on an everyday network."""
    yield Doctor(lan.machine("desk"), tmp_path)


def test_on_an_everyday_network_all_is_well(doctor: Doctor) -> None:
    row = doctor.says()
    assert (row["verdict"], row["what"], row["do"]) == ("good", "announced on eth0, once rappd runs", "")


@pytest.mark.parametrize("name", ["tun0", "wg0", "tailscale0", "ppp0"])
def test_a_vpn_that_takes_everything_hides_this_machine(doctor: Doctor, name: str) -> None:
    held = doctor.tunnel(name, "10.8.0.2", "default", "224.0.0.0/4")
    row = doctor.says()
    assert row["what"] == f"a VPN ({name}) hides this machine"
    assert (row["verdict"], row["do"]) == VPN
    assert f"! Nearby     a VPN ({name}) hides this machine\n             → allow local" in doctor.screen()
    held.kill()
    held.wait()
    assert doctor.says()["verdict"] == "good", "once it is off, the machine is seen again"


def test_a_vpn_as_default_route_hides_this_machine(doctor: Doctor) -> None:
    """As most of them come: they take the way out, and multicast follows it."""
    doctor.tunnel("tun0", "10.8.0.2", "default")
    row = doctor.says()
    assert row["what"] == "a VPN (tun0) hides this machine"
    assert (row["verdict"], row["do"]) == VPN


def test_a_vpn_in_two_halves_hides_this_machine(doctor: Doctor) -> None:
    """The other usual way to take everything, beside a default route that stays."""
    doctor.ip("route", "add", "default", "via", "10.77.0.254", "dev", "eth0")
    doctor.tunnel("tun0", "10.8.0.2", "0.0.0.0/1", "128.0.0.0/1")
    assert doctor.says()["what"] == "a VPN (tun0) hides this machine"


def test_a_vpn_for_one_distant_network_is_no_trouble(doctor: Doctor) -> None:
    doctor.ip("route", "add", "default", "via", "10.77.0.254", "dev", "eth0")
    doctor.tunnel("tun0", "10.8.0.2", "192.168.99.0/24")
    row = doctor.says()
    assert row["verdict"] == "good"
    assert "eth0" in row["what"]


def test_a_vpn_that_is_the_only_link_hides_this_machine(doctor: Doctor) -> None:
    doctor.tunnel("tun0", "10.8.0.2", "default")
    doctor.machine.down()
    row = doctor.says()
    assert row["what"] == "a VPN (tun0) hides this machine"
    assert (row["verdict"], row["do"]) == VPN


def test_a_link_without_multicast_is_named(doctor: Doctor) -> None:
    doctor.machine.without_ipv6()
    doctor.ip("link", "set", "eth0", "multicast", "off")
    row = doctor.says()
    assert row["what"] == "eth0 carries no multicast"
    assert (row["verdict"], row["do"]) == JOIN


def test_one_link_with_multicast_is_enough(doctor: Doctor) -> None:
    doctor.ip("link", "set", "eth0", "multicast", "off")
    doctor.ip("link", "add", "eth1", "type", "veth", "peer", "name", "eth2")
    for link in ("eth1", "eth2"):
        doctor.ip("link", "set", link, "up")
    doctor.ip("address", "add", "10.99.0.1/24", "dev", "eth1")
    row = doctor.says()
    assert row["verdict"] == "good"
    assert "eth1" in row["what"]
    assert "eth0" not in row["what"], "what carries nothing is not named as a way"


def test_a_daemon_that_does_not_hear_itself_is_believed(doctor: Doctor, tmp_path: Path) -> None:
    doctor.machine.without_ipv6()
    doctor.machine.run(["sysctl", "-qw", "net.ipv4.igmp_max_memberships=0"], check=True)
    doctor.home = desk = Daemon(doctor.machine, tmp_path).start()
    try:
        desk.wait_for(lambda: doctor.says()["verdict"] == "note", what="a word about it")
        row = doctor.says()
        assert row["what"] == "multicast is blocked: this machine does not even hear its own announcement"
        assert (row["verdict"], row["do"]) == JOIN
    finally:
        desk.stop()


@pytest.mark.parametrize("network", ["10.77.0", "fd77::"])
def test_doctor_tries_the_listeners_from_its_own_addresses(network: str, tmp_path: Path) -> None:
    require()
    with Lan(network) as lan:
        doctor = Doctor(lan.machine("desk"), tmp_path)
        doctor.home = desk = Daemon(doctor.machine, tmp_path).start()
        desk.ask("POST", "/devices/window", {})
        assert doctor.rows("Listener") == [("good", "open on port 7443; strangers may only say hello")]
        assert [verdict for verdict, _ in doctor.rows("Phones")] == ["good"]
        own = doctor.machine.address
        family = "-6" if ":" in own else "-4"
        doctor.ip(family, "route", "del", "local", own, "dev", "eth0", "table", "local")
        listener, page = join(own, 7443), join(own, 7072)
        assert doctor.rows("Listener") == [
            ("bad", f"nothing answers at {listener}, where other machines look for this one")
        ]
        assert doctor.rows("Phones") == [("bad", f"no page for phones answers at {page}")]
        assert desk.ask("GET", "/devices/window")["state"] == "open"


def _down(machine: Machine) -> None:
    machine.down()


def _unplugged(machine: Machine) -> None:
    machine.unplug()


@pytest.mark.parametrize("gone", [_down, _unplugged], ids=["off", "unplugged"])
def test_without_a_network_there_is_nobody_nearby(doctor: Doctor, gone: Callable[[Machine], None]) -> None:
    gone(doctor.machine)
    row = doctor.says()
    assert row["what"] == "no network connection"
    assert (row["verdict"], row["do"]) == JOIN


def test_who_does_not_announce_himself_needs_no_network(doctor: Doctor) -> None:
    doctor.machine.down()
    for setting in ("RAPPD_NEARBY", "RAPPD_PEERS_LISTEN"):
        row = doctor.says(**{setting: "off"})
        assert (row["verdict"], row["what"]) == ("good", "this machine is not announced")
