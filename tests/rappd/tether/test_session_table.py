"""A paired phone's frames as a state table, and frames longer than a channel takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envelopes.envelope import new_id
from rappd.sessions.sentence_routing import Say
from rappd.tether.framing import FRAME_BYTES, Assembler, FrameError, frames_of
from rappd.tether.phone_session import (
    DEAD_SECONDS,
    FRAMES_A_SECOND,
    Clear,
    Hang,
    More,
    PhoneSession,
    Reply,
    Sync,
    Typing,
)

ID = new_id()


def greeted(*, may_talk: bool = True) -> PhoneSession:
    made = PhoneSession(0.0, may_talk=may_talk)
    assert made.on_frame({"type": "hello", "last_seq": 3, "session": "s"}, 0.0) == [Sync(3, "s")]
    return made


@pytest.mark.parametrize(
    ("frame", "action"),
    [
        ({"type": "say", "event_id": ID, "text": "hi", "to": "gardener"}, Say(ID, "hi", "gardener")),
        ({"type": "say", "event_id": ID.upper(), "text": "hi"}, Say(ID, "hi", "")),
        ({"type": "typing"}, Typing()),
        ({"type": "more"}, More()),
        ({"type": "clear"}, Clear()),
        ({"type": "ping"}, Reply({"type": "pong"})),
        ({"type": "bye"}, Hang("left")),
        ({"type": "say", "event_id": "1", "text": "hi"}, Hang("malformed sentence")),
        ({"type": "say", "event_id": ID, "text": 5}, Hang("malformed sentence")),
        ({"type": "hello", "last_seq": -1}, Hang("malformed hello")),
        ({"type": "hello", "last_seq": True}, Hang("malformed hello")),
        ({"type": "perform"}, Hang("unknown kind")),
        ({}, Hang("unknown kind")),
    ],
)
def test_session_frame_leads_to_one_action(frame: dict[str, Any], action: object) -> None:
    assert greeted().on_frame(frame, 1.0) == [action]


@pytest.mark.parametrize("frame", [{"type": "say", "event_id": ID, "text": "hi"}, {"type": "typing"}])
def test_session_before_hello_hangs_up(frame: dict[str, Any]) -> None:
    assert PhoneSession(0.0, may_talk=True).on_frame(frame, 0.0) == [Hang("no hello")]


@pytest.mark.parametrize("kind", ["typing", "clear"])
def test_session_of_a_listener_changes_no_screen(kind: str) -> None:
    assert greeted(may_talk=False).on_frame({"type": kind}, 1.0) == []


@pytest.mark.parametrize(("text", "may_talk"), [("hi", False), ("  ", True), ("x" * 100_001, True)])
def test_session_refuses_a_sentence_and_says_why(text: str, may_talk: bool) -> None:
    (action,) = greeted(may_talk=may_talk).on_frame({"type": "say", "event_id": ID, "text": text}, 0.0)
    assert isinstance(action, Reply)
    assert action.frame["type"] == "refused" and action.frame["event_id"] == ID and action.frame["error"]


def test_session_too_many_frames_hang_up() -> None:
    made = greeted()
    actions = [made.on_frame({"type": "ping"}, 0.5)[0] for _ in range(FRAMES_A_SECOND)]
    assert actions[-1] == Hang("too many frames")
    assert all(isinstance(one, Reply) for one in actions[:-1])


def test_session_silence_hangs_up() -> None:
    made = greeted()
    assert made.on_tick(DEAD_SECONDS - 1) == [Reply({"type": "ping"})]
    assert made.on_tick(DEAD_SECONDS) == [Hang("silent")]


def test_session_is_looked_at_when_its_silence_is_too_long() -> None:
    made = greeted()
    made.on_frame({"type": "pong"}, 4.0)
    assert [made.next_tick(now) for now in (5.0, 10.0, 15.0)] == [5.0, 5.0, DEAD_SECONDS - 11.0]


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60_000))
def test_framing_returns_the_message_in_small_frames(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    message, assembler = {"type": "events", "text": text}, Assembler()
    found = None
    for frame in frames_of(message):
        assert found is None
        assert len(frame.encode()) <= FRAME_BYTES
        found = assembler.feed(frame)
    assert found == message


def chunk(n: int, total: int = 3, data: str = "x", id: str = "a") -> str:
    return json.dumps({"type": "chunk", "id": id, "n": n, "total": total, "data": data})


@pytest.mark.parametrize(
    "frames",
    [
        ["x" * (FRAME_BYTES + 1)], ["[]"], ["no json"], ["[" * 10_000], [chunk(1)], [chunk(0), chunk(2)],
        [chunk(0), chunk(1, id="b")], [chunk(0), chunk(1, total=4)], [chunk(0, total=257)], [chunk(0, total=0)],
        [chunk(0), '{"type": "ping"}'], ['{"type": "chunk", "n": "0"}'], [chunk(0, total=2), chunk(1, total=2, data="}")],
        [chunk(n, total=256, data="x" * 5000) for n in range(256)],
    ],
)  # fmt: skip
def test_framing_refuses_what_is_no_message(frames: list[str]) -> None:
    assembler = Assembler()
    with pytest.raises(FrameError):
        for frame in frames:
            assembler.feed(frame)


@given(st.text(max_size=200))
def test_framing_of_any_text_is_a_message_or_an_error(text: str) -> None:
    try:
        found = Assembler().feed(text)
    except FrameError:
        return
    assert found is None or isinstance(found, dict)
