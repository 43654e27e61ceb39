"""docs/wire.md, messages in XML: the examples of the page are what the code reads and writes."""

from __future__ import annotations

import re

from lxml import etree

from envelopes.codecs import xml_message
from neighborhoods.auth.totp import DIGITS
from rappd.features.organism.operations import META_NS
from tests.rappd.federation.wire_page import blocks


def test_message_of_the_page_is_read() -> None:
    (text,) = blocks("message-xml")
    envelope, thread = xml_message.decode(text.encode(), recipient="core")
    assert (envelope.sender, envelope.verb, thread) == ("console_token-0a6a4ee0", "HELP", "")
    assert envelope.data == {"agent": "Clock", "args": {}}
    assert xml_message.decode(xml_message.encode(envelope), recipient="core").envelope == envelope


def test_sign_in_and_catalog_of_the_page_have_their_form() -> None:
    (first,) = blocks("authenticate-xml")
    element = xml_message.element_of(first.strip())
    assert element.tag == "authenticate"
    assert re.fullmatch(rf"[0-9]{{{DIGITS}}}", element.get("totp", ""))
    (text,) = blocks("catalog-xml")
    catalog = etree.fromstring(text)
    assert catalog.tag == f"{{{META_NS}}}catalog"
    assert catalog.get("from") == "console_token-0a6a4ee0"
    assert set(catalog[0].keys()) == {"name", "namespace", "root"}
