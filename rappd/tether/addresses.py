"""Addresses of this machine under which a phone finds it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_address

from neighborhoods.discovery.address_text import is_listened_on, is_unspecified, join, network_of, split
from neighborhoods.discovery.interfaces import interfaces


def reachable_addresses(listening: Sequence[str], port: int) -> list[str]:
    """``host:port`` without loopback, where a listener at these hosts is reached; empty without a network. Blocks 1 ms.

    The addresses of the default routes come first (IPv4 alone may be that of a container), and IPv4 before IPv6, to
    which phones rarely have a route where there is both. Link-local IPv6 is left out: a browser takes no zone, without which it leads nowhere.
    """
    if not any(map(is_unspecified, listening)):
        return [join(host, port) for host in listening]
    every = [
        ip_address(one) for link in interfaces() for one in link.addresses if is_listened_on(one, listening)
    ]
    found = [one for one in every if one.version == 4 or not one.is_link_local]
    first = {_default_route(socket.AF_INET, "192.0.2.1"), _default_route(socket.AF_INET6, "2001:db8::1")}
    found.sort(key=lambda one: (str(one) not in first, one.version == 6, not one.is_private))
    return [join(str(one), port) for one in found]


def one_of_each_network(addresses: Sequence[str]) -> list[str]:
    """The first ``host:port`` of each IPv6 network of 64 bits, and every other: a link gives itself several there."""
    found = {network_of(split(one)[0]): one for one in reversed(addresses)}
    return [one for one in addresses if one in found.values()]


def _default_route(family: socket.AddressFamily, far: str) -> str:
    """The address that packets to ``far``, somewhere in the internet, would carry; nothing is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            address: str = probe.getsockname()[0]
            return address
    except OSError:
        return ""  # no such route, or no such family
