"""Anchors: the root covers every part of every entry, and a signature covers every part of an anchor."""

from __future__ import annotations

import random
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from envelopes.identity.anchor import (
    BUCKET,
    ENTRY_BYTES,
    Anchor,
    BadAnchorError,
    EventRoot,
    bucket_hash,
    entry,
    names_hash,
    read_anchor,
    sign_anchor,
)
from envelopes.identity.keys import IdentityKey

KEY = IdentityKey.generate()

_THREAD = st.tuples(
    st.uuids().map(str), st.integers(1, 1 << 40), st.binary(min_size=32, max_size=32), st.text(), st.text(), st.text()
)  # fmt: skip


def _entry(thread: tuple[str, int, bytes, str, str, str]) -> bytes:
    id, count, head, workspace, caller, title = thread
    return entry(id, count, head, names_hash(workspace, caller, title))


def _root(entries: list[bytes]) -> bytes:
    root = EventRoot()
    for number, octets in enumerate(entries, start=1):
        root.put(number, octets)
    return root.root()


def _anchor(**changes: object) -> Anchor:
    made = sign_anchor(KEY, previous=None, counter=1, at=5, threads=2, events=9, root=bytes(32))
    return replace(made, **changes)


@given(st.lists(_THREAD, min_size=1, max_size=200), st.randoms())
def test_root_is_independent_of_order_and_batches(threads: list, chance: random.Random) -> None:
    entries = list(enumerate(map(_entry, threads), start=1))
    expected = _root([octets for _, octets in entries])
    root = EventRoot()
    shuffled = entries * 2  # each is put twice, first with something else
    chance.shuffle(shuffled)
    for number, _ in shuffled[: len(entries)]:
        root.put(number, bytes([7]) * ENTRY_BYTES)
        if chance.random() < 0.2:
            root.root()
    chance.shuffle(entries)
    for number, octets in entries:
        root.put(number, octets)
        if chance.random() < 0.2:
            root.root()
    assert root.root() == expected


@given(st.lists(_THREAD, min_size=1, max_size=100), st.data())
def test_root_changes_with_any_single_change(threads: list, data: st.DataObject) -> None:
    entries = [_entry(thread) for thread in threads]
    which = data.draw(st.integers(0, len(entries) - 1))
    byte, bit = data.draw(st.integers(0, ENTRY_BYTES - 1)), data.draw(st.integers(0, 7))
    changed = bytearray(entries[which])
    changed[byte] ^= 1 << bit
    original = _root(entries)
    assert _root([*entries[:which], bytes(changed), *entries[which + 1 :]]) != original
    assert _root(entries[:-1]) != original
    assert _root([*entries, bytes(ENTRY_BYTES)]) != original, "a thread without events counts, too"


@given(_THREAD, st.integers(0, 5), st.data())
def test_entry_changes_with_every_field(thread: tuple, field: int, data: st.DataObject) -> None:
    other = data.draw(_THREAD.filter(lambda one: one[field] != thread[field]))
    changed = (*thread[:field], other[field], *thread[field + 1 :])
    assert _entry(changed) != _entry(thread)


def test_names_hash_does_not_confuse_neighbouring_fields() -> None:
    assert names_hash("ab", "c", "") != names_hash("a", "bc", "")


def test_root_from_stored_buckets_equals_root_in_memory() -> None:
    entries = [sha256(b"%d" % number).digest() * 2 + bytes(24) for number in range(3 * BUCKET + 5)]
    kept = [b"".join(entries[first : first + BUCKET]) for first in range(0, len(entries), BUCKET)]
    root = EventRoot(
        [bucket_hash(octets) for octets in kept], lambda index: kept[index] if index < len(kept) else b""
    )
    root.threads = len(entries)
    changed = bytes([9]) * ENTRY_BYTES
    root.put(70, changed)
    root.put(5 * BUCKET, changed)
    whole = [*entries, *[bytes(ENTRY_BYTES)] * (5 * BUCKET - len(entries))]
    whole[69] = whole[-1] = changed
    assert [index for index, _ in root.changed()] == [1, 4]
    assert root.root() == _root(whole)


def test_anchor_survives_json_and_names_the_one_before() -> None:
    first = _anchor()
    second = sign_anchor(
        KEY, previous=first, counter=2, at=6, threads=2, events=9, root=bytes(32), closed=True
    )
    assert read_anchor(second.to_json(), KEY.public) == second
    assert second.previous == first.hash


@pytest.mark.parametrize(
    "changes",
    [
        {"counter": 2}, {"at": 6}, {"threads": 3}, {"events": 10}, {"root": "11" * 32}, {"previous": "11" * 32},
        {"closed": True}, {"note": "restored"}, {"sig": "00" * 64}, {"node": "0" * 64}, {"version": 2},
        {"counter": 0}, {"root": ""}, {"root": "zz"},
    ],
)  # fmt: skip
def test_changed_anchor_is_refused(changes: dict) -> None:
    assert read_anchor(_anchor().to_json(), KEY.public)
    with pytest.raises(BadAnchorError):
        read_anchor(_anchor(**changes).to_json(), KEY.public)


@pytest.mark.parametrize("value", [None, [], {}, "x", {**_anchor().to_json(), "more": 1}, {"counter": 1}])
def test_anything_else_is_no_anchor(value: object) -> None:
    with pytest.raises(BadAnchorError):
        read_anchor(value, KEY.public)


def test_anchor_of_another_key_is_refused() -> None:
    with pytest.raises(BadAnchorError):
        read_anchor(_anchor().to_json(), IdentityKey.generate().public)
