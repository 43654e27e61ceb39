"""Addresses of this machine under which a phone finds it."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from neighborhoods.discovery.addresses import is_unspecified, join
from neighborhoods.discovery.interfaces import interfaces


def reachable_addresses(configured: str, port: int) -> list[str]:
    """``host:port`` without loopback, the address of the default route first; empty without a network. Blocks 1 ms.

    IPv6 is left out: phones rarely have a route to it by a typed address.
    """
    if configured and not is_unspecified(configured):
        return [join(configured, port)]
    found = [one for link in interfaces() for one in link.addresses if ip_address(one).version == 4]
    first = _default_route()
    found.sort(key=lambda one: (one != first, not ip_address(one).is_private))
    return [join(one, port) for one in found]


def _default_route() -> str:
    """The address that packets to the internet would carry; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return address
