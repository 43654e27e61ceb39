"""Machines on one network, as network namespaces on a bridge. Needs root, Linux and iproute2.

    with Lan() as lan:
        desk, pi = lan.machine("desk"), lan.machine("pi", relayed=True)
        pi.weather(delay=0.05, loss=0.1)
        process = desk.start([sys.executable, "server.py"])

Everything lives in namespaces of its own, the bridge too: nothing is seen from outside, tests may run side by
side with the same addresses, and leaving the block ends every process and removes every namespace.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from fixtures import prefork

PREFIX = "dlan"
RELAY = Path(__file__).with_name("relay.py")


def require() -> None:
    """Skips where no network can be made; under ``CI=true`` that is a failure instead."""
    missing = [program for program in ("ip", "sysctl") if shutil.which(program) is None]
    reason = f"needs {', '.join(missing)}" if missing else "needs root" if os.geteuid() != 0 else ""
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"The network cannot be made: {reason}.")
    if reason:
        pytest.skip(reason)


class Machine:
    """A machine: a namespace with ``lo`` and ``eth0``. Made by ``Lan.machine``."""

    def __init__(self, lan: Lan, name: str, number: int, address: str, relayed: bool) -> None:
        self.lan, self.name, self.address, self.relayed = lan, name, address, relayed
        self.namespace, self.port = f"{lan.tag}-{number}", f"p{number}"
        self._entry, self._relay = self.port, None
        self._processes: list[subprocess.Popen[Any] | prefork.Process] = []
        _ip("netns", "add", self.namespace)
        # No other machine has its addresses. One that becomes valid a second later is a change of the network, for
        # which a browser gives up what it is fetching.
        settings = [f"net.ipv6.conf.{which}.accept_dad=0" for which in ("all", "default")]
        self.run(["sysctl", "-qw", *settings], check=True)
        _ip(
            "-n",
            lan.switch,
            "link",
            "add",
            self.port,
            "type",
            "veth",
            "peer",
            "eth0",
            "netns",
            self.namespace,
        )
        _ip("-n", self.namespace, "link", "set", "lo", "up")
        _ip("-n", self.namespace, "link", "set", "eth0", "up")
        if address:
            self.add_address(address)
        if relayed:
            self._insert_relay(number)
        _ip("-n", lan.switch, "link", "set", self._entry, "master", "br0")
        _ip("-n", lan.switch, "link", "set", self.port, "up")

    def start(
        self, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """A process on this machine (its pid is the program's own). Killed at the end."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, *command],
            env={**os.environ, **(environment or {})},
            **options,
        )
        self._processes.append(process)
        return process

    def start_rappd(
        self, arguments: list[str], environment: Mapping[str, str], *, own_zygote: bool = False
    ) -> subprocess.Popen[bytes] | prefork.Process:
        """``rappd`` on this machine, with this environment alone. Killed at the end."""
        process = prefork.start(arguments, environment, self.namespace, own_zygote=own_zygote)
        self._processes.append(process)
        return process

    def run_rappd(
        self, arguments: list[str], environment: Mapping[str, str], *, timeout: float = 100
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``rappd`` on this machine to its end, with this environment alone."""
        return prefork.run(arguments, environment, "", timeout, self.namespace)

    def run(self, command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a program on this machine to its end."""
        return subprocess.run(
            ["ip", "netns", "exec", self.namespace, *command], capture_output=True, text=True, **options
        )

    def down(self) -> None:
        """Switches the link off here, as its owner would. IPv6 addresses and routes are lost."""
        _ip("-n", self.namespace, "link", "set", "eth0", "down")

    def up(self) -> None:
        """Switches the link on."""
        _ip("-n", self.namespace, "link", "set", "eth0", "up")

    def unplug(self) -> None:
        """Pulls the cable: no carrier, the address stays."""
        _ip("-n", self.lan.switch, "link", "set", self.port, "down")

    def plug(self) -> None:
        """Puts the cable back."""
        _ip("-n", self.lan.switch, "link", "set", self.port, "up")

    def add_address(self, address: str, bits: int = 0) -> None:
        """Adds an address; the first is ``address``. Of IPv6 64 bits are the network's, unless given."""
        bits = bits or (64 if ":" in address else 24)
        family = ("nodad",) if ":" in address else ("broadcast", "+")
        _ip("-n", self.namespace, "address", "add", f"{address}/{bits}", *family, "dev", "eth0")

    def remove_address(self, address: str, bits: int = 24) -> None:
        """Takes an address away."""
        _ip("-n", self.namespace, "address", "del", f"{address}/{bits}", "dev", "eth0")

    def move(self, address: str, bits: int = 24) -> None:
        """Another address in the place of the one before, as a new lease brings it."""
        self.remove_address(self.address, bits)
        self.add_address(address, bits)
        self.address = address

    def without_ipv6(self) -> None:
        """Switches IPv6 off. Before that, ``eth0`` has a link-local address."""
        self.run(["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"], check=True)

    def link_local(self, link: str = "eth0") -> str:
        """The IPv6 address of its link, once it can be used, without a zone."""
        for _ in range(100):
            shown = json.loads(_ip("-n", self.namespace, "-j", "-6", "address", "show", "dev", link))
            found = [one for link in shown for one in link.get("addr_info", []) if one.get("scope") == "link"]
            if found and not found[0].get("tentative"):
                return str(found[0]["local"])
            time.sleep(0.1)
        raise AssertionError(f"{self.name} has no link-local address")

    def addresses(self) -> list[str]:
        """The addresses that ``eth0`` has now."""
        shown = json.loads(_ip("-n", self.namespace, "-j", "address", "show", "dev", "eth0"))
        return [one["local"] for link in shown for one in link.get("addr_info", [])]

    def weather(self, *, delay: float = 0.0, loss: float = 0.0) -> None:
        """Sets the link from now on, each way: seconds of delay, and the part of frames that is lost."""
        assert self._relay is not None, "ask for it: lan.machine(name, relayed=True)"
        assert self._relay.stdin is not None
        self._relay.stdin.write(f"{delay} {loss}\n".encode())
        self._relay.stdin.flush()

    def stop(self) -> None:
        """Kills every process that was started here."""
        for process in self._processes:
            _end(process)
        self._processes.clear()

    def remove(self) -> None:
        """Takes the machine off the network for good."""
        self.stop()
        if self._relay is not None:
            _end(self._relay)
        _remove_namespace(self.namespace)

    def join(self, bridge: str) -> None:
        """Connects this machine's port to another bridge. The link itself stays up."""
        _ip("-n", self.lan.switch, "link", "set", self._entry, "master", bridge)

    def _insert_relay(self, number: int) -> None:
        # The kernel has no netem: a program carries the frames between the machine and the bridge.
        inner, self._entry = f"i{number}", f"o{number}"
        switch = self.lan.switch
        _ip("-n", switch, "link", "add", inner, "type", "veth", "peer", "name", self._entry)
        for port in (inner, self._entry):
            _ip("-n", switch, "link", "set", port, "up")
        self._relay = subprocess.Popen(
            ["ip", "netns", "exec", switch, sys.executable, RELAY, self.port, inner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for namespace, link in ((self.namespace, "eth0"), (switch, self._entry)):
            whole = [sys.executable, RELAY, "--whole-checksums", link]
            subprocess.run(["ip", "netns", "exec", namespace, *whole], check=True)
        assert self._relay.stdout is not None
        assert self._relay.stdout.readline() == b"ready\n"


class Lan:
    """A bridge and the machines on it. Addresses are ``10.77.0.1``, ``.2``, … unless given.

    ``network`` with colons, as ``fd77::``, is a network without IPv4: addresses are ``fd77::1``, ``::2``, ….
    """

    _numbers = itertools.count(1)

    def __init__(self, network: str = "10.77.0") -> None:
        self._network = network
        self._machine_numbers = itertools.count(1)
        self.tag = f"{PREFIX}-{os.getpid()}-{next(self._numbers)}"
        self.switch = f"{self.tag}-0"
        self.machines: list[Machine] = []

    def __enter__(self) -> Self:
        _sweep()
        atexit.register(self.close)
        try:
            _ip("netns", "add", self.switch)
            _ip("-n", self.switch, "link", "set", "lo", "up")
            self._bridge("br0")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def machine(self, name: str, *, address: str | None = None, relayed: bool = False) -> Machine:
        """Another machine. ``address`` "" gives it none; ``relayed`` lets its ``weather`` change."""
        number = next(self._machine_numbers)
        usual = f"{self._network}{number:x}" if ":" in self._network else f"{self._network}.{number}"
        made = Machine(self, name, number, usual if address is None else address, relayed)
        self.machines.append(made)
        return made

    def part(self, *away: Machine) -> None:
        """Cuts some machines off from the others, in the middle of the network: no link goes down."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._bridge("br1")
        for machine in away:
            machine.join("br1")

    def heal(self) -> None:
        """Joins what was parted."""
        for machine in self.machines:
            machine.join("br0")

    def close(self) -> None:
        """Ends every process and removes every namespace."""
        atexit.unregister(self.close)
        for machine in self.machines:
            machine.remove()
        self.machines.clear()
        for namespace in _namespaces():
            if namespace.startswith(f"{self.tag}-"):
                _remove_namespace(namespace)

    def _bridge(self, name: str) -> None:
        # No snooping: without a querier it would drop multicast after some minutes.
        _ip(
            "-n",
            self.switch,
            "link",
            "add",
            name,
            "type",
            "bridge",
            "mcast_snooping",
            "0",
            "forward_delay",
            "0",
        )
        _ip("-n", self.switch, "link", "set", name, "up")


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=100)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
    return done.stdout


def _namespaces() -> list[str]:
    return [line.split()[0] for line in _ip("netns", "list").splitlines() if line]


def _remove_namespace(namespace: str) -> None:
    # A grandchild would keep the namespace alive after its name is gone.
    with contextlib.suppress(subprocess.CalledProcessError):
        for pid in _ip("netns", "pids", namespace).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _ip("netns", "del", namespace)


def _sweep() -> None:
    """Removes what a killed test run left behind."""
    for namespace in _namespaces():
        found = re.fullmatch(rf"{PREFIX}-(\d+)-\d+-\d+", namespace)
        if found and not Path("/proc", found[1]).exists():
            _remove_namespace(namespace)


def _end(process: subprocess.Popen[Any] | prefork.Process) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
