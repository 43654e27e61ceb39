"""Tells whether a worker, or a program that a worker started, serves a TCP connection of this machine."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agents.runtimes.python.pools.started_processes import descendants
from envelopes.ip_addresses import counts_as, is_this_machine

Address = tuple[str, int]
_IP = ipaddress.IPv4Address | ipaddress.IPv6Address

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN = "0A"
_LOOPBACK = frozenset((ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")))


class _Socket(NamedTuple):
    local: tuple[_IP, int]
    remote: tuple[_IP, int]
    listens: bool
    uid: int
    inode: str


def worker_serves(zygote_pid: int, server: Address, client: Address | None = None) -> bool:
    """True when the process behind ``server`` is the zygote process or descends from it.

    ``client`` is this side's address of an open connection: then the socket that accepted it is looked at,
    too. A worker may hide its open files from the daemon; while one does, a socket of its account counts as
    its own unless another process is seen to hold it. Linux only; blocks on ``/proc``.
    """
    serving = {found.inode: found.uid for found in _serving(server, client)}
    if not serving:
        return False
    hidden: list[int] = []
    for pid in (zygote_pid, *descendants(zygote_pid)):
        sockets = _sockets_of(pid)
        if sockets is None:
            hidden.append(pid)
        elif not sockets.isdisjoint(serving):
            return True
    if not hidden or _held_elsewhere(serving):
        return False
    accounts = {uid for pid in hidden for uid in _accounts_of(pid)}
    return not accounts.isdisjoint(serving.values())


def account_of(local: Address, remote: Address) -> int | None:
    """The account that opened the connection whose own end is ``local``; None when it cannot be told."""
    ends = tuple((_plain(host), port) for host, port in (local, remote))
    return next((found.uid for found in _sockets() if (found.local, found.remote) == ends), None)


def _serving(server: Address, client: Address | None) -> Iterator[_Socket]:
    host, port = server
    wanted = _reached(host)
    caller = (_plain(client[0]), client[1]) if client else None
    for found in _sockets():
        address, at = found.local
        if at != port:
            continue
        if found.listens:
            if address in wanted or address.is_unspecified:
                yield found
        elif caller is not None and found.remote == caller and address in wanted:
            yield found


def _reached(host: str) -> frozenset[_IP]:
    """The addresses that a connection to ``host`` may end at: a name of this machine, and no address, is loopback."""
    try:
        found = _plain(host)
    except ValueError:
        if is_this_machine(host):
            return _LOOPBACK
        raise
    return _LOOPBACK | {found} if found.is_unspecified else frozenset((found,))


def _sockets() -> Iterator[_Socket]:
    for table in _TABLES:
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[9] != "0":
                yield _Socket(
                    _address(fields[1]),
                    _address(fields[2]),
                    fields[3] == _LISTEN,
                    int(fields[7]),
                    f"socket:[{fields[9]}]",
                )


def _address(text: str) -> tuple[_IP, int]:
    """``0100007F:1F90`` as an address: words of 32 bits in the machine's own byte order."""
    words, _, port = text.partition(":")
    packed = b"".join(
        int(words[start : start + 8], 16).to_bytes(4, sys.byteorder) for start in range(0, len(words), 8)
    )
    return _plain(ipaddress.ip_address(packed)), int(port, 16)


def _plain(address: str | _IP) -> _IP:
    """The address as the kernel's table has it: without a zone, an IPv4-mapped one as IPv4, and no further."""
    return counts_as(address, translated=False)


def _sockets_of(pid: int) -> set[str] | None:
    """The sockets that a process has open; None when it hides them."""
    sockets = set()
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed while we looked
                sockets.add(str(descriptor.readlink()))
    except PermissionError:
        return None
    except OSError:
        return set()  # it ended
    return sockets


def _held_elsewhere(inodes: Iterable[str]) -> bool:
    wanted = set(inodes)
    processes = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return any(not wanted.isdisjoint(_sockets_of(pid) or ()) for pid in processes)


def _accounts_of(pid: int) -> set[int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return set()
    return {int(uid) for line in lines if line.startswith("Uid:") for uid in line.split()[1:]}
