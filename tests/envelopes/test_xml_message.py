"""Messages in XML: the record of the Rulebook in ``<message>``, both ways without loss, and a refusal for all else."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from envelopes.codecs import xml_message
from envelopes.codecs.xml_message import ENVELOPE_NS, RAPPD_NS, decode
from envelopes.envelope import Envelope
from envelopes.errors import BadSignatureError, EnvelopeError, MalformedError

ID = "550e8400-e29b-41d4-a716-446655440000"
THREAD = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
NS = "https://xml-pipeline.org/ns/envelope/v1"
SUM = '<add xmlns="https://xml-pipeline.org/ns/calc/add/v1"><a>1</a><b>2</b></add>'
PLAIN = f'<message xmlns="{NS}"><meta><from>ann</from><thread/></meta>{SUM}</message>'
HEX = "0123456789abcdef"
SIGNATURE = {"alg": "Ed25519", "kid": HEX * 4, "key": HEX * 4, "t": 1_800_000_000, "s": HEX * 8}


def _decoded(text: str) -> xml_message.XmlMessage:
    return xml_message.decode(text.encode(), recipient="core")


def _refused(text: str | bytes) -> EnvelopeError:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(EnvelopeError) as caught:
        xml_message.decode(raw, recipient="core")
    return caught.value


def test_message_of_the_source_becomes_a_help() -> None:
    envelope, thread = _decoded(PLAIN.replace("<thread/>", "<to>calc</to><thread>sess-1.research</thread>"))
    assert (envelope.sender, envelope.recipient, envelope.verb) == ("ann", "calc", "HELP")
    assert thread == "sess-1.research"
    assert envelope.data == {"ns": "https://xml-pipeline.org/ns/calc/add/v1", "root": "add", "body": SUM}


def test_message_without_recipient_is_for_whom_the_listener_says() -> None:
    assert _decoded(PLAIN).envelope.recipient == "core"


def test_payload_without_namespace_is_typed_by_its_root() -> None:
    found = _decoded(PLAIN.replace(SUM, '<add xmlns=""><a>1</a></add>')).envelope.data
    assert found == {"ns": "", "root": "add", "body": "<add><a>1</a></add>"}


_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | _NUMBERS
    | _TEXT
    | st.sampled_from(["\0", "]]>", "<a>&", "\ufffe\uffff", "\r\n"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
_NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
_TYPED = st.sampled_from(
    [
        {"ns": "urn:x", "root": "a", "body": '<a xmlns="urn:x">1 &amp; 2</a>'},
        {"ns": "", "root": "a", "body": "<a></a>"},
        {"ns": "urn:x", "root": "a", "body": "<a>"},
        {"ns": "urn:x", "root": "a", "body": '<a xmlns="urn:x" />'},
        {"ns": xml_message.RAPPD_NS, "root": "data", "body": '<data xmlns="urn:rappd:message:1">{}</data>'},
    ]
)
_ENVELOPES = st.builds(
    Envelope,
    st.uuids(version=4).map(str),
    _NAMES,
    _NAMES,
    st.sampled_from(["HELLO", "HELP", "DONE", "ERROR", "STREAM", "CANCEL", "ACK", "NOTE"]),
    st.dictionaries(_TEXT, _JSON, max_size=4) | _TYPED,
    st.fixed_dictionaries(
        {},
        optional={
            "_x_thread": st.uuids().map(str),
            "_x_sig": st.just(SIGNATURE),
            "_x_huh": st.just({"sha256": HEX, "repairs": ["x"]}) | _JSON,
            "_x_xml_meta": st.just(['<m xmlns="urn:m">1</m>']) | _JSON | st.just(["<m>"]),
            "_x_pictures": st.just([{"type": "image/png", "data": "AAAA"}]),
        },
    ).flatmap(
        lambda known: st.dictionaries(_TEXT.map(lambda text: f"_x_f{text}"), _JSON, max_size=2).map(
            lambda more: known | more
        )
    ),
)


@given(_ENVELOPES, _NAMES | st.just(""))
def test_any_record_comes_back_as_it_was(envelope: Envelope, thread: str) -> None:
    raw = xml_message.encode(envelope, thread=thread)
    assert xml_message.decode(raw, recipient="core") == (envelope, thread)
    assert xml_message.encode(*xml_message.decode(raw, recipient="core")[:1], thread=thread) == raw


@given(_ENVELOPES)
def test_bytes_are_canonical(envelope: Envelope) -> None:
    raw = xml_message.encode(envelope)
    root = etree.fromstring(raw)
    assert etree.tostring(root, method="c14n", exclusive=True, with_comments=False) == raw


def test_bytes_are_canonical_for_xmllint(tmp_path: Any) -> None:
    file = tmp_path / "message.xml"
    raw = xml_message.encode(_decoded(PLAIN).envelope)
    file.write_bytes(raw)
    ran = subprocess.run(["xmllint", "--exc-c14n", file], capture_output=True, check=True)
    assert ran.stdout == raw


def test_schema_accepts_what_is_written(tmp_path: Any) -> None:
    file = tmp_path / "message.xml"
    file.write_bytes(xml_message.encode(_decoded(PLAIN).envelope, thread="a.b"))
    schema = xml_message.__file__.replace("xml_message.py", "envelope.xsd")
    ran = subprocess.run(["xmllint", "--noout", "--schema", schema, file], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PLAIN.replace("<from>ann</from><thread/>", "<thread/><from>ann</from>"), "thread"),
        (PLAIN.replace("<from>ann</from>", ""), "from"),
        (PLAIN.replace("<thread/>", ""), "thread"),
        (PLAIN.replace("<thread/>", "<thread/><to>x</to>"), "to"),
        (PLAIN.replace(SUM, ""), "message"),
        (PLAIN.replace(SUM, SUM + SUM), "add"),
        (PLAIN.replace("<from>ann</from>", "<from></from>"), "from"),
        ("<message/>", "message"),
        ("hello", "line 1"),
        ("", "line 1"),
    ],
)
def test_wrong_shape_names_its_element_and_line(text: str, says: str) -> None:
    problem = _refused(text)
    assert isinstance(problem, MalformedError)
    assert (problem.code, problem.status) == ("malformed", 400)
    assert says in str(problem).lower()


_BOMB = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))


@pytest.mark.parametrize(
    "text",
    [
        f'<!DOCTYPE m [<!ENTITY l0 "ha">{_BOMB}]>{PLAIN.replace("ann", "&l9;")}',
        f'<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]>{PLAIN.replace("ann", "&x;")}',
        f'<!DOCTYPE m SYSTEM "http://127.0.0.1:1/x.dtd">{PLAIN}',
        f"<?php x ?>{PLAIN}",
        PLAIN.replace("<a>1", "<?x y?><a>1"),
        '<?xml version="1.0"?><!DOCTYPE m>' + PLAIN,
    ],
)
def test_nothing_is_expanded(text: str) -> None:
    problem = _refused(text)
    assert isinstance(problem, EnvelopeError)
    assert problem.code == "xml_refused"


def test_careless_message_is_taken_and_says_what_was_mended() -> None:
    careless = PLAIN.replace("<a>1</a>", "<a>1 & 2</a>")
    envelope, _ = _decoded(careless)
    assert "1 &amp; 2" in envelope.data["body"]
    assert envelope.extensions["_x_huh"]["repairs"]
    assert len(envelope.extensions["_x_huh"]["sha256"]) == 64
    assert b"<repair>" in xml_message.encode(envelope)


@pytest.mark.parametrize("cut", ["</b></add></message>", "</message>", "</add></message>"])
def test_cut_off_message_is_completed_and_marked(cut: str) -> None:
    envelope, _ = _decoded(PLAIN.removesuffix(cut))
    assert envelope.data["body"] == SUM
    assert envelope.extensions["_x_huh"]["repairs"]


def test_repaired_message_is_no_signed_one() -> None:
    signed = xml_message.encode(_decoded(PLAIN).envelope.extended(_x_sig=SIGNATURE)).decode()
    assert _decoded(signed).envelope.extensions["_x_sig"] == SIGNATURE
    with pytest.raises(BadSignatureError):
        _decoded(signed.removesuffix("</message>"))


@pytest.mark.parametrize(
    "inner",
    ["<x>" * 70 + "</x>" * 70, "<x/>" * 25_000, "<x>" * 5000, "x" * (1 << 20)],
    ids=["deep", "many", "deep and unclosed", "large"],
)
def test_size_and_depth_are_bounded(inner: str) -> None:
    assert isinstance(_refused(PLAIN.replace("<a>1</a>", inner)), MalformedError)


@pytest.mark.parametrize(
    "meta",
    [
        "<id>no</id>",
        f"<id>{ID}</id><id>{ID}</id>",
        "<extension>{}</extension>",
        '<extension>{"x": 1}</extension>',
        '<extension>{"_x_a": 1, "_x_b": 1}</extension>',
        '<extension>{"_x_a": 1}</extension><extension>{"_x_a": 2}</extension>',
        '<extension>{"_x_a": {"b": 1, "b": 2}}</extension>',
        '<extension>{"_x_deadline": "soon"}</extension>',
        "<extension>[</extension>",
        "<thread>no</thread>",
    ],
)
def test_wrong_elements_of_meta_are_refused(meta: str) -> None:
    ours = meta.replace("<id>", f'<id xmlns="{xml_message.RAPPD_NS}">')
    ours = ours.replace("<extension>", f'<extension xmlns="{xml_message.RAPPD_NS}">')
    ours = ours.replace("<thread>", f'<thread xmlns="{xml_message.RAPPD_NS}">')
    assert isinstance(_refused(PLAIN.replace("<thread/>", f"<thread/>{ours}")), MalformedError)


@given(st.binary(max_size=60), st.integers(0, len(PLAIN)), st.integers(0, 40))
def test_any_bytes_are_a_message_or_refused(noise: bytes, at: int, cut: int) -> None:
    raw = PLAIN.encode()
    try:
        envelope, _ = xml_message.decode(raw[:at] + noise + raw[at + cut :], recipient="core")
    except EnvelopeError:
        return
    assert xml_message.decode(xml_message.encode(envelope), recipient="core").envelope == envelope


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ("<a xmlns='urn:c' " + " ".join(f'n{n}="1"' for n in range(257)) + "/>", "more than 256 attributes"),
        (
            "<a xmlns='urn:c' " + " ".join(f'n{n}="1"' for n in range(60_000)) + "/>",
            "more than 256 attributes",
        ),
        (f"<data xmlns='{RAPPD_NS}' more='1'>{{}}</data>", "holds text alone"),
    ],
    ids=["attributes", "very many attributes", "attribute of data"],
)
def test_what_costs_long_or_would_be_left_out_is_refused(payload: str, told: str) -> None:
    began = time.process_time()
    with pytest.raises(MalformedError, match=told):
        decode(
            f'<message xmlns="{ENVELOPE_NS}"><meta><from>a</from><thread/></meta>{payload}</message>'.encode(),
            recipient="me",
        )
    assert time.process_time() - began < 20, "it took 147 s"


@pytest.mark.parametrize("name", ["id", "verb", "thread", "extension"])
def test_elements_of_a_message_hold_text_alone(name: str) -> None:
    for inner in (f"<{name} xmlns='{RAPPD_NS}'><b/>lost</{name}>", f"<{name} xmlns='{RAPPD_NS}' b='lost'/>"):
        meta = f"<meta><from>a</from><thread/>{inner}</meta>"
        with pytest.raises(MalformedError, match=f"<{name}> in line 1 holds text alone"):
            decode(
                f'<message xmlns="{ENVELOPE_NS}">{meta}<a xmlns="urn:c"/></message>'.encode(), recipient="me"
            )
