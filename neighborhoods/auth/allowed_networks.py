"""The networks from which the listeners take callers: with IPv6 there is no translator between a home and the world.

A machine with a global IPv6 address is reached from everywhere, as soon as it listens there and its router lets that
through. So a caller with such an address counts only where it is of a network that this machine is in, or of one that
its owner named (``listen.networks``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from pathlib import Path

from envelopes.ip_addresses import IpAddress, counts_as

WIDEST_NAMED = 32
"""The shortest prefix that can be named: a company, not half the world."""
_WIDEST_OWN = 48
"""No site is larger (RFC 6177). A tunnel's address says more: 2002:c000:204::1/16 is every user of 6to4."""
_UNIQUE_LOCAL = IPv6Network("fc00::/7")  # RFC 4193
_TEREDO = IPv6Network("2001::/32")  # RFC 4380: one prefix for everybody behind one server
_READ_SECONDS = 2.0
_UP, _GATEWAY, _REJECT = 0x1, 0x2, 0x200  # linux/route.h


class LocalNetworks:
    """This machine's own IPv6 networks, as they are now, and those that its owner named."""

    def __init__(
        self, named: Iterable[str] = (), own: Callable[[], tuple[IPv6Network, ...]] | None = None
    ) -> None:
        """``named`` are networks as ``2001:db8:5::/48``. Raises ``ValueError`` for what is none."""
        self._named = tuple(ipv6_network(text) for text in named)
        self._look = own or own_networks
        self._own: tuple[IPv6Network, ...] = ()
        self._looked = float("-inf")

    def admits(self, source: str) -> bool:
        """True where a caller with that address may come in at all. May block 1 ms, every two seconds.

        IPv4 always may: a listener at a public IPv4 address is its owner's doing. Of IPv6 addresses those of a link
        and of a site may, and the global ones of these networks.
        """
        try:
            # A tunnel's address that carries a near one is somebody else's.
            found = counts_as(source, translated=False)
        except ValueError:
            return False
        return not _is_global(found) or self.holds(found)

    def holds(self, address: IpAddress) -> bool:
        """True for an IPv6 address of one of these networks. May block 1 ms, every two seconds."""
        if isinstance(address, IPv4Address):
            return False
        if any(address in network for network in self._named):
            return True
        if time.monotonic() - self._looked >= _READ_SECONDS:
            self._own, self._looked = self._look(), time.monotonic()
        return any(address in network for network in self._own)


def ipv6_network(text: str) -> IPv6Network:
    """The network that is written as ``2001:db8:5::/48``. Raises ``ValueError`` for none, and for half the world."""
    found = ip_network(text.strip(), strict=False)
    if not isinstance(found, IPv6Network) or "%" in text:
        raise ValueError(f"{text[:60]!r} is no IPv6 network")
    if found.prefixlen < WIDEST_NAMED:
        raise ValueError(f"{text[:60]!r} is too many machines at once")
    return found


def own_networks() -> tuple[IPv6Network, ...]:
    """The IPv6 networks of this machine's addresses and links. Blocks 1 ms."""
    import ifaddr

    found = [
        own_network(one.ip[0], one.network_prefix)
        for adapter in ifaddr.get_adapters()
        for one in adapter.ips
        if not isinstance(one.ip, str)
    ]
    with suppress(OSError):  # another system, or no IPv6
        found += on_link(Path("/proc/net/ipv6_route").read_text())
    return tuple(dict.fromkeys(network for network in found if not network.subnet_of(_TEREDO)))


def own_network(address: str, prefix: int) -> IPv6Network:
    """The network of an address of this machine, and never more than a site."""
    return IPv6Network((address.partition("%")[0], max(prefix, _WIDEST_OWN)), strict=False)


def on_link(table: str) -> list[IPv6Network]:
    """The networks in Linux' table of routes that a link leads to without a router.

    An address by DHCPv6 has 128 bits: the network that it is in is known by the router's announcement alone.
    """
    found = []
    for line in table.splitlines():
        target, prefix, _, _, _, _, _, _, flags, link = line.split()
        kind = int(flags, 16) & (_UP | _GATEWAY | _REJECT)
        if kind == _UP and link != "lo" and int(prefix, 16) >= _WIDEST_OWN:
            found.append(IPv6Network((int(target, 16), int(prefix, 16)), strict=False))
    return found


def _is_global(address: IpAddress) -> bool:
    """True for an IPv6 address that the world can send from."""
    return isinstance(address, IPv6Address) and not (
        address.is_loopback or address.is_link_local or address in _UNIQUE_LOCAL
    )
