"""The hosts that code may talk to, by its needs: names and ports, and the addresses behind a name.

Pure. Without a port a host means 80 and 443. Addresses that are not public count only where they are named, so that
no name server, which anybody may run, leads into the home network: as an address, as ``localhost``, or as a name of
the home network (RFC 6762, 8375, 9476 and names without a dot), which never stands for this machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.runtimes.python.sandbox.needs import split_host
from envelopes.ip_addresses import IpAddress, counts_as

_WEB = (80, 443)
_ANY = "*"
_LOCALHOST = "localhost"
_HOME = (".local", ".home.arpa", ".internal", ".lan")


class HostRules:
    """The rules that follow from ``servers``, the hosts of needs without variables."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = [split_host(one) for one in servers]

    def admits(self, host: str, port: int) -> bool:
        """True where a need names this host with this port. ``host`` is a name or an address without brackets."""
        return any(_is_of(host, name) and (port == at if at else port in _WEB) for name, at in self._servers)

    def is_public_name(self, host: str) -> bool:
        """True for a name or an address outside of this machine and of the home network."""
        address = _address(host)
        if address is not None:
            return counts_as(host).is_global
        return "." in host and not host.endswith(_HOME)

    def allows(self, host: str, address: str) -> bool:
        """True where ``address``, to which the admitted ``host`` leads, may be connected to."""
        found = counts_as(address)
        if found.is_global and not found.is_multicast:
            return True
        names = [name for name, _ in self._servers if name != _ANY and _is_of(host, name)]
        if any(_address(name) == counts_as(address, translated=False) for name in names):
            return True
        if host == _LOCALHOST:
            return found.is_loopback and bool(names)
        at_home = "." not in host or host.endswith(_HOME)
        elsewhere = found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
        return bool(names) and at_home and found.is_private and not elsewhere


def _is_of(host: str, name: str) -> bool:
    host = host.lower().rstrip(".")
    if name == _ANY:
        return True
    if name.startswith("*."):
        return host.endswith(name[1:])
    if (address := _address(name)) is not None:
        return _address(host) == address
    return host == name


def _address(text: str) -> IpAddress | None:
    try:
        return counts_as(text, translated=False)
    except ValueError:
        return None
