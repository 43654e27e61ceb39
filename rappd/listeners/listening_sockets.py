"""Listening sockets of the listeners on the network: one for each family of addresses, at one port."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Sequence

from neighborhoods.discovery.address_text import listening_hosts

log = logging.getLogger(__name__)

BACKLOG = 512
_FURTHER = 100
FAMILY_MISSING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


def listen(address: str, port: int) -> tuple[socket.socket, ...]:
    """Listening sockets at that port, or at a free one; none when the address is not this machine's.

    The address ``any`` is every one of both families, on two sockets: a single one for both would show IPv4 callers
    as ``::ffff:…``, and systems differ in whether they make one. A family that this system lacks is left out.
    """
    hosts = listening_hosts(address)
    for wanted in (*range(port, port + _FURTHER), 0):
        try:
            found = _at(hosts, wanted)
        except OSError as error:
            if error.errno in _TAKEN:
                continue
            log.error("a listener cannot open at %s: %s", address, error.strerror)
            return ()
        if found:
            return found
    return ()


def _at(hosts: Sequence[str], port: int) -> tuple[socket.socket, ...]:
    """Opens a socket for each host, all at one port. Raises ``OSError``."""
    found: list[socket.socket] = []
    try:
        for host in hosts:
            try:
                found.append(listening_socket(host, found[0].getsockname()[1] if found else port))
            except OSError as error:
                if len(hosts) == 1 or error.errno not in FAMILY_MISSING:
                    raise
                log.info("no listener at %s: %s", host, error.strerror)
    except OSError:
        for listener in found:
            listener.close()
        raise
    return tuple(found)


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at one address, of its family alone. Raises ``OSError``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
