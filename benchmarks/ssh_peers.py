"""Machines for a benchmark: each a real sshd with a home of its own, and the client's configuration."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self


def missing() -> str:
    """Names what this machine lacks for it; "" when nothing."""
    needed = ("ssh", "sshd", "ssh-keygen", "rsync", "tar", "ip", "tc")
    lacks = [name for name in needed if _program(name) is None]
    return ", ".join([*lacks, *([] if os.geteuid() == 0 else ["root"])])


class SshPeers:
    """Machines ``peer1``, ``peer2``, …; the folder of each is its ``RAPP_HOME``. A context manager.

    They listen on 127.0.0.1, or, with ``megabits``, each behind a line of its own that carries so many Mbit/s.
    """

    def __init__(self, root: Path, count: int, *, megabits: int = 0) -> None:
        self.names = [f"peer{number}" for number in range(1, count + 1)]
        self.homes = {name: root / name for name in self.names}
        self.config = root / "ssh_config"
        self._root, self._megabits = root, megabits
        self._held = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._held.close()
            raise
        return self

    def _begin(self) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._root / name], check=True
            )
        blocks, known = [], []
        for number, name in enumerate(self.names, 1):
            address, prefix = self._line(number) if self._megabits else ("127.0.0.1", [])
            port = _free_port()
            self._start(name, address, port, prefix)
            blocks.append(f"Host {name}\n  HostName {address}\n  Port {port}\n  HostKeyAlias {name}\n")
            known.append(f"{name} {(self._root / 'host.pub').read_text()}")
        (self._root / "known_hosts").write_text("".join(known))
        self.config.write_text(
            "".join(blocks)
            + f"Host *\n  User root\n  IdentityFile {self._root}/user\n  IdentitiesOnly yes\n"
            + f"  UserKnownHostsFile {self._root}/known_hosts\n"
        )

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def ssh(self) -> list[str]:
        """The command that reaches them."""
        return ["ssh", "-F", str(self.config)]

    def _line(self, number: int) -> tuple[str, list[str]]:
        """Makes a namespace behind a line of its own; its address, and the beginning of a command that runs in it."""
        namespace, near = f"bench-{os.getpid()}-{number}", f"bench{number}"
        network = f"10.79.{number}"
        _ip("netns", "add", namespace)
        self._held.callback(_remove, namespace)
        _ip("link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        for inside, link, host in ((["-n", namespace], "eth0", 2), ([], near, 1)):
            _ip(*inside, "address", "add", f"{network}.{host}/24", "dev", link)
            _ip(*inside, "link", "set", link, "up")
            shape = ["root", "tbf", "rate", f"{self._megabits}mbit", "burst", "64kb", "latency", "50ms"]
            subprocess.run(["tc", *inside, "qdisc", "add", "dev", link, *shape], check=True)
        return f"{network}.2", ["ip", "netns", "exec", namespace]

    def _start(self, name: str, address: str, port: int, prefix: list[str]) -> None:
        self.homes[name].mkdir(mode=0o700, exist_ok=True)
        sshd = _program("sshd")
        assert sshd is not None
        options = (
            f"HostKey={self._root}/host",
            f"AuthorizedKeysFile={self._root}/user.pub",
            "StrictModes=no",
            "PidFile=none",
            f"ListenAddress={address}:{port}",
            f'SetEnv="RAPP_HOME={self.homes[name]}" "HOME={self._root}" "PATH=/usr/bin:/bin" "SHLVL=5"',
        )
        words = [word for option in options for word in ("-o", option)]
        command = [*prefix, sshd, "-D", "-e", "-f", "/dev/null", *words]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self._held.callback(_end, process)
        until = time.monotonic() + 10
        while not _listens(address, port):
            if time.monotonic() > until:
                raise TimeoutError(f"sshd of {name} does not listen")
            time.sleep(0.02)


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"/usr/sbin:/usr/bin:/sbin:/bin:{os.environ.get('PATH', '')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _remove(namespace: str) -> None:
    found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    for pid in map(int, found.stdout.split()):  # visitors: a connection is kept after its last command
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _ip("netns", "del", namespace)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
