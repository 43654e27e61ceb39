"""Who holds a TCP port on this machine."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

_LISTEN = "0A"


@dataclass(slots=True, frozen=True)
class Holder:
    """The process that listens on a port; ``pid`` 0 and name "another program" when it hides."""

    name: str
    pid: int

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})" if self.pid else self.name


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a daemon could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def holder(port: int) -> Holder:
    """Who listens on ``port``, as far as this account may see."""
    inodes = _listening(port)
    for entry in Path("/proc").iterdir() if Path("/proc/net/tcp").exists() else ():
        if entry.name.isdecimal() and _holds(entry, inodes):
            try:
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            return Holder(name, int(entry.name))
    return Holder("another program", 0)


def _listening(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def _holds(process: Path, inodes: set[str]) -> bool:
    try:
        return any(str(link.readlink()) in inodes for link in (process / "fd").iterdir())
    except OSError:
        return False
