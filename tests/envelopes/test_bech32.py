"""The test vectors of BIP-173, and keys as age spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.identity import bech32

VALID = [
    "A12UEL5L",
    "a12uel5l",
    "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs",
    "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
    f"11{'q' * 82}c8247j",
    "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
    "?1ezyfcl",
]
INVALID = {
    "\x201nwldj5": "a prefix with a space",
    "\x7f1axkwrx": "a prefix with a control character",
    "\x801eym55h": "a prefix beyond ASCII",
    "an84characterslonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1569pvx": "too long",
    "pzry9x0s0muk": "no separator",
    "1pzry9x0s0muk": "no prefix",
    "x1b4n0q5v": "a letter that stands for nothing",
    "li1dgmt3": "too short a checksum",
    "de1lg7wt\xff": "a checksum with a strange character",
    "A1G7SGD8": "a checksum of the prefix in upper case",
    "10a06t8": "no prefix",
    "1qzzfhee": "no prefix",
    "a12UEL5L": "mixed case",
}


@pytest.mark.parametrize("text", VALID)
def test_valid_vector_is_read_and_written_again(text: str) -> None:
    prefix, values = bech32.decode_values(text)
    assert bech32.encode_values(prefix, values) == text.lower()


@pytest.mark.parametrize("text", INVALID, ids=INVALID.values())
def test_invalid_vector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        bech32.decode_values(text)


@pytest.mark.parametrize("text", VALID[1:])
def test_vector_with_one_changed_letter_is_refused(text: str) -> None:
    for position in range(text.rindex("1") + 1, len(text)):
        other = "q" if text[position] != "q" else "p"
        with pytest.raises(ValueError, match="checksum"):
            bech32.decode_values(f"{text[:position]}{other}{text[position + 1 :]}")


@pytest.mark.parametrize(("prefix", "longest"), [("age", 49), ("age-secret-key-", 42)])
@given(data=st.data())
def test_octets_come_back(prefix: str, longest: int, data: st.DataObject) -> None:
    octets = data.draw(st.binary(max_size=longest))
    text = bech32.encode(prefix, octets)
    assert bech32.decode(text) == (prefix, octets)
    assert bech32.decode(text.upper()) == (prefix, octets)


def test_padding_that_is_not_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="last"):
        bech32.decode(bech32.encode_values("age", [0, 1]))
    with pytest.raises(ValueError, match="last"):
        bech32.decode(bech32.encode_values("age", [0]))


def test_recipient_is_spelled_as_age_does() -> None:
    from pyrage import x25519

    identity = x25519.Identity.generate()
    for text in (str(identity), str(identity.to_public())):
        prefix, octets = bech32.decode(text)
        assert len(octets) == 32
        assert bech32.encode(prefix, octets) == text.lower()
