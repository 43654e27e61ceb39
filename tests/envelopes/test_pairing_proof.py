from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from itertools import combinations

import pyrage
import pytest
from fixtures.refusals import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from envelopes.errors import EnvelopeError
from envelopes.identity.certificates import make_certificate
from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard, introduce
from envelopes.identity.pairing_proof import (
    WORDS,
    CodeExchange,
    code_transcript,
    commitment,
    confirmation,
    confirms,
    keeps,
    new_code,
    normal_code,
    pairing_words,
    sign_code,
    sign_verdict,
    transcript,
    verdict_holds,
    word_meant,
    words_of,
)

KEYS = [IdentityKey.generate() for _ in range(3)]
NONCES = st.binary(min_size=32, max_size=32)


@cache
def said(number: int) -> NodeCard:
    key = KEYS[number]
    tls = make_certificate(key, now=datetime.now(UTC))
    recipient = str(pyrage.x25519.Identity.generate().to_public())
    return introduce(key, tls.certificate_der, recipient, f"machine{number}", 7443)


@given(NONCES, NONCES)
def test_a_promise_is_kept_by_its_nonce_between_these_two_alone(nonce: bytes, other: bytes) -> None:
    a, b, c = (key.fingerprint for key in KEYS)
    promise = commitment(nonce, a, b)
    assert keeps(promise, nonce, a, b)
    assert keeps(promise, other, a, b) == (other == nonce)
    assert not keeps(promise, nonce, b, a)
    assert not keeps(promise, nonce, a, c)
    assert not keeps(promise, nonce + a[:1].encode(), a[1:], b)


@given(NONCES, NONCES, NONCES)
def test_words_depend_on_both_identities_and_both_nonces(one: bytes, two: bytes, other: bytes) -> None:
    """A machine in the middle shares nothing with either side but what it relays."""
    a, b, middle = said(0), said(1), said(2)
    honest = transcript(a, b, one, two)
    assert pairing_words(honest) == pairing_words(transcript(a, b, one, two))
    changed = [
        transcript(a, middle, one, two),
        transcript(middle, b, one, two),
        transcript(b, a, one, two),
        transcript(replace(a, name="another"), b, one, two),
        transcript(a, replace(b, certificate=a.certificate), one, two),
    ]
    changed += [transcript(a, b, other, two)] * (other != one) + [transcript(a, b, one, other)] * (
        other != two
    )
    assert honest not in changed
    # 32 bits: that two of them agree by chance would be a find
    assert len({pairing_words(digest) for digest in [honest, *changed]}) == len({honest, *changed})


def test_a_transcript_takes_whole_nonces_only() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        transcript(said(0), said(1), b"x" * 31, b"x" * 33)


@given(NONCES, NONCES, st.booleans())
def test_a_verdict_holds_for_its_words_its_key_and_its_answer(one: bytes, two: bytes, same: bool) -> None:
    signature = sign_verdict(KEYS[0], one, same)
    assert verdict_holds(KEYS[0].public, one, same, signature)
    assert not verdict_holds(KEYS[0].public, one, not same, signature)
    assert not verdict_holds(KEYS[1].public, one, same, signature)
    assert verdict_holds(KEYS[0].public, two, same, signature) == (one == two)


def test_a_code_is_three_digits_and_three_words() -> None:
    codes = [new_code() for _ in range(300)]
    assert len(set(codes)) == 300
    for code in codes:
        number, *words = code.split("-")
        assert len(number) == 3
        assert number.isdigit()
        assert len(words) == 3
        assert set(words) <= set(WORDS)
        assert normal_code(code) == code
    assert new_code(bytes) == "000-abacus-abacus-abacus"


@pytest.mark.parametrize(
    "typed",
    [
        "417-copper-otter-violin",
        "  417 Copper OTTER violin\n",
        "417–copper—otter violin",
        "417.copp,otte/viol",
        "４１７-copper-otter-violin",
    ],
)
def test_a_code_may_be_typed_as_people_type(typed: str) -> None:
    assert normal_code(typed) == "417-copper-otter-violin"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "417",
        "417-copper-otter",
        "17-copper-otter-violin",
        "417-copper-otter-violet",
        "417-cop-otter-violin",
        "417-copper-otter-violin-violin",
        "copper-417-otter-violin",
        "417-417-417-417",
        "x" * 100_000,
    ],
)
def test_what_is_no_code_is_refused_before_it_is_sent(typed: str) -> None:
    with refused("bad_code") as problem:
        normal_code(typed)
    assert "417-copper-otter-violin" in problem.value.do


