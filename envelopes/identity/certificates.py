"""The certificate of a machine's TLS key, signed over by its identity: who opens the line is provable.

A self-signed P-256 leaf. Its common name is the identity's fingerprint; a private extension holds the raw
public key (32 bytes) and an Ed25519 signature (64) over ``BINDING`` and the DER SubjectPublicKeyInfo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from envelopes.errors import BadCertificateError, BadKeyError
from envelopes.identity.keys import IdentityKey, fingerprint_of, verify

if TYPE_CHECKING:  # x509 takes 40 ms to import, and most commands never look at a certificate
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

EXTENSION: Final = "2.25.266237281911542817306372926513482013417"
"""The extension that holds a certificate's identity; not critical, so that other software ignores it."""
BINDING: Final = b"rappd/tls-key\n"
MOST_BYTES: Final = 8192
"""A certificate is 700 bytes; what is longer than this is not even parsed."""

_EARLIER = timedelta(days=1)  # clocks of two machines differ


@dataclass(slots=True, frozen=True)
class TlsMaterial:
    """The TLS files of a listener and a client: the key (PKCS8 PEM, unencrypted) and its certificate, twice."""

    key_pem: bytes = field(repr=False)
    certificate_pem: bytes
    certificate_der: bytes


def make_certificate(
    identity: IdentityKey,
    *,
    now: datetime,
    years: int = 20,
    key_pem: bytes | None = None,
    names: Sequence[str] = (),
) -> TlsMaterial:
    """A certificate for the TLS key in ``key_pem``, or for a fresh one. Raises ``BadKeyError``.

    ``now`` without a zone is UTC. The dates and ``names`` are for readers: trust in a certificate is a pin. (Programs
    with a token, whose TLS is not this one, do compare the name that they dial.)
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import NameOID

    private = _tls_key(key_pem)
    public = private.public_key()
    since = now if now.tzinfo else now.replace(tzinfo=UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, identity.fingerprint)])
    binding = identity.public + identity.sign(BINDING + _subject_public_key_info(public))
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(since - _EARLIER)
        .not_valid_after(since + timedelta(days=365.25 * years))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        # Without these two, OpenSSL finds only the first of two pins that have one subject.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
        .add_extension(
            x509.UnrecognizedExtension(x509.ObjectIdentifier(EXTENSION), binding),
            critical=False,
        )
    )
    if names:
        known = [x509.DNSName(one) for one in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(known), critical=False)
    certificate = builder.sign(private, hashes.SHA256())
    return TlsMaterial(
        key_pem=private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        certificate_der=certificate.public_bytes(serialization.Encoding.DER),
    )


def pin_of(der: bytes) -> bytes:
    """SHA-256 of a certificate: what a peer is looked up by (1 µs)."""
    return sha256(der).digest()


def identity_of(der: bytes) -> bytes:
    """The raw public key (32 bytes) of the identity that vouches for this certificate's TLS key.

    Holds only when the certificate is whole (its own signature), issues no others (CA:FALSE), its common
    name is the identity's fingerprint and the identity's signature is over this very TLS key. Raises
    ``BadCertificateError`` for anything else; ``der`` may come from anybody.
    """
    if len(der) > MOST_BYTES:
        raise _bad("is too long")
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.x509.oid import NameOID

    try:
        certificate = x509.load_der_x509_certificate(der)
        public, spki = _tls_public_key(certificate)
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        if constraints.ca:
            raise _bad("could issue others")
        names = [(attribute.oid, attribute.value) for attribute in certificate.subject]
        certificate.verify_directly_issued_by(certificate)
        # The parser reads past unused bits of the signature's BIT STRING: one certificate, one form in bytes.
        if not der.endswith(bytes((0x03, len(certificate.signature) + 1, 0)) + certificate.signature):
            raise _bad("was altered")
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise _bad("has other parts than a machine's") from error
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise _bad("cannot be read") from error
    except InvalidSignature as error:
        raise _bad("was altered") from error
    if names != [(NameOID.COMMON_NAME, fingerprint_of(public))]:
        raise _bad("is named after another key")
    if not verify(public, _binding(certificate)[32:], BINDING + spki):
        raise _bad("is not signed by the machine it names")
    return public


def _tls_public_key(certificate: x509.Certificate) -> tuple[bytes, bytes]:
    """(raw identity key as claimed, DER SubjectPublicKeyInfo)."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

    key = certificate.public_key()
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise _bad("holds a key of another kind")
    return _binding(certificate)[:32], _subject_public_key_info(key)


def _binding(certificate: x509.Certificate) -> bytes:
    from cryptography import x509

    found = certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier(EXTENSION)).value
    value = found.public_bytes()
    if len(value) != 96:
        raise _bad("has other parts than a machine's")
    return value


def _tls_key(pem: bytes | None) -> EllipticCurvePrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    if pem is None:
        return ec.generate_private_key(ec.SECP256R1())
    try:
        private = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadKeyError(
            "The key for connections cannot be read.", do="Restore keys/ from a backup."
        ) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
        raise BadKeyError("The key for connections is not a P-256 key.", do="Restore keys/ from a backup.")
    return private


def _subject_public_key_info(public: EllipticCurvePublicKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _bad(what: str) -> BadCertificateError:
    return BadCertificateError(f"What the other machine shows as its identity {what}.", do="Do not trust it.")
