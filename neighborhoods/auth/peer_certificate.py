"""The certificate of the other end of an open connection."""

from __future__ import annotations

from hashlib import sha256
from ssl import SSLObject, SSLSocket


def presented_certificate(connection: SSLObject | SSLSocket | None) -> bytes | None:
    """The DER that the other end showed and proved to hold the key of; None when it showed none.

    ``connection`` is a transport's ``get_extra_info("ssl_object")``, None on one without TLS. Ask per
    request: trust may have ended since the connection was opened.
    """
    return None if connection is None else connection.getpeercert(True)


def pin_of(der: bytes) -> bytes:
    """SHA-256 of a certificate: what a peer is looked up by (1 µs)."""
    return sha256(der).digest()
