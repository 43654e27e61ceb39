"""Programs that hold TCP ports on this machine."""

from __future__ import annotations

import itertools
import random
import socket
from pathlib import Path

import msgspec

from agents.programs import programs

TWIN_PORTS = range(7081, 7200)
"""Ports of booted twins (RAPP v1 §18.13)."""
_LISTEN = "0A"
_INTERPRETERS = ("python", "node", "ruby", "java", "perl", "php", "deno", "bun")
_SEARCH = 100
_ASIDE = range(20_000, 32_000)
"""Below the ports that systems lend to connections: those are taken and given back at any moment."""


class PortHolder(msgspec.Struct, frozen=True):
    """The process that listens on a port; ``pid`` 0 and name "another program" when it hides."""

    name: str
    pid: int

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})" if self.pid else self.name


def is_free(port: int) -> bool:
    """True when a daemon could listen there now, on 127.0.0.1 and, where it exists, on ::1."""
    return all(_binds(family, host, port) for family, host in _LOOPBACK)


def another(port: int) -> int:
    """A port to propose in the place of one that is taken: 100 further on, or the next free one."""
    first = port + 100 if port + 100 + _SEARCH < 65536 else 7171
    return next((found for found in range(first, first + _SEARCH) if is_free(found)), first)


def aside(count: int) -> list[int]:
    """Free ports that nobody gets by chance before a daemon listens there."""
    some = random.SystemRandom().sample(_ASIDE, 500)
    return list(itertools.islice(filter(is_free, some), count))


def holder(port: int) -> PortHolder:
    """Returns the program that listens on ``port``, as far as this account may see."""
    if Path("/proc/net/tcp").exists():
        inodes = _listening(port)
        for entry in Path("/proc").iterdir() if inodes else ():
            if entry.name.isdecimal() and _holds(entry, inodes) and (name := _name(entry)):
                return PortHolder(name, int(entry.name))
        return PortHolder("another program", 0)
    return _by_lsof(port)


_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


def _binds(family: socket.AddressFamily, host: str, port: int) -> bool:
    try:
        probe = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return True  # no such family here
    with probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return not _has(family, host)
    return True


def _has(family: socket.AddressFamily, host: str) -> bool:
    """True when the address exists: any port of it can be bound."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


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


def _name(process: Path) -> str:
    """Returns the name that a person uses for the program: for an interpreter, its script."""
    try:
        name = (process / "comm").read_text().strip()
        words = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    if name.startswith(_INTERPRETERS):
        name = _script(words[1:]) or name
    return "".join(sign for sign in name if sign.isprintable())[:60]


def _script(words: list[str]) -> str:
    if words[:1] == ["-m"]:
        return words[1] if len(words) > 1 else ""
    return Path(words[0]).name if words and not words[0].startswith("-") else ""


def _by_lsof(port: int) -> PortHolder:
    try:
        lines = programs.run(["lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpc"]).text.splitlines()
    except OSError:
        return PortHolder("another program", 0)
    found = {line[0]: line[1:] for line in reversed(lines) if line}
    return PortHolder(found.get("c", "another program"), int(found.get("p", "0")))
