"""Bad messages in XML at the real listener: each gets the answer of its kind, and none an error inside."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lxml import etree

from envelopes.codecs.xml_message import ENVELOPE_NS, RAPPD_NS
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine

NS = "https://xml-pipeline.org/ns/calculator/calculator/v1"
CORE = "https://xml-pipeline.org/ns/core/v1"
SUM = f'<calculate xmlns="{NS}"><a>1</a><operation>add</operation><b>2</b></calculate>'
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
REFUSED, MALFORMED, MISTYPED = (400, "xml_refused"), (400, "malformed"), (400, "mistyped")
NOBODY, UNKNOWN, SPOOFED = (403, "refused"), (404, "unknown_thread"), (403, "wrong_sender")
SIGNED = (401, "bad_signature")
DONE = (200, "")


def message(
    payload: str = SUM, *, sender: str = "ME", thread: str = "<thread/>", more: str = "", to: str = ""
) -> str:
    meta = f"<meta><from>{sender}</from>{to}{thread}{more}</meta>"
    return f'<message xmlns="{ENVELOPE_NS}">{meta}{payload}</message>'


def field(text: str) -> str:
    return SUM.replace("<a>1</a>", f"<a>{text}</a>")


def extension(value: dict[str, Any]) -> str:
    return f'<extension xmlns="{RAPPD_NS}">{json.dumps(value)}</extension>'


def said(name: str, text: str) -> str:
    return f'<{name} xmlns="{RAPPD_NS}">{text}</{name}>'


CLAIM = extension({"_x_sig": {"alg": "Ed25519", "kid": "ab" * 32, "key": "ab" * 32, "t": 1, "s": "ab" * 64}})
DEEP = "<b>" * 70 + "</b>" * 70

MESSAGES: dict[str, tuple[str | bytes, tuple[int, str]]] = {
    "whole": (message(), DONE),
    "document type": ("<!DOCTYPE m>" + message(), REFUSED),
    "small letters": ("<!doctype m>" + message(), REFUSED),
    "entity": ('<!DOCTYPE m [<!ENTITY a "1">]>' + message(field("&a;")), REFUSED),
    "file as entity": ('<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + message(field("&a;")), REFUSED),
    "parameter entity": ('<!DOCTYPE m [<!ENTITY % a SYSTEM "http://127.0.0.1:9/">%a;]>' + message(), REFUSED),
    "entity that was cut off": ('<!DOCTYPE m [<!ENTITY a "1"', REFUSED),
    "document type behind it": (message() + "<!DOCTYPE m>", REFUSED),
    "instruction": ('<?xml-stylesheet href="x"?>' + message(), REFUSED),
    "instruction inside": (message(field("1<?php x?>")), REFUSED),
    "instruction behind it": (message() + "<?x?>", REFUSED),
    "two declarations": ('<?xml version="1.0"?><?xml version="1.0"?>' + message(), REFUSED),
    "declaration": ('<?xml version="1.0" encoding="UTF-8"?>' + message(), DONE),
    "UTF-16": (message().encode("utf-16"), MALFORMED),
    "UTF-16, bomb": (('<!DOCTYPE m [<!ENTITY a "1">]>' + message()).encode("utf-16-le"), MALFORMED),
    "UTF-32": (message().encode("utf-32"), MALFORMED),
    "UTF-7": (b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE m+AD4-' + message().encode(), MALFORMED),
    "no UTF-8": (message(field("\u00e9")).encode("latin-1"), MALFORMED),
    "another encoding is said": ('<?xml version="1.0" encoding="utf-16"?>' + message(), DONE),
    "nothing": ("", MALFORMED),
    "text": ("hello", MALFORMED),
    "JSON": ('{"a": 1}', MALFORMED),
    "another root": ("<calculate/>", MALFORMED),
    "another namespace": (message().replace(ENVELOPE_NS, "urn:x"), MALFORMED),
    "no namespace": (message().replace(f' xmlns="{ENVELOPE_NS}"', ""), MALFORMED),
    "no from": (message().replace("<from>ME</from>", ""), MALFORMED),
    "empty from": (message(sender=""), MALFORMED),
    "two from": (message().replace("<thread/>", "<from>ME</from><thread/>"), MALFORMED),
    "no thread": (message(thread=""), MALFORMED),
    "thread before from": (message().replace("<from>ME</from><thread/>", "<thread/><from>ME</from>"), MALFORMED),
    "two meta": (message().replace("</meta>", "</meta><meta><from>ME</from><thread/></meta>"), MALFORMED),
    "no payload": (message(""), MALFORMED),
    "two payloads": (message(SUM + SUM), MALFORMED),
    "text as payload": (message("1 + 2"), MALFORMED),
    "text beside the payload": (message(SUM + "lost?"), MALFORMED),
    "text in meta": (message(thread="<thread/>lost?"), MALFORMED),
    "attribute of the message": (message().replace("<message ", '<message to="x" ', 1), MALFORMED),
    "id that is none": (message(more=said("id", "x")), MALFORMED),
    "id with more in it": (message(more=said("id", "<b/>lost")), MALFORMED),
    "verb twice": (message(more=said("verb", "HELP") * 2), MALFORMED),
    "unknown verb": (message(more=said("verb", "FLY")), (400, "unknown_verb")),
    "extension twice": (message(more=extension({"_x_a": 1}) * 2), MALFORMED),
    "extension without its letter": (message(more=extension({"from": "core"})), MALFORMED),
    "data is no object": (message(f'<data xmlns="{RAPPD_NS}">[]</data>'), MALFORMED),
    "data says a key twice": (message(f'<data xmlns="{RAPPD_NS}">{{"a":1,"a":2}}</data>'), MALFORMED),
    "lone surrogate": (message(f'<data xmlns="{RAPPD_NS}">{{"a":"\\ud800"}}</data>'), MALFORMED),
    "relative namespace": (message('<a xmlns="x"/>'), MALFORMED),
    "prefix that nobody declared": (message("<z:a/>"), MALFORMED),
    "deep": (message(f'<a xmlns="urn:x">{DEEP}</a>'), MALFORMED),
    "very deep": (message('<a xmlns="urn:x">' + "<b>" * 90_000), MALFORMED),
    "wide": (message('<a xmlns="urn:x">' + "<b/>" * 30_000 + "</a>"), MALFORMED),
    "many attributes": (message('<a xmlns="urn:x" ' + " ".join(f'a{n}=""' for n in range(9000)) + "/>"), MALFORMED),
    "a name beyond all measure": (message(f'<{"a" * 500_000} xmlns="urn:x"/>'), MALFORMED),
    "comments without an end": (message(field("<!--" * 100_000)), MISTYPED),
    "cut off": (message().removesuffix("</calculate></message>"), DONE),
    "cut off in a tag": (message()[:-4], DONE),
    "cut off after the first letter of a tag": (message()[:-9], DONE),
    "cut off and signed": (message(more=CLAIM)[:-9], SIGNED),
    "ampersand and signed": (message(field("1 & 2"), more=CLAIM), SIGNED),
    "signed by nobody": (message(more=CLAIM), SIGNED),
    "ampersand": (message(field("1 & 2")), MISTYPED),
    "less than": (message(field("1 < 2")), MISTYPED),
    "end of CDATA": (message(field("1 ]]> 2")), MISTYPED),
    "NUL": (message(field("1\0")), MISTYPED),
    "reference to no character": (message(field("&#xD800;")), MISTYPED),
    "CDATA": (message(field("<![CDATA[1]]>")), DONE),
    "comment": (message(field("1<!-- one -->")), DONE),
    "no number": (message(field("one")), MISTYPED),
    "a number of Python": (message(field("1_0")), MISTYPED),
    "digits of another script": (message(field("\u0661")), MISTYPED),
    "elements in a value": (message(field("<b/>1")), MISTYPED),
    "unknown field": (message(SUM.replace("</calculate>", "<c/></calculate>")), MISTYPED),
    "field is missing": (message(SUM.replace("<b>2</b>", "")), MISTYPED),
    "field twice": (message(SUM.replace("<b>2</b>", "<b>2</b><b>3</b>")), MISTYPED),
    "another order": (message(SUM.replace("<a>1</a>", "").replace("</calculate>", "<a>1</a></calculate>")), MISTYPED),
    "text beside fields": (message(SUM.replace("<a>", "lost?<a>")), MISTYPED),
    "attribute of a field": (message(SUM.replace("<a>", '<a unit="m">')), MISTYPED),
    "field of another namespace": (message(SUM.replace("<a>", '<a xmlns="urn:x">')), MISTYPED),
    "field of no namespace": (message(SUM.replace("<a>", '<a xmlns="">')), MISTYPED),
    "whole payload of no namespace": (message(SUM.replace(NS, "")), DONE),
    "included": (
        message(field('<x:include xmlns:x="http://www.w3.org/2001/XInclude" href="/etc/passwd"/>')), MISTYPED,
    ),
    "place of a schema": (
        message(SUM.replace(" xmlns", f' {XSI} xsi:schemaLocation="{NS} http://127.0.0.1:9/x.xsd" xmlns', 1)), DONE,
    ),
    "another type": (message(SUM.replace("<a>", f'<a {XSI} xsi:type="b">')), MISTYPED),
    "unknown root": (message('<nothing xmlns=""/>'), NOBODY),
    "unknown namespace": (message(SUM.replace(NS, "urn:x")), NOBODY),
    "version that there is not yet": (message(SUM.replace("/v1", "/v9")), NOBODY),
    "version nought": (message(SUM.replace("/v1", "/v0")), NOBODY),
    "version beyond all measure": (message(SUM.replace("/v1", f"/v{'9' * 9000}")), NOBODY),
    "no version": (message(SUM.replace("/v1", "")), NOBODY),
    "one that it may not use": (message('<secret xmlns=""/>'), NOBODY),
    "rappd's own namespace": (message(said("other", "x")), NOBODY),
    "unknown of core": (message(f'<fly xmlns="{CORE}"/>'), NOBODY),
    "message of the system": (message(f'<boot xmlns="{CORE}"/>'), NOBODY),
    "answer of core": (message(f'<thread-spawned xmlns="{CORE}"/>'), NOBODY),
    "unknown of meta": (message('<fly xmlns="https://xml-pipeline.org/ns/meta/v1"/>'), NOBODY),
    "thread of nobody": (message(thread="<thread>a.b</thread>"), UNKNOWN),
    "thread of somebody else": (message(thread="<thread>THEIRS</thread>"), UNKNOWN),
    "thread of somebody else by its id": (message(more=said("thread", "THEIRS")), UNKNOWN),
    "thread below somebody else's by its id": (message(more=said("thread", "BELOW")), UNKNOWN),
    "thread of many letters": (message(thread=f"<thread>{'x.' * 300_000}</thread>"), UNKNOWN),
    "pattern as thread": (message(thread="<thread>%</thread>"), UNKNOWN),
    "blank thread": (message(thread="<thread> \n </thread>"), DONE),
    "core": (message(sender="core"), SPOOFED),
    "system": (message(sender="system"), SPOOFED),
    "this machine": (message(sender="brainstem_HERE"), SPOOFED),
    "its own name with more": (message(sender="ME x"), SPOOFED),
    "its own name with a break": (message(sender="core\nME"), MALFORMED),
}  # fmt: skip


@pytest.fixture(scope="module")
def lab(node: Node) -> PlainMachine:
    return node.peer("lab", "friend", ["HELP.brainstem.calculator"])


@pytest.fixture(scope="module")
def theirs(node: Node) -> tuple[str, str]:
    """The ids of a thread of another machine, and of one below it."""
    other = node.peer("other", "friend", ["HELP.brainstem.calculator"])
    spawn = f'<spawn-thread xmlns="{CORE}"><name>x</name></spawn-thread>'
    headers = {"Content-Type": "application/xml"}
    reply = other.request(
        "POST", "/envelopes", message(spawn).replace("ME", other.id).encode(), headers=headers
    )
    spawned = etree.fromstring(reply.body)
    root = spawned[0].findtext(f"{{{RAPPD_NS}}}thread")
    return root, spawned[1].findtext(f"{{{CORE}}}assigned_id")


@pytest.mark.parametrize("kind", MESSAGES)
def test_each_kind_gets_its_answer(node: Node, lab: PlainMachine, theirs: tuple[str, str], kind: str) -> None:
    raw, wanted = MESSAGES[kind]
    if isinstance(raw, str):
        for name, value in (
            ("ME", lab.id),
            ("THEIRS", theirs[0]),
            ("BELOW", theirs[1]),
            ("HERE", node.fingerprint[:16]),
        ):
            raw = raw.replace(name, value)
        raw = raw.encode("utf-8", "surrogatepass")
    reply = lab.request("POST", "/envelopes", raw, headers={"Content-Type": "application/xml"})
    payload = etree.fromstring(reply.body)[1]
    data = json.loads(payload.text or "{}") if etree.QName(payload).namespace == RAPPD_NS else {}
    assert (reply.status, data.get("reason", "")) == wanted, reply.body[:600]
    if wanted is MALFORMED and kind not in ("UTF-16",):
        assert data["msg"] and data["do"]
    assert "Traceback" not in node.daemon.log


def test_the_same_in_json_whose_body_is_another_element(lab: PlainMachine) -> None:
    for body in (
        SUM.replace("calculate", "other"),
        SUM.replace(NS, "urn:x"),
        "<a/>",
        "1 + 2",
        "<!DOCTYPE a><a/>",
    ):
        reply = lab.post(lab.envelope("HELP", {"ns": NS, "root": "calculate", "body": body}))
        assert reply.json["data"]["reason"] in ("mistyped", "malformed", "xml_refused"), reply.body
