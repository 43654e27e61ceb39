"""Machines for a benchmark: each a real sshd on 127.0.0.1 with a home of its own, and the client's configuration."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self


def missing() -> str:
    """Names what this machine lacks for it; "" when nothing."""
    lacks = [name for name in ("ssh", "sshd", "ssh-keygen", "rsync", "tar") if _program(name) is None]
    return ", ".join([*lacks, *([] if os.geteuid() == 0 else ["root"])])


class SshPeers:
    """Machines ``peer1``, ``peer2``, …; the folder of each is its ``RAPP_HOME``. A context manager."""

    def __init__(self, root: Path, count: int) -> None:
        self.names = [f"peer{number}" for number in range(1, count + 1)]
        self.homes = {name: root / name for name in self.names}
        self.config = root / "ssh_config"
        self._root = root
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._root / name], check=True
            )
        blocks, known = [], []
        for name in self.names:
            port = _free_port()
            self._start(name, port)
            blocks.append(f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  HostKeyAlias {name}\n")
            known.append(f"{name} {(self._root / 'host.pub').read_text()}")
        (self._root / "known_hosts").write_text("".join(known))
        self.config.write_text(
            "".join(blocks)
            + f"Host *\n  User root\n  IdentityFile {self._root}/user\n  IdentitiesOnly yes\n"
            + f"  UserKnownHostsFile {self._root}/known_hosts\n"
        )
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def ssh(self) -> list[str]:
        """The command that reaches them."""
        return ["ssh", "-F", str(self.config)]

    def _start(self, name: str, port: int) -> None:
        self.homes[name].mkdir(mode=0o700, exist_ok=True)
        sshd = _program("sshd")
        assert sshd is not None
        options = (
            f"HostKey={self._root}/host",
            f"AuthorizedKeysFile={self._root}/user.pub",
            "StrictModes=no",
            "PidFile=none",
            f"ListenAddress=127.0.0.1:{port}",
            f'SetEnv="RAPP_HOME={self.homes[name]}" "HOME={self._root}" "PATH=/usr/bin:/bin" "SHLVL=5"',
        )
        words = [word for option in options for word in ("-o", option)]
        self._processes.append(
            subprocess.Popen([sshd, "-D", "-e", "-f", "/dev/null", *words], stderr=subprocess.DEVNULL)
        )
        until = time.monotonic() + 10
        while not _listens(port):
            if time.monotonic() > until:
                raise TimeoutError(f"sshd of {name} does not listen")
            time.sleep(0.02)


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"/usr/sbin:/usr/bin:/sbin:/bin:{os.environ.get('PATH', '')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
