from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.envelope import agent_id
from envelopes.errors import BadKeyError
from envelopes.identity.keys import IdentityKey, fingerprint_of, verify

KEY = IdentityKey.generate()


@given(st.binary(max_size=500), st.binary(min_size=1, max_size=64))
def test_a_signature_holds_for_its_message_alone(message: bytes, other: bytes) -> None:
    signature = KEY.sign(message)
    assert verify(KEY.public, signature, message)
    assert not verify(KEY.public, signature, message + other)
    assert not verify(KEY.public, signature[:-1], message)


def test_a_key_comes_back_from_its_file() -> None:
    again = IdentityKey.from_pem(KEY.to_pem())
    assert again.fingerprint == KEY.fingerprint == fingerprint_of(KEY.public)
    assert verify(again.public, again.sign(b"x"), b"x")


@pytest.mark.parametrize("pem", [b"", b"no key", KEY.to_pem()[:80]], ids=["empty", "text", "half"])
def test_a_damaged_key_is_refused_in_words(pem: bytes) -> None:
    with pytest.raises(BadKeyError, match="cannot be read"):
        IdentityKey.from_pem(pem)


def test_an_agent_id_is_the_name_and_sixteen_hex() -> None:
    assert agent_id("brainstem", KEY.fingerprint) == f"brainstem_{KEY.fingerprint[:16]}"
