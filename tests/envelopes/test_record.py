"""Records, and their hash chain: its exact bytes, and that no two different events share a link."""

from __future__ import annotations

import asyncio
import hashlib
import os
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs.emergence import GENESIS, link
from envelopes.envelope import is_uuid, new_id, thread_id


def test_ids_are_random_uuids_of_version_four() -> None:
    found = {new_id() for _ in range(1000)}
    assert len(found) == 1000
    assert all(uuid.UUID(text).version == 4 and uuid.UUID(text).variant == uuid.RFC_4122 for text in found)


@given(st.text(), st.text(), st.text())
def test_thread_id_is_uuid5_of_workspace_caller_session(workspace: str, caller: str, session: str) -> None:
    space = uuid.UUID("6ba4e3a8-2f0d-5c1e-9b7a-1d3c5f7e9a0b")
    assert thread_id(workspace, caller, session) == str(
        uuid.uuid5(space, f"{workspace}\n{caller}\n{session}")
    )


_MOMENTS = st.integers(0, 2**48 - 1).map(lambda at: f"{at:012x}")


@given(st.text(), _MOMENTS)
def test_thread_id_of_a_version_7_session_keeps_its_time(caller: str, at: str) -> None:
    session = f"{at[:8]}-{at[8:]}-7abc-9abc-0123456789ab"
    found = [thread_id("brainstem", caller, f'"{before}{session}"') for before in ("", "call ")]
    found += [thread_id("brainstem", f"{caller}x", f'"{session}"')]
    found += [thread_id("brainstem", caller, f'"{found[0]}"')]  # as the next machine has it
    for thread in found:
        assert uuid.UUID(thread).version == 8 and uuid.UUID(thread).variant == uuid.RFC_4122
        assert thread[24:] == at
    assert len({thread[:8] for thread in found}) == 4  # what people see and type is no moment
    for other in (f"{session} ", session.upper(), f"{session[:14]}4{session[15:]}"):
        if other != session:
            assert uuid.UUID(thread_id("brainstem", caller, f'"{other}"')).version == 5


@given(st.text())
def test_only_uuids_pass_for_uuids(text: str) -> None:
    try:
        expected = str(uuid.UUID(text)) == text.lower()
    except ValueError:
        expected = False
    assert is_uuid(text) == expected


def test_a_forked_process_draws_other_ids() -> None:
    new_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "".join(new_id() for _ in range(100)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        theirs = told.read()
    os.waitpid(child, 0)
    assert {theirs[at : at + 36] for at in range(0, len(theirs), 36)}.isdisjoint(
        {new_id() for _ in range(100)}
    )


async def test_ids_drawn_by_several_threads_are_all_different() -> None:
    found = await asyncio.gather(
        *(asyncio.to_thread(lambda: [new_id() for _ in range(2000)]) for _ in range(4))
    )
    assert len({one for some in found for one in some}) == 8000


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
