"""A desk and hosts around it, each with a real sshd in a namespace of its own; the desk's owner uses ``rappd`` there.

The hosts have no rappd: a POSIX shell and one kind of tar each.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from fixtures import prefork
from fixtures.member_homes import files_in
from fixtures.ssh_server import SshServer, kill

from lan.network import Lan, Machine

RAPPD = Path(sys.executable).with_name("rappd")
TARS = ("gnu", "busybox", "bsdtar", "gnu", "busybox")
SHARED = "f" * 64
"""The hash of a twin that each host has, with content of its own."""
_TIME = 1_700_000_000


class Host(SshServer):
    """A host. ``twins`` are named by their hashes."""

    def __init__(self, machine: Machine, folder: Path, name: str, tar: str) -> None:
        super().__init__(
            folder,
            tar=tar,
            address=machine.address,
            port=22,
            prefix=["ip", "netns", "exec", machine.namespace],
        )
        self.machine, self.name = machine, name

    def twin(self, key: str, files: dict[str, bytes], *, name: str = "") -> Path:
        """Makes a twin."""
        folder = self.home / "twins" / key
        said = {"rappid": f"rappid:@me/{name or key[:8]}:{key}", "name": name or key[:8]}
        for path, content in {"rappid.json": json.dumps(said).encode(), **files}.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            os.utime(file, (_TIME, _TIME))
        return folder

    def tree(self) -> dict[str, bytes]:
        """The files of its twins, and the times and executable bits that should come back."""
        return tree(self.home / "twins")

    def wipe(self) -> None:
        """Loses everything."""
        shutil.rmtree(self.home)
        self.home.mkdir(mode=0o700)

    def slow_down(self, megabits: int) -> None:
        """Bounds the speed at which it, and the desk towards it, can send.

        Little waits in its sockets: what does would still arrive after its programs were killed.
        """
        self.machine.run(["sysctl", "-q", "-w", "net.ipv4.tcp_wmem=4096 16384 65536"], check=True)
        shape = ["root", "tbf", "rate", f"{megabits}mbit", "burst", "64kb", "latency", "50ms"]
        self.machine.run(["tc", "qdisc", "replace", "dev", "eth0", *shape], check=True)
        switch, port = self.machine.lan.switch, self.machine.port
        subprocess.run(
            ["ip", "netns", "exec", switch, "tc", "qdisc", "replace", "dev", port, *shape], check=True
        )

    @property
    def octets(self) -> int:
        """Octets that it sent and got since it is on the network. Starts no program: on a busy machine that is late."""
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/net/dev").read_text().splitlines()
        counted = next(line for line in lines if line.strip().startswith("eth0:")).partition(":")[2].split()
        return int(counted[0]) + int(counted[8])

    def kill_one(self, chance: random.Random) -> None:
        """Kills one of the programs that its visitors run: sshd's child, a shell, or tar."""
        if programs := self.sessions():
            kill(chance.choice(programs))


class Neighborhood:
    """The desk with its home, and the hosts. A context manager: afterwards nothing of it runs."""

    patience = 300.0
    """Seconds after which a command that has not ended counts as hanging."""

    def __init__(self, lan: Lan, folder: Path, tars: Sequence[str] = TARS) -> None:
        self.desk = lan.machine("desk")
        self.home = folder / "desk"
        self.home.mkdir(mode=0o700)
        self._held = ExitStack()
        self._sockets = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="ctl")))
        self.hosts = [
            Host(lan.machine(f"host{number}"), folder / f"host{number}", f"host{number}", tar)
            for number, tar in enumerate(tars, 1)
        ]
        self._config = folder / "ssh_config"

    def __enter__(self) -> Self:
        try:
            for host in self.hosts:
                self._held.enter_context(host)
        except BaseException:
            self._held.close()
            raise
        self._reach(self.hosts)
        self.write_peers([{"name": host.name, "ssh_host": host.address} for host in self.hosts])
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def also(self, server: SshServer, name: str) -> None:
        """Another entry in the desk's list of machines, by an alias."""
        self._reach([*self.hosts, server])
        known = f"HostName {server.address}\n  HostKeyAlias {server.address}"
        text = self._config.read_text()
        self._config.write_text(text.replace(f"Host {server.address}\n", f"Host {name}\n  {known}\n"))
        entries = [{"name": host.name, "ssh_host": host.address} for host in self.hosts]
        self.write_peers([*entries, {"name": name, "ssh_host": name}])

    def _reach(self, servers: Sequence[SshServer]) -> None:
        known = self.home.parent / "known_hosts"
        known.write_text("".join((one.folder / "known_hosts").read_text() for one in servers))
        blocks = [f"Host {one.address}\n  IdentityFile {one.folder}/user\n" for one in servers]
        self._config.write_text(
            "".join(blocks)
            + "Host *\n  User root\n  IdentitiesOnly yes\n  GlobalKnownHostsFile /dev/null\n"
            + f"  UserKnownHostsFile {known}\n"
        )

    def write_peers(self, entries: list[dict[str, str]]) -> None:
        """The desk's list of machines."""
        (self.home / "peers.json").write_text(json.dumps({"peers": entries}))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the desk's owner."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home.parent),
            "LANG": "C.UTF-8",
            "SSL_CERT_FILE": str(prefork.NO_AUTHORITY),
            "RAPP_HOME": str(self.home),
            "RAPPD_SSH_CONFIG": str(self._config),
            "RAPPD_NAME": "desk",
            "XDG_RUNTIME_DIR": str(self._sockets),
        }

    def command(self, *arguments: str) -> list[str | Path]:
        """The words of ``rappd neighborhood`` on the desk."""
        return [RAPPD, "neighborhood", *arguments]

    def rappd(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs ``rappd neighborhood`` on the desk to its end."""
        return self.desk.run_rappd(["neighborhood", *arguments], self.environment, timeout=self.patience)

    def snapshot(self, *arguments: str) -> dict[str, Any]:
        """Takes a snapshot that must be whole; the last line of its ``--json``."""
        done = self.rappd("snapshot", "--json", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout.splitlines()[-1]))

    def hatch(self, file: str, *arguments: str) -> dict[str, Any]:
        """Brings a snapshot back, which must succeed whole."""
        done = self.rappd("hatch", file, "--yes", "--json", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout)["hatched"])


def tree(twins: Path) -> dict[str, bytes]:
    """The files of twins by path, each with its time and executable bit; what a hatching adds is left out."""
    found = {}
    for path, content in files_in(twins).items():
        status = (twins / path).stat()
        if not path.startswith(".") and path.rpartition("/")[2] not in ("HATCH_RECEIPT.json", "bonds.json"):
            found[path] = b"%d %d " % (int(status.st_mtime), bool(status.st_mode & 0o100)) + content
    return found


def same(found: dict[str, bytes], expected: dict[str, bytes]) -> bool:
    """Compares two trees; what differs is printed, in few words."""
    for path in sorted(found.keys() | expected.keys()):
        if found.get(path) != expected.get(path):
            print(path, *(one.get(path, b"is missing")[:40] for one in (found, expected)))
    return found == expected
