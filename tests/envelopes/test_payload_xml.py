"""Values of payloads in XML: what their XSD takes, as lxml checks it, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example as example_of
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from envelopes.payloads.form import Field, MistypedPayloadError, PayloadForm, Type
from envelopes.payloads.schemas import example, plain_xml, xml_text, xsd
from envelopes.payloads.xml import value_of

POINT = Type(
    "object", fields=(Field("x", Type("float")), Field("y", Type("int"), required=False)), name="Point"
)
SHAPE = Type("object", fields=(Field("sides", Type("int")),), name="Shape")
FORM = PayloadForm(
    "all",
    "tests",
    "all",
    "Has one of each.",
    (
        Field("text", Type("str")),
        Field("whole", Type("int")),
        Field("much", Type("decimal")),
        Field("part", Type("float"), required=False),
        Field("yes", Type("bool")),
        Field("at", Type("datetime"), required=False),
        Field("kind", Type("choice", choices=("a", "b"))),
        Field("point", POINT),
        Field("many", Type("list", of=(Type("int"),))),
        Field("nested", Type("list", of=(Type("list", of=(Type("int"),)),)), required=False),
        Field("pair", Type("tuple", of=(Type("int"), Type("str")))),
        Field("names", Type("dict", of=(Type("str"), Type("int")))),
        Field("either", Type("union", of=(POINT, SHAPE))),
        Field("loose", Type("union", of=(Type("int"), Type("bool"))), required=False),
    ),
)  # fmt: skip
SCHEMA = etree.XMLSchema(etree.fromstring(xsd(FORM, 1).encode()))
NS = FORM.namespace(1)
TEXTS = (
    "", " 1 ", "1", "-1", "+1", "1.5", "1.", ".5", "1e5", "1_0", "0x1", "\u0661", "true", "True", "a", "c",
    "2026-01-31T12:00:00", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00", "2026-01-31", "20260131T120000", "x",
)  # fmt: skip
"""Without INF, NaN, the year 12026 and 24:00, which XSD takes and JSON, or Python, has not."""


def whole() -> Any:
    return etree.fromstring(xml_text(FORM, example(FORM), 1).encode())


def taken(element: Any) -> bool:
    try:
        value_of(FORM, element)
    except MistypedPayloadError:
        return False
    return True


def valid(root: Any) -> bool:
    """The verdict of the schema, which has no word for keys of a dict that stand there twice."""
    keys = [one.text for one in root.iterfind("{*}names/{*}item/{*}key")]
    return SCHEMA.validate(root) and len(set(keys)) == len(keys)


def text(element: Any, what: str) -> None:
    element.text = what


def tail(element: Any, _: str) -> None:
    element.tail = "beside"


def attribute(element: Any, _: str) -> None:
    element.set("more", "1")


def nil(element: Any, _: str) -> None:
    element.set("{http://www.w3.org/2001/XMLSchema-instance}nil", "true")


def hint(element: Any, _: str) -> None:
    element.set("{http://www.w3.org/2001/XMLSchema-instance}schemaLocation", "urn:x http://127.0.0.1:9/x.xsd")


def gone(element: Any, _: str) -> None:
    if element.getparent() is not None:
        element.getparent().remove(element)


def twice(element: Any, _: str) -> None:
    if element.getparent() is not None:
        element.addnext(copy.deepcopy(element))


def last(element: Any, _: str) -> None:
    if element.getparent() is not None:
        element.getparent().append(element)


def another(element: Any, _: str) -> None:
    element.tag = f"{{{NS}}}another"


def elsewhere(element: Any, _: str) -> None:
    element.tag = element.tag.replace(NS, "urn:elsewhere")


def nowhere(element: Any, _: str) -> None:
    element.tag = etree.QName(element).localname


def child(element: Any, _: str) -> None:
    etree.SubElement(element, f"{{{NS}}}x")


CHANGES = (text, tail, attribute, nil, hint, gone, twice, last, another, elsewhere, nowhere, child)


def test_example_is_taken() -> None:
    assert SCHEMA.validate(whole()) and value_of(FORM, whole()) == example(FORM)


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(CHANGES), st.sampled_from(TEXTS)),
        min_size=1,
        max_size=3,
    )
)
def test_value_is_taken_where_the_schema_takes_it(changes: list[tuple[int, Any, str]]) -> None:
    root = whole()
    for number, change, what in changes:
        elements = list(root.iter())
        change(elements[number % len(elements)], what)
    root.tail = None
    assert taken(root) == valid(root), etree.tostring(root)


def test_each_change_of_each_element() -> None:
    differ = []
    for number in range(len(list(whole().iter()))):
        for change in CHANGES:
            for what in TEXTS if change is text else ("",):
                root = whole()
                change(list(root.iter())[number], what)
                root.tail = None
                if taken(root) != valid(root):
                    differ.append((change.__name__, what, etree.tostring(root).decode()[-1500:]))
    assert not differ, differ[0]


@pytest.mark.parametrize(
    ("key", "found"), [("1", True), ("-1", True), ("x", False), ("1_0", False), ("", False), ("1.5", False)]
)
def test_keys_of_a_dict_have_their_type(key: str, found: bool) -> None:
    form = PayloadForm(
        "d", "tests", "d", "Has keys.", (Field("of", Type("dict", of=(Type("int"), Type("str")))),)
    )
    entry = f"<item><key>{key}</key><value>x</value></item>"
    element = etree.fromstring(f"<d><of>{entry}</of></d>")
    if found:
        assert value_of(form, element) == {"of": {key: "x"}}
        with pytest.raises(MistypedPayloadError, match="twice"):
            value_of(form, etree.fromstring(f"<d><of>{entry}{entry}</of></d>"))
        return
    with pytest.raises(MistypedPayloadError):
        value_of(form, element)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")),
        st.integers(),
    )
)
@example_of({"New York": 1, "b": 2})
@example_of({"x><y": 1})
@example_of({"Größe": 1, "名": 2, "_a.b-c": 3})
def test_object_without_a_form_is_xml_whatever_its_keys_are(value: dict[str, int]) -> None:
    root = etree.fromstring(plain_xml("found", {"value": value}, "urn:x"))
    inner = [etree.QName(one).localname for one in root[0]]
    if inner == ["item"] * len(value) and set(value) != {"item"}:
        assert {one[0].text or "": int(one[1].text or "") for one in root[0]} == value
    else:
        assert {etree.QName(one).localname: int(one.text or "") for one in root[0]} == value
