"""Writes this machine's announcement, and reads the untrusted ones of others. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

import msgspec

from neighborhoods.discovery.address_text import leads_somewhere, preference
from neighborhoods.discovery.discovered_nodes import DiscoveredNode

SERVICE = "_rappd._tcp.local."
A2A_SERVICE = "_a2a._tcp.local."
"""Agents of any vendor that have an A2A card."""
VERSION = "1"
MOST_ADDRESSES = 16
MOST_NAME = 63


class Announcement(msgspec.Struct, frozen=True):
    """The announcement of this machine: name, fingerprint, and federation port (0: discover only).

    ``a2a``: it is announced as an A2A agent, too.
    """

    name: str
    fingerprint: str
    port: int
    a2a: bool = False

    @property
    def instance(self) -> str:
        """The DNS name: ``<name>_<first 16 of the fingerprint>._rappd._tcp.local.``."""
        label = tame(self.name).replace(".", "-").replace("\\", "-") or "machine"
        cut = label.encode()[:40].decode("utf-8", "ignore").rstrip()
        return f"{cut}_{self.fingerprint[:16]}.{SERVICE}"

    @property
    def card_properties(self) -> dict[str, str]:
        """The TXT record of the A2A agent: where its card is, and by what its signature can be known again."""
        return {"v": VERSION, "path": _CARD, "version": _A2A_VERSION, "id": self.fingerprint}

    @property
    def server(self) -> str:
        """The DNS name of the addresses. Tells nothing of the host's own name or its user."""
        return f"{self.fingerprint[:12]}.local."

    def properties(self) -> dict[str, str]:
        """The TXT record. Everyone on the network can read it: no secret, no person's name."""
        return {
            "v": VERSION,
            "id": self.fingerprint,
            "name": tame(self.name),
            "port": str(self.port),
        }


def read(
    properties: Mapping[bytes, bytes | None],
    port: int | None,
    addresses: Iterable[str],
    *,
    at: int,
    loopback: bool = False,
) -> DiscoveredNode | None:
    """The sighting in a stranger's TXT and SRV records; None for what is none. Never raises.

    ``port`` is the SRV record's; TXT ``port`` goes first. Addresses that lead nowhere are left out, and
    ``loopback`` ones too unless asked for. At most 16 addresses; the name is made harmless.
    """
    if _text(properties, b"v") != VERSION:
        return None
    fingerprint = _text(properties, b"id")
    if not _FINGERPRINT.fullmatch(fingerprint):
        return None
    announced = _text(properties, b"port") or _text(properties, b"door")  # "door": rappd before 0.1.0
    number = int(announced) if _PORT.fullmatch(announced) else port
    if not isinstance(number, int) or not 1 <= number <= 65535:
        return None
    usable = dict.fromkeys(one for one in addresses if leads_somewhere(one, loopback=loopback))
    if not usable:
        return None
    ordered = sorted(list(usable)[:MOST_ADDRESSES], key=preference)
    name = tame(_text(properties, b"name")) or "machine"
    return DiscoveredNode(fingerprint, name, tuple(ordered), number, "nearby", at)


def tame(name: str) -> str:
    """A name on one line: printable signs only, nothing that markup or a terminal would act on, at most 63."""
    plain = "".join(
        sign if sign.isprintable() and sign not in "<>[]`" else " "
        for sign in unicodedata.normalize("NFC", name[: 4 * MOST_NAME])
    )
    kept, marks = "", 0
    for sign in " ".join(plain.split()):
        marks = marks + 1 if unicodedata.combining(sign) else 0
        if marks <= 2:  # a tower of marks would cover the lines above it
            kept += sign
    return kept.encode()[:200].decode("utf-8", "ignore")[:MOST_NAME].strip()


def _text(properties: Mapping[bytes, bytes | None], key: bytes) -> str:
    value = properties.get(key)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


_CARD = "/.well-known/agent-card.json"
_A2A_VERSION = "1.0"
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
