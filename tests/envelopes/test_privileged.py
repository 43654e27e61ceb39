"""Privileged messages: what is signed, what is refused, and how their replies read."""

from __future__ import annotations

import base64
import subprocess
from typing import Any

import pytest
from fixtures.refusals import refused
from lxml import etree

from envelopes.codecs.privileged import PrivilegedMessageError, refuse_privileged, refuse_privileged_text
from envelopes.codecs.privileged_xml import NAMESPACE, decode, push, refusal, response, sign
from envelopes.errors import BadSignatureError, EnvelopeError
from envelopes.identity.keys import IdentityKey

KEY, OTHER = IdentityKey.generate(), IdentityKey.generate()
REQUEST = f'<register-listener xmlns="{NAMESPACE}"><name>calc &amp; co</name><file>a_agent.py</file></register-listener>'


def test_signed_is_the_context_and_the_canonical_payload(tmp_path: Any) -> None:
    raw = sign(REQUEST.encode(), KEY)
    found = decode(raw).verified(KEY.public)
    assert found.name == "register-listener"
    assert found.fields == {"name": "calc & co", "file": "a_agent.py"}
    payload = etree.fromstring(raw)[0]
    octets = etree.tostring(payload, method="c14n", exclusive=True)
    assert found.signed == b"rappd/privileged\n" + octets
    (tmp_path / "payload.xml").write_bytes(octets)
    try:
        ran = subprocess.run(
            ["xmllint", "--exc-c14n", str(tmp_path / "payload.xml")], capture_output=True, check=True
        )
    except FileNotFoundError:
        return
    assert ran.stdout == octets


def test_a_signed_message_may_be_written_otherwise_and_signed_anew() -> None:
    raw = sign(REQUEST.encode(), KEY).decode()
    spread = raw.replace("><signature", ">\n  <signature").replace(
        'algorithm="ed25519"', "algorithm='ed25519'"
    )
    assert decode(spread.encode()).verified(KEY.public)
    again = sign(raw.encode(), OTHER)
    assert decode(again).verified(OTHER.public).id != decode(raw.encode()).id


@pytest.mark.parametrize(
    ("old", "new"),
    [("calc", "calx"), (' id="', ' id="0'), ("register-l", "unregister-l"), ('Z"', '+01:00"')],
    ids=["a field", "the id", "the request", "the time"],
)
def test_a_changed_message_is_not_a_signed_one(old: str, new: str) -> None:
    raw = sign(REQUEST.encode(), KEY).decode().replace(old, new)
    with pytest.raises(EnvelopeError):
        decode(raw.encode()).verified(KEY.public)


def test_another_key_and_no_signature_are_refused() -> None:
    raw = sign(REQUEST.encode(), OTHER)
    with pytest.raises(BadSignatureError):
        decode(raw).verified(KEY.public)
    bare = raw[: raw.index(b"<signature")] + b"</privileged-msg>"
    with pytest.raises(BadSignatureError):
        decode(bare).verified(KEY.public)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"<!DOCTYPE a><privileged-msg/>", "xml_refused"),
        (b"<a/>", "malformed"),
        (f'<privileged-msg xmlns="{NAMESPACE}"/>'.encode(), "malformed"),
        (
            f'<privileged-msg xmlns="{NAMESPACE}"><payload id="1" timestamp="2026-01-01"><a/></payload></privileged-msg>'.encode(),
            "malformed",
        ),
        (b"<privileged-msg", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"x" * 70_000, "malformed"),
    ],
    ids=["DTD", "another root", "empty", "no time", "cut off", "not UTF-8", "too long"],
)
def test_odd_messages_are_refused(raw: bytes, code: str) -> None:
    with refused(code):
        decode(raw)


def test_replies_are_well_formed_whatever_they_hold() -> None:
    for raw in (
        response("a"),
        response("a", operation="x", result={"text": "<&\x00\ud83d\ude00]]>"}),
        refusal("a", "code", "a < b & \x00", "do"),
        push("thread-event", {"what": "<x/>"}),
    ):
        assert etree.fromstring(raw).tag.startswith(f"{{{NAMESPACE}}}privileged-")


@pytest.mark.parametrize(
    "found",
    [
        {"ns": NAMESPACE},
        {"ns": f" {NAMESPACE}/v1", "user_input": "hi"},
        {"data": {"ns": NAMESPACE, "root": "shutdown", "body": ""}},
        {"params": {"message": {"parts": [{"text": "hi"}, {"data": {"ns": NAMESPACE}}]}}},
        {"params": {"arguments": {"ns": NAMESPACE}}},
    ],
    ids=["top", "beside a sentence", "data", "A2A", "MCP"],
)
def test_a_payload_of_that_namespace_is_dropped(found: object, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(PrivilegedMessageError):
        refuse_privileged(found, listener="test")
    assert "security: a privileged message" in caplog.text


@pytest.mark.parametrize(
    "found",
    [
        {"user_input": f"what is {NAMESPACE}?"},
        {"user_input": f'<shutdown xmlns="{NAMESPACE}"/>'},
        {"data": {"ns": "https://xml-pipeline.org/ns/core/v1"}},
        {"ns": 5},
        [NAMESPACE],
    ],
    ids=["mentioned", "text that is XML", "another namespace", "no text", "a list of text"],
)
def test_text_that_mentions_it_is_text(found: object) -> None:
    refuse_privileged(found, listener="test")
    refuse_privileged_text(f"what is {NAMESPACE}?".encode(), listener="test")


def test_base64_is_strict() -> None:
    raw = sign(REQUEST.encode(), KEY).decode()
    made = raw[raw.index('ed25519">') + 9 : raw.index("</signature>")]
    assert len(base64.b64decode(made)) == 64
    with pytest.raises(BadSignatureError):
        decode(raw.replace(made, made + "!").encode())
