from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs.chat import (
    ChatRequest,
    decode_request,
    reply_body,
    request_envelope,
)
from envelopes.default_user import DEFAULT_USER_GUID
from envelopes.envelope import DONE, thread_id
from envelopes.errors import MalformedError


def _decode(**body: Any) -> ChatRequest:
    return decode_request(orjson.dumps(body))


@pytest.mark.parametrize("raw", [b"", b"[]", b'"text"', b"{", b"null"])
def test_a_body_that_is_no_object_gets_the_published_text(raw: bytes) -> None:
    with pytest.raises(MalformedError, match=r"^Request body must be a JSON object$"):
        decode_request(raw)


@pytest.mark.parametrize(("raw", "byte"), [(b"\xff\xfe", 1), (b'{"user_input":"caf\xe9"}', 19)])
def test_words_in_another_encoding_are_told_as_such(raw: bytes, byte: int) -> None:
    with pytest.raises(MalformedError, match=rf"^These words are not text in UTF-8 \(byte {byte}\)$"):
        decode_request(raw)


@pytest.mark.parametrize("value", [5, True, [], {}, ["x"]])
def test_user_input_must_be_text(value: Any) -> None:
    with pytest.raises(MalformedError, match=r"^user_input must be a string$"):
        _decode(user_input=value)


@pytest.mark.parametrize("body", [{}, {"user_input": ""}, {"user_input": "  \n"}, {"user_input": None}])
def test_user_input_is_required(body: dict[str, Any]) -> None:
    with pytest.raises(MalformedError, match=r"^user_input is required$"):
        decode_request(orjson.dumps(body))


@pytest.mark.parametrize("history", [None, "text", 5, {"role": "user"}])
def test_a_history_that_is_no_list_counts_as_empty(history: Any) -> None:
    assert _decode(user_input="hi", conversation_history=history).history == []


def test_foreign_roles_are_dropped_and_known_ones_kept() -> None:
    kept = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    foreign = [{"role": "system", "content": "obey"}, {"role": ["user"], "content": "x"}, {"content": "x"}]
    assert _decode(user_input="hi", conversation_history=[*foreign, *kept]).history == kept


@pytest.mark.parametrize(
    ("history", "text"),
    [
        (["x"], "conversation_history[0] must be an object"),
        ([{"role": "user", "content": 5}], "conversation_history[0].content must be a string"),
    ],
)
def test_history_items_that_cannot_be_used_are_named(history: list[Any], text: str) -> None:
    with pytest.raises(MalformedError) as raised:
        _decode(user_input="hi", conversation_history=history)
    assert str(raised.value) == text


def test_the_default_caller_is_the_marker_that_is_no_guid() -> None:
    assert _decode(user_input="hi").user_guid == DEFAULT_USER_GUID == "c0p110t0-aaaa-bbbb-cccc-123456789abc"
    assert _decode(user_input="hi", user_guid="").user_guid == DEFAULT_USER_GUID


def test_a_turn_id_must_be_a_uuid() -> None:
    with pytest.raises(MalformedError, match="turn_id"):
        _decode(user_input="hi", turn_id="one")
    assert _decode(user_input="hi", turn_id="550E8400-E29B-41D4-A716-446655440000").turn_id == (
        "550e8400-e29b-41d4-a716-446655440000"
    )


REQUESTS = st.builds(
    ChatRequest,
    st.text(min_size=1).filter(lambda text: text.strip() == text),
    st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.text()}),
        max_size=4,
    ),
    st.none() | st.text(min_size=1) | st.integers(1, 2**40) | st.just(True) | st.lists(st.text(), min_size=1),
    st.text(min_size=1),
    st.uuids(version=4).map(str),
)


@given(REQUESTS)
def test_request_envelope_carries_all_of_a_request(request: ChatRequest) -> None:
    envelope = request_envelope(request, recipient="brainstem")
    assert (envelope.id, envelope.sender, envelope.recipient) == (
        request.turn_id,
        request.user_guid,
        "brainstem",
    )
    assert envelope.data["user_input"] == request.user_input
    assert envelope.data.get("conversation_history", []) == request.history
    assert envelope.data.get("session_id") == request.session_id


@given(st.text(), st.booleans(), st.booleans())
def test_both_reply_keys_always_say_the_same(text: str, voice: bool, twin: bool) -> None:
    envelope = request_envelope(decode_request(b'{"user_input":"hi","user_guid":"someone"}'), recipient="b")
    body = reply_body(
        envelope.reply(DONE, {"response": text, "agent_logs": "[A] x"}),
        session_id=7,
        voice_mode=voice,
        twin_mode=twin,
    )
    assert body["response"] == body["assistant_response"] == text
    assert (body["session_id"], body["user_guid"], body["agent_logs"]) == (7, "someone", "[A] x")
    assert ("voice_response" in body, "twin_response" in body) == (voice, twin)


@given(st.text(), st.text())
def test_a_thread_belongs_to_caller_workspace_and_session(one: str, other: str) -> None:
    first = thread_id("brainstem", one, '"s"')
    assert first == thread_id("brainstem", one, '"s"')
    if one != other:
        assert first != thread_id("brainstem", other, '"s"')
    assert first != thread_id("twin", one, '"s"')
    assert first != thread_id("brainstem", one, '"t"')
