"""The fields by which two sides of a WebRTC connection find and check each other: they travel instead of descriptions.

Two programs that read one session description may find different certificates in it. So no description travels:
each side checks these fields, and writes the description for its own library by ``session_description``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from envelopes.ip_addresses import IpAddress, counts_as
from rappd.tether.errors import BadOfferError

MOST_CANDIDATES = 32
"""Chromium offers one for each address of each interface."""

# Every pattern ends with \Z: "$" also fits before a line break, and a line break begins a line of a description.
_Ufrag = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9+/]{4,256}\Z")]  # RFC 8839, 5.4: ice-char
_Password = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9+/]{22,256}\Z")]
_Fingerprint = Annotated[str, Meta(pattern=r"\A(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}\Z")]
_IP = r"[0-9A-Fa-f.:]{2,45}"  # no "%": what follows it in an IPv6 address may be any text
_Address = Annotated[str, Meta(pattern=rf"\A(?:{_IP}|[A-Za-z0-9-]{{1,63}}\.local)\Z")]
_LITERAL = re.compile(_IP)


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A UDP host candidate (RFC 8839, 5.1) of the only component; ``address`` may be a browser's ``.local`` name."""

    address: _Address
    port: Annotated[int, Meta(ge=1, le=65535)]
    priority: Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]


class TransportParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One side's ICE and DTLS parameters. ``fingerprint`` is the SHA-256 of its certificate as pairs of hex digits."""

    ufrag: _Ufrag
    pwd: _Password
    setup: Literal["actpass", "active", "passive"]
    fingerprint: _Fingerprint
    candidates: Annotated[tuple[Candidate, ...], Meta(max_length=MOST_CANDIDATES)]

    @property
    def print(self) -> bytes:
        """The fingerprint, 32 bytes."""
        return bytes.fromhex(self.fingerprint.replace(":", ""))


def checked(found: object) -> TransportParameters:
    """The parameters that decoded JSON holds. Raises ``BadOfferError``."""
    try:
        return msgspec.convert(found, TransportParameters)
    except msgspec.ValidationError as error:
        raise BadOfferError("These are no parameters of one data channel.") from error


def reachable(
    parameters: TransportParameters, client: str, is_own: Callable[[IpAddress], bool] = lambda _: False
) -> TransportParameters:
    """The parameters with the candidates of local networks alone, so that no phone sends this machine elsewhere.

    ``is_own``: whether a global address is of a network of this machine's. Browsers hide their address behind a
    ``.local`` name. It stands for the address that the request came from.
    """
    local = [
        msgspec.structs.replace(one, address=address)
        for one in parameters.candidates
        if (address := _of_local_network(client if one.address.endswith(".local") else one.address, is_own))
    ]
    return msgspec.structs.replace(parameters, candidates=tuple(local))


def hex_pairs(fingerprint: bytes) -> str:
    """A fingerprint as RFC 8122 writes it."""
    return fingerprint.hex(":").upper()


def _of_local_network(address: str, is_own: Callable[[IpAddress], bool]) -> str:
    """The address in its one form, if it is of a local network; else ""."""
    if not _LITERAL.fullmatch(address):
        return ""
    try:
        found = counts_as(
            ip_address(address), translated=False
        )  # no short forms: a library may read them otherwise
    except ValueError:
        return ""
    nowhere = found.is_loopback or found.is_unspecified or found.is_multicast
    return str(found) if not nowhere and (found.is_private or is_own(found)) else ""


_MESSAGE_BYTES = 1 << 16
_SCTP_PORT = 5000


def description(parameters: TransportParameters, *, mid: str = "0") -> str:
    """The only text that a library gets; ``mid`` is the name that the library itself gave the data channel.

    It holds one section, and one fingerprint: that of ``parameters``.
    """
    lines = [
        "v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", f"a=group:BUNDLE {mid}",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0", f"a=mid:{mid}",
        f"a=ice-ufrag:{parameters.ufrag}", f"a=ice-pwd:{parameters.pwd}",
        f"a=fingerprint:sha-256 {hex_pairs(parameters.print)}", f"a=setup:{parameters.setup}",
        f"a=sctp-port:{_SCTP_PORT}", f"a=max-message-size:{_MESSAGE_BYTES}",
        *(
            f"a=candidate:{number} 1 udp {one.priority} {one.address} {one.port} typ host"
            for number, one in enumerate(parameters.candidates, 1)
        ),
    ]  # fmt: skip
    return "\r\n".join(lines) + "\r\n"
