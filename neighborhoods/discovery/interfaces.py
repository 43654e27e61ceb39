"""This machine's own addresses and links, as they are now. Blocking, about a millisecond: call in a thread."""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address

import msgspec

from neighborhoods.discovery.address_text import is_listened_on


class Interface(msgspec.Struct, frozen=True):
    """One link that carries traffic: its name, its number, and its addresses (IPv6 without a scope)."""

    name: str
    index: int
    addresses: tuple[str, ...]


def interfaces(*, loopback: bool = False) -> tuple[Interface, ...]:
    """Every running interface with an address, in the order of their numbers.

    Loopback is left out; with ``loopback`` there is only 127.0.0.1. A link without a carrier is not running.
    """
    import ifaddr

    found: list[Interface] = []
    for adapter in ifaddr.get_adapters():
        addresses: list[str] = []
        for one in adapter.ips:
            text = one.ip if isinstance(one.ip, str) else one.ip[0]
            text = text.partition("%")[0]
            if text == "127.0.0.1" if loopback else not ip_address(text).is_loopback:
                addresses.append(text)
        if addresses and (loopback or _is_running(adapter.name)):
            found.append(Interface(adapter.name, adapter.index or 0, tuple(sorted(addresses, key=_order))))
    return tuple(sorted(found, key=lambda interface: interface.index))


def announced_addresses(found: tuple[Interface, ...], hosts: Collection[str]) -> list[str]:
    """The addresses of these that a listener at ``hosts`` takes, IPv4 first, at most 16."""
    every = dict.fromkeys(one for interface in found for one in interface.addresses)
    return sorted((one for one in every if is_listened_on(one, hosts)), key=lambda one: ":" in one)[
        :_MOST_ANNOUNCED
    ]


def zone_trouble(host: str) -> tuple[str, str] | None:
    """Returns why a link-local IPv6 address leads nowhere from here, and what to do; None when it may lead somewhere."""
    try:
        found = ip_address(host)
    except ValueError:
        return None
    if not isinstance(found, IPv6Address) or not found.is_link_local:
        return None
    links = [one.name for one in interfaces()] or ["eth0"]
    bare = host.partition("%")[0]
    if not found.scope_id:
        return (
            "An address that begins with fe80 leads nowhere without its link.",
            f"Say by which link: {bare}%{links[0]}",
        )
    try:
        if found.scope_id.isdecimal():
            socket.if_indextoname(int(found.scope_id))
        else:
            socket.if_nametoindex(found.scope_id)
    except (OSError, OverflowError):
        return f"This machine has no link {found.scope_id}.", f"It has: {', '.join(links)}"
    return None


def multicast_trouble(found: tuple[Interface, ...]) -> str:
    """Returns the reason why nothing can be announced on these, for people; "" when one of them allows it."""
    if not found:
        return "No network connection."
    trouble = ""
    for interface in found:
        if not _speaks_to_many(interface.name):
            trouble = trouble or f"{interface.name} carries no multicast."
            continue
        for address in interface.addresses:
            try:
                _ask_for_a_route(interface.index, address)
            except OSError as error:
                trouble = trouble or f"{interface.name} carries no multicast: {error.strerror}."
            else:
                return ""
    return trouble


def slept() -> float:
    """Seconds that this machine has slept since it was switched on. Only differences mean anything."""
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    elif sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    else:
        return 0.0


def _order(address: str) -> tuple[bool, bool, str]:
    found = ip_address(address)
    return found.version == 6, found.is_link_local, address


def _is_running(name: str) -> bool:
    if sys.platform == "linux":
        return _flags(name) & _UP_AND_RUNNING == _UP_AND_RUNNING
    else:
        return True


def _speaks_to_many(name: str) -> bool:
    """True for a link that carries multicast; loopback does, whatever its flags say."""
    return sys.platform != "linux" or bool(_flags(name) & (_MULTICAST | _LOOPBACK))


def _flags(name: str) -> int:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking, _SIOCGIFFLAGS, struct.pack("16sH22x", name.encode()[:15], 0))
        except OSError:
            return 0  # it went away meanwhile
    return int.from_bytes(answer[16:18], sys.byteorder)


def _ask_for_a_route(index: int, address: str) -> None:
    # Connecting a datagram socket sends nothing; it only asks the kernel for a way.
    if ":" in address:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as asking:
            asking.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            asking.connect(("ff02::fb", 5353, 0, index))
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        asking.connect(("224.0.0.251", 5353))


_SIOCGIFFLAGS = 0x8913
_UP_AND_RUNNING = 0x1 | 0x40
_LOOPBACK, _MULTICAST = 0x8, 0x1000
_MOST_ANNOUNCED = 16
