"""TLS 1.3 between machines: whom the listener lets in, and whom a caller believes.

Every pinned certificate is its own anchor; no authority is asked and no date looked at, since a pin ends
when its owner ends it, and machines without a battery wake up in 1970.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from ssl import SSLObject, SSLSocket
from threading import Lock
from typing import Final

import msgspec

from envelopes.errors import BadCertificateError
from envelopes.identity.certificates import identity_of, pin_of

_ALPN: Final = ["http/1.1"]
_NO_CHECK_TIME: Final = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, which the ssl module has no name for
_KEPT: Final = 1024  # of 29 KB; to make one takes longer than to ask a peer


class TlsFiles(msgspec.Struct, frozen=True):
    """Paths of this machine's certificate and key, as PEM; OpenSSL reads them from files only."""

    certificate: Path
    key: Path


class ServerTrust:
    """The listener's side: accepts callers without a certificate and those with a pinned one, no others.

    Hand ``context`` to the server once; pins change under it. A pin is a filter at the opening of a
    connection: who a request is from, and whether he is still trusted, is asked per request of the book
    of peers. Any thread may call any method; making one and ``unpin`` take 0.4 ms for every pin there is,
    so keep them off the event loop, and ``pin`` too, which may have to wait for them.
    """

    def __init__(self, own: TlsFiles, pins: Iterable[bytes] = ()) -> None:
        """``pins``: certificates (DER) that were checked when they were pinned. Raises ``BadCertificateError``."""
        self._own = own
        self._lock = Lock()
        self._pins = {pin_of(der): der for der in pins}
        self._current = self._anchored(self._pins)
        self.context: Final = _server_context(own)
        self.context.sni_callback = self._choose

    def pin(self, der: bytes) -> None:
        """Knows this certificate from the next connection on. Raises ``BadCertificateError``."""
        identity_of(der)
        with self._lock:
            if pin_of(der) not in self._pins:
                _anchor(self._current, [der])
                self._pins[pin_of(der)] = der

    def unpin(self, der: bytes) -> None:
        """Refuses this certificate from the next connection on. Connections that are open stay open.

        Raises ``OSError`` when ``own`` is not there any more; then nothing changed.
        """
        with self._lock:
            left = {pin: one for pin, one in self._pins.items() if one != der}
            if len(left) < len(self._pins):
                self._current = self._anchored(left)  # anchors can be added to a context, never taken out
                self._pins = left

    def pinned(self, der: bytes) -> bool:
        """True for a certificate that is accepted."""
        return pin_of(der) in self._pins

    def _anchored(self, pins: dict[bytes, bytes]) -> ssl.SSLContext:
        context = _server_context(self._own)
        _anchor(context, pins.values())
        return context

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext
    ) -> None:
        # OpenSSL asks this of every connection, also of one that names no server.
        connection.context = self._current


@lru_cache(maxsize=_KEPT)
def client_context(peer_certificate: bytes | None, own: TlsFiles | None = None) -> ssl.SSLContext:
    """For calling exactly the machine of this certificate (DER): any other is refused before a byte is sent.

    ``None`` accepts any machine; compare ``presented_certificate`` before trusting a word. ``own`` shows
    this machine's certificate, and must not go to whom it is not meant for. Kept per peer; the first one
    reads files. Raises ``BadCertificateError``.
    """
    context = _tls13(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # machines are known by key; their names and addresses change
    if peer_certificate is None:
        context.verify_mode = ssl.CERT_NONE
    else:
        _anchor(context, [peer_certificate])
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


def _server_context(own: TlsFiles) -> ssl.SSLContext:
    context = _tls13(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    # A resumed session would skip the look at the certificate, and outlive the trust in it.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    return context


def _tls13(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(_ALPN)
    context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    return context


def _anchor(context: ssl.SSLContext, certificates: Iterable[bytes]) -> None:
    # One by one: OpenSSL takes 0.4 ms for each, and lets other threads run only in between.
    for der in certificates:
        try:
            context.load_verify_locations(cadata=der)
        except (ssl.SSLError, ValueError) as error:
            raise BadCertificateError(
                "A pinned certificate cannot be read.", do="Revoke that peer, pair again."
            ) from error


def presented_certificate(connection: SSLObject | SSLSocket | None) -> bytes | None:
    """The DER that the other end showed and proved to hold the key of; None when it showed none.

    ``connection`` is a transport's ``get_extra_info("ssl_object")``, None on one without TLS. Ask per
    request: trust may have ended since the connection was opened.
    """
    return None if connection is None else connection.getpeercert(True)
