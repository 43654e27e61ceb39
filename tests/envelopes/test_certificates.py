from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from envelopes.errors import BadCertificateError, BadKeyError
from envelopes.identity.certificates import BINDING, EXTENSION, MOST_BYTES, identity_of, make_certificate
from envelopes.identity.keys import IdentityKey, fingerprint_of, verify

NOW = datetime(2026, 11, 22, 4, 34, tzinfo=UTC)
ME = IdentityKey.generate()
MINE = make_certificate(ME, now=NOW)
THEM = IdentityKey.generate()
THEIRS = make_certificate(THEM, now=NOW)


def extension_of(der: bytes) -> bytes:
    found = x509.load_der_x509_certificate(der).extensions
    value = found.get_extension_for_oid(x509.ObjectIdentifier(EXTENSION)).value
    assert isinstance(value, x509.UnrecognizedExtension)
    return value.value


def forged(
    *,
    name: str = ME.fingerprint,
    issuer: str | None = None,
    key: Any = None,
    signed_by: Any = None,
    binding: bytes | None = None,
    ca: bool | None = False,
) -> bytes:
    """A certificate by somebody who writes whatever he likes; by default all of it is right."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    spki = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    if binding is None:
        binding = ME.public + ME.sign(BINDING + spki)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer or name)]))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    if binding:
        builder = builder.add_extension(
            x509.UnrecognizedExtension(x509.ObjectIdentifier(EXTENSION), binding), critical=False
        )
    signer = signed_by or key
    hashed = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(signer, hashed).public_bytes(serialization.Encoding.DER)


def test_a_certificate_names_the_identity_behind_it() -> None:
    assert identity_of(MINE.certificate_der) == ME.public
    assert identity_of(THEIRS.certificate_der) == THEM.public


def test_a_stranger_can_check_the_binding_by_the_published_rule() -> None:
    certificate = x509.load_der_x509_certificate(MINE.certificate_der)
    public, signature = extension_of(MINE.certificate_der)[:32], extension_of(MINE.certificate_der)[32:]
    spki = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert public == ME.public
    assert verify(public, signature, b"rappd/tls-key\n" + spki)
    assert certificate.subject.rfc4514_string() == f"CN={fingerprint_of(public)}"
    carried = {extension.oid.dotted_string: extension.critical for extension in certificate.extensions}
    assert carried == {"2.5.29.19": True, "2.5.29.14": False, "2.5.29.35": False, EXTENSION: False}


def test_tls_key_is_separate_and_survives_renewal() -> None:
    again = make_certificate(ME, now=NOW + timedelta(days=400), key_pem=MINE.key_pem)
    assert again.key_pem == MINE.key_pem
    assert again.certificate_der != MINE.certificate_der
    assert identity_of(again.certificate_der) == ME.public
    assert make_certificate(ME, now=NOW).key_pem != MINE.key_pem
    key = serialization.load_pem_private_key(MINE.key_pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1"


def test_the_key_does_not_show_in_a_log() -> None:
    assert "PRIVATE" not in repr(MINE)


def test_it_lasts_as_long_as_was_asked_and_began_before_now() -> None:
    certificate = x509.load_der_x509_certificate(make_certificate(ME, now=NOW, years=2).certificate_der)
    assert certificate.not_valid_before_utc < NOW
    assert NOW + timedelta(days=729) < certificate.not_valid_after_utc < NOW + timedelta(days=733)
    naive = make_certificate(ME, now=NOW.replace(tzinfo=None), years=2)
    read = x509.load_der_x509_certificate(naive.certificate_der)
    assert read.not_valid_after_utc == certificate.not_valid_after_utc


@pytest.mark.parametrize(
    "pem", [b"", b"no key", MINE.key_pem[:80], ME.to_pem()], ids=["empty", "text", "half", "identity"]
)
def test_an_unfit_tls_key_is_refused_in_words(pem: bytes) -> None:
    with pytest.raises(BadKeyError, match="key for connections"):
        make_certificate(ME, now=NOW, key_pem=pem)


def test_valid_bytes_of_any_writer_are_accepted() -> None:
    assert identity_of(forged()) == ME.public


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: forged(binding=extension_of(MINE.certificate_der)), "not signed by the machine"),
        (
            lambda: forged(name=THEM.fingerprint, binding=extension_of(THEIRS.certificate_der)),
            "not signed by the machine",
        ),
        (lambda: forged(name=THEM.fingerprint), "named after another"),
        (lambda: forged(name="example.org"), "named after another"),
        (lambda: forged(binding=b""), "other parts"),
        (lambda: forged(binding=b"x" * 95), "other parts"),
        (lambda: forged(binding=ME.public + bytes(64)), "not signed by the machine"),
        (lambda: forged(ca=True), "could issue others"),
        (lambda: forged(ca=None), "other parts"),
        (lambda: forged(issuer=THEM.fingerprint), "cannot be read"),
        (lambda: forged(signed_by=ec.generate_private_key(ec.SECP256R1())), "was altered"),
        (lambda: forged(key=ec.generate_private_key(ec.SECP384R1())), "another kind"),
        (lambda: forged(key=ed25519.Ed25519PrivateKey.generate()), "another kind"),
        (lambda: MINE.certificate_pem, "cannot be read"),
        (lambda: MINE.certificate_der + b"\0", "cannot be read"),
        (lambda: MINE.certificate_der[:-1], "cannot be read"),
        (lambda: MINE.certificate_der + bytes(MOST_BYTES), "too long"),
    ],
    ids=[
        "copied extension",
        "copied extension and name",
        "named after somebody",
        "named after a host",
        "no extension",
        "short extension",
        "no signature",
        "an authority",
        "maybe an authority",
        "issued by somebody",
        "signed by another key",
        "P-384",
        "Ed25519",
        "PEM",
        "something behind it",
        "cut short",
        "huge",
    ],
)
def test_whatever_does_not_hold_is_refused_in_words(make: Any, why: str) -> None:
    with pytest.raises(BadCertificateError, match=why):
        identity_of(make())


def test_signature_for_one_tls_key_fails_for_another() -> None:
    with pytest.raises(BadCertificateError):
        identity_of(forged(binding=extension_of(make_certificate(ME, now=NOW).certificate_der)))


@given(st.binary(max_size=2000))
def test_bytes_that_are_nothing_are_only_ever_refused(der: bytes) -> None:
    with pytest.raises(BadCertificateError):
        identity_of(der)


@given(
    st.integers(0, len(MINE.certificate_der) - 1),
    st.integers(1, 255),
    st.binary(max_size=3),
    st.integers(0, 3),
)
def test_no_bit_of_a_certificate_can_be_changed(place: int, change: int, more: bytes, less: int) -> None:
    der = bytearray(MINE.certificate_der)
    der[place] ^= change
    der[place + 1 : place + 1 + less] = more
    if bytes(der) == MINE.certificate_der:
        return
    with pytest.raises(BadCertificateError):
        identity_of(bytes(der))


def test_unused_bits_claimed_in_the_signature_are_an_alteration() -> None:
    for _ in range(40):  # the last bit of a signature is zero in half of all certificates
        der = make_certificate(ME, now=NOW).certificate_der
        place = der.rindex(b"\x30", 0, len(der) - 60) - 1
        while der[place - 2 : place + 1] != bytes((0x03, len(der) - place, 0)):
            place = der.rindex(b"\x30", 0, place) - 1
        if der[-1] & 1 == 0:
            with pytest.raises(BadCertificateError, match="altered"):
                identity_of(der[:place] + b"\x01" + der[place + 1 :])
            return
    pytest.fail("no certificate of forty had a signature that ends in a zero bit")
