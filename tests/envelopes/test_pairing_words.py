from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.identity.pairing_proof import WORDS, word_meant, words_of


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
