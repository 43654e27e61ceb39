"""IP addresses as what they lead to: one reading for every rule that an address decides.

One machine can be written in many ways: ``::ffff:127.0.0.1`` is 127.0.0.1 to every socket, ``fe80::1%eth0`` is
``fe80::1``, and behind a translator ``64:ff9b::7f00:1`` is 127.0.0.1 again. A rule that compares the text is passed by.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

IpAddress = IPv4Address | IPv6Address

_CARRIES_IPV4 = (
    IPv6Network("::/96"),  # IPv4-compatible, RFC 4291 2.5.5.1
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated, RFC 2765 2.1
    IPv6Network("64:ff9b::/96"),  # NAT64, RFC 6052 2.1
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of a site, RFC 8215; most use the last 32 bits
)
_PART = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


@lru_cache(4096)
def counts_as(written: str | IpAddress, *, translated: bool = True) -> IpAddress:
    """Returns the address that ``written`` leads to, without brackets and zone. Raises ``ValueError`` for a name.

    IPv4-mapped ones are the IPv4 address. With ``translated`` so are those that a translator or tunnel leads there:
    IPv4-compatible, NAT64, 6to4 and Teredo; right for whatever refuses or counts. A rule that *allows* an address leaves
    them what they are: anybody may send from ``2002:c0a8:114::1``, which is no 192.168.1.20.
    """
    found = _parsed(written) if isinstance(written, str) else written
    if isinstance(found, IPv4Address):
        return found
    if found.scope_id:
        found = IPv6Address(int(found))
    if found.ipv4_mapped:
        return found.ipv4_mapped
    if not translated or int(found) < 2:  # :: and ::1
        return found
    if found.sixtofour:
        return found.sixtofour
    if found.teredo:
        return found.teredo[1]
    if any(found in network for network in _CARRIES_IPV4):
        return IPv4Address(int(found) & 0xFFFFFFFF)
    return found


def is_this_machine(host: str) -> bool:
    """True when a host names this machine itself, or no machine: ``localhost``, 127.0.0.1, ::1, 0.0.0.0, however written."""
    name = host.strip().rstrip(".").lower()
    if name in _NAMES or name.endswith(".localhost"):
        return True
    try:
        found = counts_as(host)
    except ValueError:
        return False
    # 0.0.0.0/8 is "this host on this network" (RFC 1122 3.2.1.3): Linux connects 0.0.0.0 to loopback.
    return (
        found.is_loopback
        or found.is_unspecified
        or (found.version == 4 and found in IPv4Network("0.0.0.0/8"))
    )


def source_text(address: str) -> str:
    """The text by which a caller at ``address`` is counted; ``address`` itself where it is none."""
    try:
        return str(counts_as(address))
    except ValueError:
        return address


def dialled_text(address: str) -> str:
    """``address`` as it is called back: an IPv4-mapped one as IPv4; a zone stays, since it says by which link."""
    try:
        found = _parsed(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or found) if isinstance(found, IPv6Address) else str(found)


def _parsed(written: str) -> IpAddress:
    text = written.strip().rstrip(".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    try:
        return ip_address(text)
    except ValueError:
        return _short_form(text)


def _short_form(text: str) -> IPv4Address:
    """The address of ``127.1``, ``0x7f.1`` and ``2130706433``: the C library takes them, so a connection does."""
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(_PART.fullmatch(part) for part in parts) or len(text) > 64:
        raise ValueError(f"{text[:80]!r} is no IP address")
    numbers = [_number(part) for part in parts]
    *first, last = numbers
    if any(number > 255 for number in first) or last >= 256 ** (5 - len(parts)):
        raise ValueError(f"{text[:80]!r} is no IP address")
    return IPv4Address(sum(number << 8 * (3 - place) for place, number in enumerate(first)) + last)


def _number(part: str) -> int:
    if part[:2] in ("0x", "0X"):
        return int(part, 16)
    return int(part, 8) if len(part) > 1 and part[0] == "0" else int(part)
