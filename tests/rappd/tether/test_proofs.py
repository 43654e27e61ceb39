"""Derivations of the tether handshake: the published vectors, and what an attacker may not find."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.tether import proofs
from rappd.tether.proofs import Parts

PARTS = Parts("c2Vzc2lvbi0", bytes([1] * 32), bytes([2] * 32), bytes([3] * 16), bytes([4] * 16), b"host key")
DIGEST = "98d8b2cce7e11af6d6cfa9b4d2aaf137b8b3b8df911fb37a74a49facd9dc3f12"


def test_commitment_is_the_published_vector() -> None:
    assert (
        proofs.commitment(bytes([4] * 16)).hex()
        == "d2b2c3e1cec814cab94e6239408dc56a11acfd695ecc72be8295ebcc18a01c28"
    )


def test_digest_proof_and_digits_are_the_published_vectors() -> None:
    digest = PARTS.digest()
    assert digest.hex() == DIGEST
    assert (
        proofs.proof(bytes([5] * 16), "guest", digest).hex()
        == "5dd2eb73be84eba4a26ea2c31e5316865f561620af96aa6afd8409928dc74a8d"
    )
    assert (
        proofs.proof(bytes([5] * 16), "host", digest).hex()
        == "01aebb08c26287b51e74af6535912657fb60cdf5056b44fabc609bf5e5fef62e"
    )
    assert proofs.six_digits(digest) == "934 184"


def test_typed_code_and_pin_are_the_published_vectors() -> None:
    assert (
        proofs.code_key("ABCD-EFGH-JK01").hex()
        == "2e344a09b5b8f6dec29eeb7170bab3e2dc9b924967897bf765a1146ca117efb6"
    )
    assert proofs.host_pin(b"host key") == hashlib.sha256(b"host key").digest()[:16]


@pytest.mark.parametrize("typed", ["abcd efgh jk01", "ABCDEFGHJKO1", "ABCD-EFGH-JKOI", "abcdefghjkol"])
def test_code_key_forgives_case_spaces_and_lookalikes(typed: str) -> None:
    assert proofs.code_key(typed) == proofs.code_key("ABCD-EFGH-JK01")


def test_link_with_an_ipv4_address_fits_the_qr_code() -> None:
    link = proofs.link("192.168.100.200:65535", proofs.b64(bytes(8)), bytes(16), bytes(16))
    assert len(link) <= 120 and link.startswith("http://192.168.100.200:65535/t#v=2&s=")


@given(
    st.lists(st.binary(max_size=40), min_size=5, max_size=5),
    st.lists(st.binary(max_size=40), min_size=5, max_size=5),
)
def test_digest_of_different_parts_differs(one: list[bytes], other: list[bytes]) -> None:
    if one != other:
        assert Parts("s", *one).digest() != Parts("s", *other).digest()


@given(st.binary(max_size=100))
def test_base64url_returns_what_it_was_given(content: bytes) -> None:
    assert proofs.unb64(proofs.b64(content)) == content


@pytest.mark.parametrize("text", [None, 5, "a b", "a=", "ä", "x" * 5000, "a"])
def test_base64url_refuses_anything_else(text: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        proofs.unb64(text, 16)
