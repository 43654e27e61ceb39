"""The hash chain: its exact bytes, and that no two different events share a link."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs.emergence import GENESIS, link

moments = st.integers(0, (1 << 64) - 1)
hashes = st.binary(min_size=32, max_size=32)


def test_the_first_link_is_the_published_formula() -> None:
    body = b'{"id":"1"}'
    at = 1_763_800_000_123_456
    expected = hashlib.sha256(b"\0" * 32 + at.to_bytes(8, "big") + body).digest()
    assert link(GENESIS, at, body) == expected


def test_a_known_vector() -> None:
    assert link(GENESIS, 1, b"{}").hex() == hashlib.sha256(bytes(32) + bytes(7) + b"\x01" + b"{}").hexdigest()
    assert link(GENESIS, 0, b"").hex() == "2c34ce1df23b838c5abf2a7f6437cca3d3067ed509ff25f11df6b11b582b51eb"


@given(hashes, moments, st.binary(), hashes, moments, st.binary())
def test_different_events_have_different_links(
    prev: bytes, at: int, body: bytes, other_prev: bytes, other_at: int, other_body: bytes
) -> None:
    same = (prev, at, body) == (other_prev, other_at, other_body)
    assert (link(prev, at, body) == link(other_prev, other_at, other_body)) is same


@given(st.lists(st.tuples(moments, st.binary(max_size=40)), min_size=2, max_size=12), st.data())
def test_any_change_reaches_the_head(events: list[tuple[int, bytes]], data: st.DataObject) -> None:
    def head(chain: list[tuple[int, bytes]]) -> bytes:
        end = GENESIS
        for at, body in chain:
            end = link(end, at, body)
        return end

    at = data.draw(st.integers(0, len(events) - 1))
    kind = data.draw(st.sampled_from(["drop", "repeat", "edit", "later"]))
    changed = list(events)
    if kind == "drop":
        del changed[at]
    elif kind == "repeat":
        changed.insert(at, changed[at])
    elif kind == "edit":
        changed[at] = (changed[at][0], changed[at][1] + b"!")
    else:
        changed[at] = (changed[at][0] ^ 1, changed[at][1])
    assert head(changed) != head(events)


@pytest.mark.parametrize("previous", [b"", bytes(31), bytes(33)])
def test_a_hash_of_the_wrong_length_is_refused(previous: bytes) -> None:
    with pytest.raises(ValueError, match="32"):
        link(previous, 1, b"")


@pytest.mark.parametrize("at", [-1, 1 << 64])
def test_a_moment_outside_eight_bytes_is_refused(at: int) -> None:
    with pytest.raises(ValueError, match=str(at)):
        link(GENESIS, at, b"")
