"""Frames: conversations as eggs carry them, chained so that nothing is taken out or put in unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.eggs import frames
from twins.errors import BadEggError

UTC = "2026-11-22T04:34:00.000Z"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
payloads = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
streams = st.dictionaries(
    texts, st.lists(st.tuples(texts, texts, payloads), min_size=1, max_size=4), max_size=3
)


def talk(count: int = 3, stream: str = "rappid:@o/s:1:a") -> list[frames.Frame]:
    return list(frames.chained(stream, [(UTC, "said", {"text": f"number {n}"}) for n in range(count)]))


@given(streams, st.integers(1, 40))
def test_conversations_come_back_as_they_went(said: dict[str, list[Any]], cut: int) -> None:
    sent = [frame for stream, turns in said.items() for frame in frames.chained(stream, turns)]
    octets = b"".join(frames.encoded(sent))
    pieces = (octets[at : at + cut] for at in range(0, len(octets), cut))
    if not sent:
        assert octets == b""
        return
    assert list(frames.verified(frames.decoded(pieces))) == sent
    assert json.loads(octets) == sent


def test_the_hash_is_the_published_one() -> None:
    first, second, _ = talk()
    payload = '{"text":"number 0"}'
    assert first["hash"] == hashlib.sha256(f"|{UTC}|0|said|{payload}".encode()).hexdigest()
    assert first["prev_hash"] is None
    linked = f"{first['hash']}|{UTC}|1|said|" + '{"text":"number 1"}'
    assert second["hash"] == hashlib.sha256(linked.encode()).hexdigest()
    assert list(first) == ["stream_id", "frame_n", "utc", "kind", "payload", "prev_hash", "hash"]


def test_a_stream_goes_on_where_it_stopped() -> None:
    whole = talk(5)
    rest = [(UTC, "said", {"text": f"number {n}"}) for n in (3, 4)]
    assert [*whole[:3], *frames.chained("rappid:@o/s:1:a", rest, after=whole[2])] == whole


@pytest.mark.parametrize("spell", [
    lambda payload: json.dumps(payload),
    lambda payload: json.dumps(payload, sort_keys=True),
    lambda payload: json.dumps(payload, separators=(",", ":"), ensure_ascii=False),
])  # fmt: skip
@pytest.mark.parametrize("no_one_before", ["", "null", "None"])
def test_frames_of_other_writers_hold(spell: Any, no_one_before: str) -> None:
    payload = {"z": "grüße", "a": [1, 2.5]}
    text = f"{no_one_before}|{UTC}|0|said|{spell(payload)}"
    frame = {
        "stream_id": "s",
        "frame_n": 0,
        "utc": UTC,
        "kind": "said",
        "payload": payload,
        "prev_hash": None,
    }
    frame["hash"] = hashlib.sha256(text.encode()).hexdigest()
    frame["more"] = "kept"
    for document in ([frame], {"schema": "rapp-frame/1.0", "frames": [frame]}):
        for octets in (json.dumps(document, indent=2), json.dumps(document)):
            assert list(frames.verified(frames.decoded([octets.encode()]))) == [frame]


@pytest.mark.parametrize("change", [
    {"payload": {"text": "number 7"}}, {"utc": "2026-11-22T04:34:00.001Z"}, {"kind": "heard"}, {"frame_n": 2},
    {"frame_n": True}, {"frame_n": -1}, {"frame_n": "1"}, {"prev_hash": "0" * 64}, {"prev_hash": None}, {"hash": "0" * 64},
    {"hash": None}, {"stream_id": 7}, {"utc": None}, {"payload": {"text": "\ud800"}}, {"payload": {"n": 2**80}},
])  # fmt: skip
def test_one_changed_frame_is_damage(change: dict[str, Any]) -> None:
    first, second, third = talk()
    with pytest.raises(BadEggError):
        list(frames.verified([first, {**second, **change}, third]))


def test_a_frame_taken_out_put_in_or_moved_is_damage() -> None:
    first, second, third = talk()
    for wrong in ([first, third], [first, second, second], [second, first], [first, first]):
        with pytest.raises(BadEggError):
            list(frames.verified(wrong))
    other = talk(2, "another stream")
    mixed = [other[0], first, second, other[1], third]
    assert list(frames.verified(mixed)) == mixed


def test_a_piece_of_a_stream_may_stand_alone() -> None:
    assert list(frames.verified(talk()[1:])) == talk()[1:]
    first = {**talk()[0], "prev_hash": "0" * 64}
    first["hash"] = frames.hash_of(first)
    with pytest.raises(BadEggError, match="frame 0"):
        list(frames.verified([first]))


@pytest.mark.parametrize("octets", [
    b"", b"[", b"{}", b"7", b"[1]", b'[\n{"a":1}', b'[\n{"a":1},\n]\n', b'[\n{"a":1}\n{"a":1}\n]\n', b"\xff\xfe",
    b'[\n{"a":1}\n]\nmore', b'[\n{"a":1},\n\n]\n', b'{"frames":{}}', b"[" * 3000,
])  # fmt: skip
def test_what_are_no_frames_is_damage(octets: bytes) -> None:
    with pytest.raises(BadEggError):
        list(frames.verified(frames.decoded([octets])))


@given(st.binary(max_size=200), st.integers(1, 9))
def test_bytes_of_any_kind_never_crash(octets: bytes, cut: int) -> None:
    for start in (b"", b"[\n", b'[\n{"'):
        pieces = [start, *(octets[at : at + cut] for at in range(0, len(octets), cut))]
        try:
            list(frames.verified(frames.decoded(pieces)))
        except BadEggError:
            continue


def test_long_conversations_are_written_and_read_piece_by_piece() -> None:
    count = 20_000
    drawn = 0

    def long() -> Iterator[frames.Frame]:
        nonlocal drawn
        for frame in frames.chained("s", ((UTC, "said", {"text": f"{n} " * 20}) for n in range(count))):
            drawn += 1
            yield frame

    pieces = frames.encoded(long())
    read = frames.verified(frames.decoded(pieces))
    next(read)
    assert drawn < count / 2, "the first frame came before half of them were made"
    assert sum(1 for _ in read) == count - 1


def test_a_file_that_is_no_lines_is_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_WHOLE", 1000)
    monkeypatch.setattr(frames, "MAX_LINE", 1000)

    def endless(start: bytes) -> Iterator[bytes]:
        yield start
        while True:
            yield b"1," * 100

    for start in (b"[", b'[\n{"'):
        with pytest.raises(BadEggError):
            list(frames.decoded(endless(start)))


def test_a_payload_is_kept_as_json_says_it() -> None:
    made = frames.make("s", 0, UTC, "said", {"b": (1, 2), "a": 1}, None)
    assert made["payload"] == {"a": 1, "b": [1, 2]}
    assert orjson.dumps(made["payload"]) == b'{"a":1,"b":[1,2]}', (
        "a page that spells it as it lies gets the hash"
    )
