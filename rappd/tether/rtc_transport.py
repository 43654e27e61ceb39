"""A connection of aiortc as this program needs it: its own parameters, and the certificate that DTLS verified."""

from __future__ import annotations

from typing import Any, Literal

from cryptography.hazmat.primitives.hashes import SHA256

from rappd.tether.transport_parameters import MOST_CANDIDATES, Candidate, TransportParameters


def own_parameters(peer: Any, setup: Literal["actpass", "active", "passive"]) -> TransportParameters:
    """The parameters of an ``RTCPeerConnection`` with a local description. No text is read for them."""
    dtls = peer.sctp.transport
    gatherer = dtls.transport.iceGatherer
    ice = gatherer.getLocalParameters()
    prints = [one.value for one in dtls.getLocalParameters().fingerprints if one.algorithm == "sha-256"]
    candidates = [
        Candidate(one.ip, one.port, one.priority)
        for one in gatherer.getLocalCandidates()
        if one.type == "host" and one.protocol.lower() == "udp"
    ]
    return TransportParameters(
        ice.usernameFragment, ice.password, setup, prints[0], tuple(candidates[:MOST_CANDIDATES])
    )


def verified_print(peer: Any) -> bytes:
    """SHA-256 of the certificate whose key the other side has proved by DTLS; empty when aiortc does not tell.

    aiortc 1.16 has no public way to it (``getRemoteCertificates`` of the standard), so this reads its private one.
    An empty answer fits no phone: without this check nobody is let in.
    """
    connection = getattr(peer.sctp.transport, "_ssl", None)
    certificate = connection.get_peer_certificate(as_cryptography=True) if connection is not None else None
    return b"" if certificate is None else certificate.fingerprint(SHA256())
