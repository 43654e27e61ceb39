"""Derivations of the tether handshake: the published vectors, and what an attacker may not find."""

from __future__ import annotations

import hashlib
import re

import pytest
from fixtures.running_daemon import REPO
from hypothesis import given
from hypothesis import strategies as st

from rappd.tether import proofs
from rappd.tether.proofs import Parts

WIRE = (REPO / "docs" / "wire.md").read_text().partition("## Phones")[2]
PARTS = Parts("c2Vzc2lvbi0", bytes([1] * 32), bytes([2] * 32), bytes([3] * 16), bytes([4] * 16), b"host key")
VECTORS = dict(
    re.findall(r"^(commit|digest|guest|host|digits|code) +([0-9a-f ]+?)(?:  .*)?$", WIRE, re.MULTILINE)
)


def test_commitment_is_the_published_vector() -> None:
    assert proofs.commitment(bytes([4] * 16)).hex() == VECTORS["commit"]


def test_digest_proof_and_digits_are_the_published_vectors() -> None:
    digest = PARTS.digest()
    assert digest.hex() == VECTORS["digest"]
    assert proofs.proof(bytes([5] * 16), "guest", digest).hex() == VECTORS["guest"]
    assert proofs.proof(bytes([5] * 16), "host", digest).hex() == VECTORS["host"]
    assert proofs.six_digits(digest) == VECTORS["digits"]


def test_typed_code_and_pin_are_the_published_vectors() -> None:
    assert proofs.code_key("ABCD-EFGH-JK01").hex() == VECTORS["code"]
    assert proofs.host_pin(b"host key") == hashlib.sha256(b"host key").digest()[:16]


@pytest.mark.parametrize("typed", ["abcd efgh jk01", "ABCDEFGHJKO1", "ABCD-EFGH-JKOI", "abcdefghjkol"])
def test_code_key_forgives_case_spaces_and_lookalikes(typed: str) -> None:
    assert proofs.code_key(typed) == proofs.code_key("ABCD-EFGH-JK01")


def test_link_with_an_ipv4_address_fits_the_qr_code() -> None:
    page = "https://192.168.100.200:65535/t"
    link = proofs.link(page, proofs.b64(bytes(8)), bytes(16), bytes(16))
    assert len(link) <= 120 and link.startswith(f"{page}#v=2&s=")


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
