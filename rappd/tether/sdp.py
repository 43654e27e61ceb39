"""Checks and mends the session descriptions that phones send, before WebRTC parses them."""

from __future__ import annotations

import re
from ipaddress import ip_address

from rappd.tether.errors import BadOfferError, OfferTooLongError

MOST_BYTES = 32 << 10
_FINGERPRINT = re.compile(r"a=fingerprint:sha-256 ((?:[0-9A-F]{2}:){31}[0-9A-F]{2})", re.IGNORECASE)
_MEDIA = re.compile(r"m=(\S+)")


def fingerprint(sdp: str) -> bytes:
    """The SHA-256 fingerprint of a description's certificate, 32 bytes. Raises ``BadOfferError``.

    Every section must name the same one.
    """
    found = {match.upper() for match in _FINGERPRINT.findall(sdp)}
    if len(found) != 1:
        raise BadOfferError("The offer names no certificate, or several.")
    return bytes.fromhex(found.pop().replace(":", ""))


def checked_offer(sdp: object, client: str) -> str:
    """The offer as it is handed on: only a data channel, and no name that would have to be looked up.

    Browsers hide their address behind a ``.local`` name. It is replaced by the address that the request came from,
    where that one is of a local network; else the candidate is dropped. Raises ``BadOfferError``.
    """
    if not isinstance(sdp, str):
        raise BadOfferError("The offer is no text.")
    if len(sdp.encode("utf-8", "replace")) > MOST_BYTES:
        raise OfferTooLongError
    lines = sdp.splitlines()
    media = [match[1] for line in lines if (match := _MEDIA.match(line))]
    if media != ["application"]:
        raise BadOfferError("The offer must hold one data channel and nothing else.")
    kept = [mended for line in lines if (mended := _mended(line, client)) is not None]
    return "\r\n".join(kept) + "\r\n"


def _mended(line: str, client: str) -> str | None:
    if line.strip() == "a=end-of-candidates":
        return None
    if not line.startswith("a=candidate:"):
        return line
    fields = line.split(" ")
    if len(fields) < 8 or fields[2].lower() != "udp":
        return None
    if fields[4].endswith(".local"):
        if not _of_local_network(client):
            return None
        fields[4] = client
    return " ".join(fields) if _of_local_network(fields[4]) else None


def _of_local_network(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return found.is_private and not (found.is_loopback or found.is_unspecified or found.is_multicast)
