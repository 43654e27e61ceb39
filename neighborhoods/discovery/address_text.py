"""Addresses of machines as text: ``host:port``, IPv6 hosts in brackets, link-local ones with their scope."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Literal
from urllib.parse import urlsplit

from envelopes.ip_addresses import IpAddress, counts_as, is_this_machine
from neighborhoods.errors import NeighborhoodError

FEDERATION_PORT = 7443
"""The federation listener's usual port."""
LOOPBACK_PORT = 7071
"""The usual port of a brainstem on its own machine."""
ANY = "any"
"""The address of a listener at every address of both families."""
ANY_HOSTS = ("0.0.0.0", "::")  # noqa: S104


class BadAddressError(NeighborhoodError):
    """Text that names no machine and port."""

    code = "bad_address"
    status = 400
    exit_code = 2


AddressKind = Literal["machine", "brainstem", "tier2", "agent"]
"""A listener for machines, a published brainstem, one behind a Tier 2 path (RAPP v1 §18.2), an A2A agent's card."""


def kind_of(url: str) -> AddressKind:
    """The kind of what is written down with that URL, by its form alone. Raises ``ValueError`` with a clause."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("is no URL") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("is neither http:// nor https://")
    if parts.query or parts.fragment:
        raise ValueError("holds a query or a fragment, which does not belong in an address")
    if parts.path in ("", "/"):
        return "machine" if parts.scheme == "https" else "brainstem"
    if parts.path.endswith(_CARDS):
        return "agent"
    if _TIER_2.fullmatch(parts.path):
        return "tier2"
    raise ValueError("names a path that is neither an agent card nor a Tier 2 function")


_CARDS = ("/agent-card.json", "/agent.json")
_TIER_2 = re.compile(r"/api/[A-Za-z0-9_-]{1,100}")


def join(host: str, port: int) -> str:
    """``host:port``; an IPv6 host is put in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split(address: str, port: int = FEDERATION_PORT) -> tuple[str, int]:
    """The host and port of ``host``, ``host:port``, ``[v6]`` or ``[v6]:port``. Raises ``BadAddressError``."""
    text = address.strip()
    if text.count(":") > 1 and not text.startswith("["):
        host, digits = text, ""
    else:
        found = re.fullmatch(_ADDRESS, text)
        if found is None:
            raise _bad(address)
        host, digits = found["v6"] or found["host"] or "", found["port"] or ""
    if ":" in host or text.startswith("["):
        try:
            found_host = IPv6Address(host)
        except ValueError:
            raise _bad(address) from None
        if found_host.scope_id and not re.fullmatch(_ZONE, found_host.scope_id):
            raise _bad(address)
    elif len(host) > 253 or not re.fullmatch(_HOST, host):
        raise _bad(address)
    number = int(digits) if digits else port
    if not 1 <= number <= 65535:
        raise _bad(address)
    name, zone, link = host.partition("%")
    return name.lower() + zone + link, number  # names of links are told apart by case


def is_loopback(host: str) -> bool:
    """True when a host names this machine itself, or no machine: ``localhost``, 127.0.0.1, ::1, 0.0.0.0."""
    return is_this_machine(host)


def is_unspecified(host: str) -> bool:
    """Tests whether a host is the address of no machine: 0.0.0.0, ::."""
    try:
        return counts_as(host).is_unspecified
    except ValueError:
        return False


def listening_hosts(address: str) -> tuple[str, ...]:
    """The hosts at which a listener with that address listens: one for each family."""
    return ANY_HOSTS if address in ("", ANY) else (address,)


def is_listened_on(host: str, listening: Collection[str]) -> bool:
    """True when one of the ``listening`` hosts takes what comes to ``host``, an address of this machine."""
    found = counts_as(host, translated=False)
    return any(
        meant == found or (meant.is_unspecified and meant.version == found.version)
        for meant in (counts_as(one, translated=False) for one in listening)
    )


def network_of(host: str) -> str:
    """The network of 64 bits that an IPv6 address is in: a machine gives itself as many addresses there as it likes.

    Anything else as it is; an address that only leads to an IPv4 one as that.
    """
    try:
        found = counts_as(host)
    except ValueError:
        return host
    return str(IPv6Network((int(found), 64), strict=False)) if found.version == 6 else str(found)


def leads_somewhere(host: str, *, loopback: bool = False) -> bool:
    """True when an announced IP address can lead to another machine.

    Not: loopback (unless ``loopback``), multicast, reserved, mapped, and link-local IPv6 without a scope.
    """
    try:
        found = _parsed(host)
    except ValueError:
        return False
    if is_loopback(host):
        return loopback and not is_unspecified(host)
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped or (found.is_link_local and not found.scope_id):
            return False
        meant = counts_as(found)
        return not found.is_multicast and not (meant.version == 4 and _leads_nowhere(meant))
    return not _leads_nowhere(found)


def _leads_nowhere(address: IpAddress) -> bool:
    return address.is_multicast or address.is_reserved


def preference(host: str) -> int:
    """Sorts addresses of one machine, the likeliest first: IPv4, IPv6, link-local IPv4, link-local IPv6."""
    found = _parsed(host)
    return (2 if found.is_link_local else 0) + (found.version == 6)


@lru_cache(4096)
def _parsed(host: str) -> IPv4Address | IPv6Address:
    return ip_address(host)


def _bad(address: str) -> BadAddressError:
    shown = "".join(sign for sign in address[:80] if sign.isprintable())
    return BadAddressError(
        f"“{shown}” is no address.", do="Write it as HOST or HOST:PORT, like 192.168.1.12:7443."
    )


_ADDRESS = r"(?:\[(?P<v6>[^\[\]/@]+)\]|(?P<host>[^\[\]:/@\s]+))(?::(?P<port>[0-9]{1,5}))?"
_ZONE = r"[A-Za-z0-9._-]{1,15}"
"""A link's name (Linux has 15 bytes for it) or number. It is shown in commands: nothing that a shell would act on."""
_HOST = r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?"