@given(st.text())
def test_any_text_is_a_code_or_refused(typed: str) -> None:
    try:
        code = normal_code(typed)
    except EnvelopeError as problem:
        assert problem.code == "bad_code"
        return
    assert normal_code(code) == code


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(WORDS), st.sampled_from(WORDS))
def test_the_same_code_gives_the_same_key_and_another_another(one: str, other: str) -> None:
    first, second = CodeExchange(f"417-{one}"), CodeExchange(f"417-{other}")
    assert (first.key(second.message) == second.key(first.message)) == (one == other)


def test_confirmation_covers_code_key_side_and_cards() -> None:
    here, there = CodeExchange("417-copper-otter-violin"), CodeExchange("417-copper-otter-violin")
    shared = here.key(there.message)
    seen = code_transcript(said(0), said(1), here.message, there.message)
    proof, signature = confirmation(shared, "asks", seen), sign_code(KEYS[0], "asks", seen)
    public = KEYS[0].public

    assert confirms(shared, "asks", seen, proof, public=public, signature=signature)
    assert not confirms(shared, "answers", seen, proof, public=public, signature=signature)
    assert not confirms(bytes(32), "asks", seen, proof, public=public, signature=signature)
    assert not confirms(shared, "asks", seen, proof, public=KEYS[1].public, signature=signature)
    for changed in (
        code_transcript(said(0), said(2), here.message, there.message),
        code_transcript(said(2), said(1), here.message, there.message),
        code_transcript(said(0), said(1), there.message, here.message),
    ):
        assert not confirms(shared, "asks", changed, proof, public=public, signature=signature)


def test_who_knows_the_code_cannot_bring_somebody_elses_key() -> None:
    exchange, other = CodeExchange("c"), CodeExchange("c")
    shared = exchange.key(other.message)
    seen = code_transcript(said(0), said(1), exchange.message, other.message)
    forged = sign_code(KEYS[2], "asks", seen)
    proof = confirmation(shared, "asks", seen)
    assert not confirms(shared, "asks", seen, proof, public=KEYS[0].public, signature=forged)


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=40), st.binary(min_size=32, max_size=32).map(lambda point: b"S" + point)))
def test_bytes_that_are_no_message_are_refused(message: bytes) -> None:
    try:
        assert len(CodeExchange("c").key(message)) == 32
    except EnvelopeError as problem:
        assert problem.code == "bad_pairing" and problem.do


def test_ones_own_message_sent_back_is_refused() -> None:
    exchange = CodeExchange("c")
    with refused("bad_pairing"):
        exchange.key(exchange.message)


def test_there_is_a_plain_word_for_every_byte() -> None:
    assert len(WORDS) == len(set(WORDS)) == 256
    assert list(WORDS) == sorted(WORDS)
    assert all(re.fullmatch(r"[a-z]{4,8}", word) for word in WORDS)
    assert {"copper", "lantern", "otter", "violin"} <= set(WORDS)


def test_four_letters_tell_words_apart() -> None:
    assert len({word[:4] for word in WORDS}) == 256
    assert all(word_meant(word[:4]) == word for word in WORDS)
    assert word_meant("vio") is None
    assert word_meant("violet") is None
    assert word_meant("") is None


def test_no_word_is_a_slip_away_from_another() -> None:
    near = [pair for pair in combinations(WORDS, 2) if _distance(*pair) < 3]
    assert near == []


def test_no_two_words_sound_alike() -> None:
    alike = [pair for pair in combinations(WORDS, 2) if _sound(pair[0]) == _sound(pair[1])]
    assert alike == []


@given(st.binary(min_size=4, max_size=32), st.integers(0, 3), st.integers(0, 255))
def test_each_of_the_first_four_bytes_shows(digest: bytes, place: int, other: int) -> None:
    changed = digest[:place] + bytes([other]) + digest[place + 1 :]
    assert (words_of(changed) == words_of(digest)) == (changed == digest)
    assert words_of(digest) == words_of(digest[:4])


def test_too_few_bytes_are_no_words() -> None:
    with pytest.raises(ValueError, match="too few"):
        words_of(b"abc")


def _distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        next_row = [number]
        for place, against in enumerate(other, 1):
            next_row.append(min(row[place] + 1, next_row[-1] + 1, row[place - 1] + (letter != against)))
        row = next_row
    return row[-1]


def _sound(word: str) -> str:
    """Roughly what is left on a bad telephone line: consonants, hard and soft ones as one."""
    for written, spoken in (("ph", "f"), ("ck", "k"), ("gh", "g"), ("kn", "n"), ("wr", "r")):
        word = word.replace(written, spoken)
    word = (
        re.sub(r"c(?=[eiy])", "s", word).translate(str.maketrans("cqzvdbgj", "kksftpkk")).replace("x", "ks")
    )
    first = "a" if word[0] in "aeiouy" else word[0]
    return re.sub(r"(.)\1+", r"\1", first + re.sub(r"[aeiouyhw]", "", word[1:]))
