"""Pictures of a request: by their bytes, within bounds, and the same in the record."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs import emergence
from envelopes.codecs.chat import decode_request, request_envelope
from envelopes.codecs.pictures import MOST_BYTES, checked, media_type, recorded, size_of
from envelopes.envelope import PICTURES
from envelopes.errors import MalformedError

BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x10\x00\x00\x00WEBP",
}
KINDS = st.sampled_from(sorted(BEGINNINGS))


def _picture(kind: str, rest: bytes = b"", **more: str) -> dict[str, str]:
    return {"type": kind, "data": base64.b64encode(BEGINNINGS[kind] + rest).decode(), **more}


PICTURE = st.builds(
    lambda kind, rest, name: _picture(kind, rest, **({"name": name} if name else {})),
    KINDS,
    st.binary(max_size=300),
    st.text(st.characters(categories=["L", "N"]), max_size=120),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | PICTURE,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["type", "data", "name"]), inner)
    ),
    max_leaves=10,
)


@given(st.lists(PICTURE, max_size=4))
def test_pictures_survive_request_record_and_back(pictures: list[dict[str, str]]) -> None:
    asked = decode_request(orjson.dumps({"user_input": "look", "pictures": pictures}))
    envelope = request_envelope(asked, recipient="brainstem_0123456789abcdef")
    stored = emergence.decode(emergence.encode(envelope))
    assert asked.pictures == pictures == recorded(stored.extensions)
    assert "pictures" not in stored.data
    assert (PICTURES in stored.extensions) == bool(pictures)


@given(ANYTHING)
def test_whatever_is_sent_is_taken_as_pictures_or_refused_by_its_field(sent: Any) -> None:
    try:
        found = checked(sent)
    except MalformedError as problem:
        assert "pictures" in str(problem)
        assert problem.do
        return
    assert sum(map(size_of, found)) <= 4 << 20
    for one in found:
        assert media_type(base64.b64decode(one["data"])) == one["type"]
        assert size_of(one) == len(base64.b64decode(one["data"]))


@given(KINDS, KINDS)
def test_bytes_say_what_a_picture_is(kind: str, said: str) -> None:
    sent = [{**_picture(kind), "type": said}]
    if kind == said:
        assert checked(sent) == sent
    else:
        with pytest.raises(MalformedError, match=f"is {kind}, not {said}"):
            checked(sent)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ([_picture("image/png")] * 5, "5 pictures; 4 are the most"),
        ([_picture("image/png", b"x" * MOST_BYTES)], r"pictures\[0\] is larger than 2.0 MiB"),
        ([_picture("image/png", b"x" * (MOST_BYTES - 100))] * 3, "6.0 MiB together; 4.0 MiB are the most"),
        ([{"type": "image/svg+xml", "data": "PHN2Zz4="}], "is no PNG, JPEG, GIF or WebP picture"),
        ([{"type": "image/png", "data": "data:image/png;base64,iVBORw0KGgo="}], "must be base64"),
        ("https://example.org/cat.png", "must be a list"),
    ],
)
def test_unfit_pictures_are_refused_with_the_reason(sent: Any, why: str) -> None:
    with pytest.raises(MalformedError, match=why):
        decode_request(orjson.dumps({"user_input": "look", "pictures": sent}))


def test_pictures_of_earlier_messages_are_bounded_together() -> None:
    one = {"role": "user", "content": "look", "pictures": [_picture("image/gif")]}
    asked = decode_request(orjson.dumps({"user_input": "and now?", "conversation_history": [one] * 4}))
    assert asked.history == [one] * 4
    with pytest.raises(MalformedError, match="conversation_history has 5 pictures"):
        decode_request(orjson.dumps({"user_input": "and now?", "conversation_history": [one] * 5}))
