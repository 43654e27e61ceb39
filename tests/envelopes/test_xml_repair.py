"""Repair of careless XML: what comes out is well-formed, says what was changed, and has all of the text."""

from __future__ import annotations

import re
import time

import pytest
from fixtures.refusals import refused
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from envelopes.codecs.xml_repair import repair
from envelopes.errors import EnvelopeError


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("<a>1 & 2</a>", "<a>1 &amp; 2</a>"),
        ("<a>AT&amp;T &#65; &lt;</a>", "<a>AT&amp;T &#65; &lt;</a>"),
        ("<a>x</b>y</a>", "<a>xy</a>"),
        ("<a>x\0y</a>", "<a>x\u2400y</a>"),
        ("<a>x]]>y</a>", "<a>x]]&gt;y</a>"),
        ("<a><b>x", "<a><b>x</b></a>"),
        ("<a><b>x</a>", "<a><b>x</b></a>"),
        ("<a>1 < 2 <b/></a>", "<a>1 &lt; 2 <b/></a>"),
        ("<a>&#0; &#xD800; &nbsp;</a>", "<a>&amp;#0; &amp;#xD800; &amp;nbsp;</a>"),
        ("<a><![CDATA[1 < 2 & 3</a>", "<a>1 &lt; 2 &amp; 3&lt;/a&gt;</a>"),
        ('<a b="1" b="2" c="x & y">t</a>', '<a b="1" c="x &amp; y">t</a>'),
        ("<a>x<!-- no --></a", "<a>x</a>"),
    ],
)
def test_each_fault_is_mended_and_told(text: str, mended: str) -> None:
    found = repair(text)
    assert found.text == mended
    assert bool(found.repairs) == (text != mended)
    etree.fromstring(found.text)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        "<a><!ELEMENT b></a>",
        "<a><?php echo 1 ?></a>",
        '<?xml-stylesheet href="http://x/"?><a/>',
        "<!doctype html><a/>",
        '<a/><?xml version="1.0"?>',
    ],
)
def test_nothing_that_would_be_expanded_is_taken(text: str) -> None:
    with refused("xml_refused"):
        repair(text)


_PIECES = st.lists(
    st.sampled_from(
        [
            "<a>",
            "</a>",
            "<b c='1'>",
            "</b>",
            "<d/>",
            "&",
            "&amp;",
            "&#65;",
            "&#0;",
            "]]>",
            "<",
            ">",
            "<![CDATA[",
            "<!--",
            "-->",
        ]
    )
    | st.text(max_size=5),
    max_size=25,
).map("".join)


@given(_PIECES)
def test_all_text_is_there_and_the_result_is_well_formed(inner: str) -> None:
    try:
        found = repair(f"<root>{inner}</root>")
    except EnvelopeError as problem:
        assert problem.code == "xml_refused" or "deep" in str(problem)  # sixty-four levels
        return
    root = etree.fromstring(f"<dummy>{found.text}</dummy>")
    text = "".join(root.itertext())
    marks = r"<[^<>]*>|<!--.*?-->|<!\[CDATA\[|\]\]>|&#?\w*;|[^\w]"
    letters = re.sub(marks, "", inner, flags=re.DOTALL)
    assert set(letters) - set("abcd1rot") <= set(text)


@given(st.text(alphabet=st.characters(exclude_characters="<&"), max_size=40))
def test_plain_text_stays_as_it_is(text: str) -> None:
    root = etree.fromstring(f"<dummy>{repair(text).text}</dummy>")
    shown, sent = "".join(root.itertext()), text.replace("\r\n", "\n")
    pairs = zip(shown, sent, strict=True)
    assert all(there == here or not here.isprintable() for there, here in pairs)


@pytest.mark.parametrize(
    "part", ["<!--", "<!-- a -->", "<!---->", "<![CDATA[", "<a b=", "<", "&", "</b>", "]]>"]
)
def test_repair_takes_no_longer_than_its_text(part: str) -> None:
    began = time.process_time()
    repair("<a>" + part * (900_000 // len(part)))
    assert time.process_time() - began < 20, "each beginning of a comment looked through the whole text"


def test_comment_without_an_end_is_text() -> None:
    found = repair("<a>1<!-- x --> <!-- 2</a>")
    assert found.text == "<a>1 &lt;!-- 2</a>" and found.repairs
