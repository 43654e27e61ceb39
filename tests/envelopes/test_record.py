from __future__ import annotations

import asyncio
import os
import uuid

from hypothesis import given
from hypothesis import strategies as st

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
