"""Listener files: payloads that are read from dataclasses, what they become, and what is refused with its place."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lxml import etree

from agents.contract import contract_tests
from agents.contract.loaded_file import LoadedFile
from agents.contract.loading import load_agent_file
from agents.runtimes.python.pools.answers import read_description
from envelopes.payloads.form import MistypedPayloadError, PayloadForm, check
from envelopes.payloads.from_schema import ARGUMENTS, form_of_agent, is_json
from envelopes.payloads.schemas import example, json_schema, tool_text, xml_text, xsd
from envelopes.payloads.xml import parts_of, value_of

Load = Callable[..., LoadedFile]

HEAD = """\
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal, Optional

from agents.listener import listener
"""
EVERYTHING = (
    HEAD
    + '''
class Color(Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Point:
    x: float
    tags: set[str] = field(default_factory=set)

@dataclass
class Line:
    points: list[Point]

@listener(category="drawing", name="draw.all")
@dataclass
class Draw:
    """Draws what it is given."""

    title: str
    """What stands above."""
    amount: Decimal
    at: datetime
    solid: bool
    how: Literal["thin", "thick"]
    count: Annotated[int, "How often."] = 1
    color: Color = Color.RED
    note: Optional[str] = None
    lines: list[Line] = field(default_factory=list)
    grid: list[list[int]] = field(default_factory=list)
    pair: tuple[int, str] = (1, "a")
    names: dict[int, str] = field(default_factory=dict)
    either: int | str | None = None
    shape: Point | Line | None = None

async def draw(payload: Draw) -> str:
    assert type(payload.amount) is Decimal and type(payload.at) is datetime
    assert payload.color is Color.RED and type(payload.pair) is tuple
    return repr(payload)
'''
)


@pytest.fixture
def load(tmp_path: Path, agent_names: None) -> Load:
    def load_(source: str, name: str = "shape_listener.py") -> LoadedFile:
        return load_agent_file(tmp_path / name, source=textwrap.dedent(source).encode(), folder=tmp_path)

    return load_


def form_of(loaded: LoadedFile) -> PayloadForm:
    assert loaded.failure is None and not loaded.quarantined, (loaded.failure, loaded.quarantined)
    return msgspec.convert(loaded.descriptions[0].listener, PayloadForm)


def test_every_type_goes_to_schema_json_and_xml_and_back(load: Load) -> None:
    loaded = load(EVERYTHING)
    form = form_of(loaded)
    assert (form.name, form.root, form.description) == ("draw.all", "draw", "Draws what it is given.")
    assert loaded.descriptions[0].tool_name == "draw_all"
    assert form.namespace(2) == "https://xml-pipeline.org/ns/drawing/draw.all/v2"
    value = check(form, example(form))
    assert "x=1.5" in loaded.instances[0].answer(value)["result"]
    written = xml_text(form, value, 1)
    schema = etree.XMLSchema(etree.fromstring(xsd(form, 1).encode()))
    schema.assertValid(etree.fromstring(written))
    (part,) = parts_of(written)
    assert (part.namespace, part.root) == (form.namespace(1), "draw")
    assert value_of(form, part.element) == value
    minimal = check(form, {key: value[key] for key in ("title", "amount", "at", "solid", "how")})
    schema.assertValid(etree.fromstring(xml_text(form, minimal, 1)))
    assert value_of(form, parts_of(xml_text(form, minimal, 1))[0].element) == minimal
    parameters = json_schema(form)
    assert parameters["required"] == ["title", "amount", "at", "solid", "how"]
    assert parameters["properties"]["title"]["description"] == "What stands above."
    told = tool_text(form)
    assert (
        told.startswith("Draws what it is given.") and "How often. (a whole number; may be left out)" in told
    )
    assert "Example: {" in told


def test_second_validator_takes_the_schema(load: Load) -> None:
    xmlschema = pytest.importorskip("xmlschema")
    form = form_of(load(EVERYTHING))
    xmlschema.XMLSchema(xsd(form, 1)).validate(xml_text(form, check(form, example(form)), 1))


@pytest.mark.parametrize(
    ("change", "field", "wanted"),
    [
        ({"amount": "much"}, "draw.amount", "a decimal number"),
        ({"count": 1.5}, "draw.count", "a whole number"),
        ({"solid": "yes"}, "draw.solid", "true or false"),
        ({"how": "wide"}, "draw.how", "one of thin, thick"),
        ({"at": "tomorrow"}, "draw.at", "a date"),
        ({"lines": [{"points": [{"x": "a"}]}]}, "draw.lines[0].points[0].x", "a number"),
        ({"title": None}, "draw.title", "text"),
        ({"more": 1}, "draw", "no field 'more'"),
        ({"pair": [1]}, "draw.pair", "a list of 2"),
        ({"shape": {"Circle": {}}}, "draw.shape", "one of Point, Line"),
    ],
)
def test_mistyped_payload_names_field_and_what_was_expected(
    load: Load, change: dict[str, Any], field: str, wanted: str
) -> None:
    form = form_of(load(EVERYTHING))
    with pytest.raises(MistypedPayloadError) as found:
        check(form, {**example(form), **change})
    assert str(found.value).startswith(field) and wanted in str(found.value)


@pytest.mark.parametrize("number", [1 << 64, 1e20, 10**400])
def test_whole_number_that_json_would_change_is_mistyped(load: Load, number: float) -> None:
    form = form_of(load(EVERYTHING))
    with pytest.raises(MistypedPayloadError, match=r"draw\.count is mistyped: .* at most 64 bits"):
        check(form, {**example(form), "count": number})
    check(form, {**example(form), "count": (1 << 64) - 1})


def test_published_spelling_is_a_listener_too(load: Load) -> None:
    source = '''
        from dataclasses import dataclass
        from xmlable import xmlify

        @xmlify
        @dataclass
        class Greet:
            """Greets somebody."""
            who: str

        @xmlify
        @dataclass
        class Greeting:
            text: str

        async def handle(payload: Greet) -> Greeting:
            return Greeting(f"hello {payload.who}")
    '''
    loaded = load(source, "greeter_listener.py")
    assert [one.name for one in loaded.descriptions] == ["greeter"]
    assert loaded.instances[0].answer({"who": "Ada"}) == {
        "result": '{"text":"hello Ada"}',
        "payloads": [{"root": "greeting", "data": {"text": "hello Ada"}}],
    }


P = '@listener()\n@dataclass\nclass P:\n    "Does."\n'
WRONG = {
    "no description": (P.replace('"Does."', "a: int") + "\ndef handle(p: P): ...\n", "no description", "class P"),
    "no handler": (P + "    a: int\n", "no function", "class P"),
    "two handlers": (
        P + "    a: int\n\ndef one(p: P): ...\ndef two(p: P): ...\n", "2 functions (one, two)", "class P",
    ),
    "a type": (P + "    a: int\n    b: bytes\n\ndef handle(p: P): ...\n", "P.b: bytes is no type", "    b: bytes"),
    "a name": (
        P.replace("()", '(name="../x")') + "    a: int\n\ndef handle(p: P): ...\n", "is no name of a", "class P",
    ),
    "too many fields": (
        P + "".join(f"    f{n}: int\n" for n in range(65)) + "\ndef handle(p: P): ...\n",
        "more than 64 fields",
        "class P",
    ),
    "itself": (P + '    a: "list[P]"\n\ndef handle(p: P): ...\n', "more than 8 levels", '    a: "list[P]"'),
    "what is no field": (
        P + "    a: int\n    scale: InitVar[int]\n\ndef handle(p: P): ...\n", "P.scale is no field", "    scale",
    ),
    "a constructor of its own": (
        P.replace("@dataclass", "@dataclass(init=False)")
        + "    a: int\n\n    def __init__(self): ...\n\ndef handle(p: P): ...\n",
        "P.a is a field that __init__ does not take",
        "    a: int",
    ),
    "three arguments": (
        P + "    a: int\n\ndef handle(p: P, state: dict, caller: str): ...\n", "wants more than the payload", "def handle",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_listener_that_cannot_be_served_is_refused_with_its_line(load: Load, case: str) -> None:
    source, reason, at = WRONG[case]
    loaded = load(HEAD + source)
    (found,) = loaded.quarantined
    assert reason in found.reason
    assert (found.class_name, loaded.instances) == ("P", [])
    if at:
        assert found.line is not None
        assert (HEAD + source).splitlines()[found.line - 1].startswith(at)


RETURNING = (
    HEAD
    + P
    + """    how: str

@dataclass
class Got:
    value: object

def looped():
    found = []
    found.append(found)
    return found

def pieces():
    yield from ("a", "b", Got(1), Got(2))

async def later():
    for one in pieces():
        yield one

def handle(p: P):
    return eval(p.how)
"""
)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("5", "this one returned int"),
        ("Got", "this one returned the class Got itself"),
        ("looped()", "lists that are nested more than 64"),
        ("Got({'a': [1j]})", "Got.value is complex"),
        ("Got(Got(b''))", "Got.value.value is bytes"),
        ("Got({1 << 64})", "Got.value is a whole number of more than 64 bits"),
        ("Got(Decimal('1e999999999'))", "Got.value is a number of more than 400 digits"),
        ("Got(looped())", "Got.value is nested more than 64"),
    ],
)
def test_answer_that_no_payload_holds_is_refused_with_its_field_and_line(
    load: Load, how: str, reason: str
) -> None:
    loaded = load(RETURNING)
    with pytest.raises(TypeError, match=re.escape(reason)) as found:
        loaded.instances[0].answer({"how": how})
    assert RETURNING.splitlines()[vars(found.value)["perform_line"] - 1] == "def handle(p: P):"


@pytest.mark.parametrize("generator", ["pieces()", "later()"])
def test_payloads_that_a_handler_yields_are_its_answer(load: Load, generator: str) -> None:
    answer = load(RETURNING).instances[0].answer({"how": generator})
    assert answer["payloads"] == [
        {"text": "ab"}, {"root": "got", "data": {"value": 1}}, {"root": "got", "data": {"value": 2}},
    ]  # fmt: skip
    assert load(RETURNING).instances[0].answer({"how": "'\\ud800'"})["result"] == "?"


@pytest.mark.parametrize("value", ["nan", "[{'a': (inf,)}]", "-inf"])
def test_state_that_json_would_change_is_refused(load: Load, value: str) -> None:
    source = (
        P + f"    a: int\n\ninf = nan = float('inf')\ndef handle(p: P, state: dict): state['x'] = {value}\n"
    )
    with pytest.raises(ValueError, match="its state holds nan or an infinity"):
        load(HEAD + source).instances[0].answer({"a": 1}, {"y": None})


def test_inherited_field_has_the_text_and_the_line_of_the_class_that_says_it(load: Load) -> None:
    base = "@dataclass\nclass Base:\n    a: int\n    'The first.'\n    b: int = 1\n    'Of the base.'\n\n"
    own = (
        P.replace("class P:", "class P(Base):") + "    b: int = 2\n    'Its own.'\n\ndef handle(p: P): ...\n"
    )
    form = form_of(load(HEAD + base + own))
    assert [(one.name, one.doc) for one in form.fields] == [("a", "The first."), ("b", "Its own.")]
    wrong = HEAD + base.replace("a: int", "a: bytes") + own
    (found,) = load(wrong).quarantined
    assert found.line is not None and wrong.splitlines()[found.line - 1] == "    a: bytes"


def test_field_that_may_be_none_is_none_where_it_was_left_out(load: Load) -> None:
    source = P.replace("@dataclass", "@dataclass(kw_only=True, frozen=True, slots=True)")
    loaded = load(
        HEAD + source + "    a: Optional[int]\n    b: str = 'x'\n\ndef handle(p: P): return repr(p)\n"
    )
    value = check(form_of(loaded), {})
    assert loaded.instances[0].answer(value)["result"] == "P(a=None, b='x')"


def test_listener_works_without_rappd(tmp_path: Path) -> None:
    own = tmp_path / "agents"
    own.mkdir()
    here = Path(__file__).parents[2] / "agents"
    for name in ("listener.py", "library/calculator_listener.py"):
        (own / Path(name).name).write_bytes((here / name).read_bytes())
    code = (
        "from agents.calculator_listener import Calculate, calculate; from decimal import Decimal as D;"
        "print(calculate(Calculate(D('0.1'), 'add', D('0.2'))).value)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0.3\n"


@pytest.mark.usefixtures("agent_names")
def test_contract_tests_try_the_example() -> None:
    library = Path(contract_tests.__file__).parents[1] / "library"
    found = contract_tests.run(library / "calculator_listener.py", library)
    assert found["passed"], found
    assert {"declares_listener", "answers_its_example"} <= {one["test"] for one in found["tests"]}


@pytest.mark.parametrize(
    ("text", "elements", "loose"),
    [
        ("<a>x</a> and <b/>", ["a", "b"], [" and "]),
        ("plain 1 < 2", [], ["plain 1 < 2"]),
        ("<a>1 & 2</a>", ["a"], []),
        ("<a>1 < 2</a>", ["a"], []),
        ("<a>x</b>y</a>", ["a"], []),
        ("<a>cut", ["a"], []),
        ("<a>\0</a>", ["a"], []),
        ("<a>]]></a>", ["a"], []),
        ("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", [], ["<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"]),
        ("<?php x ?><a/>", [], ["<?php x ?><a/>"]),
        ("<a>" * 200, [], ["<a>" * 200]),
        ("<think>hm</think>\n<a>&nbsp;</a>", ["think", "a"], []),
    ],
)
def test_elements_of_a_text_lose_no_character(text: str, elements: list[str], loose: list[str]) -> None:
    found = parts_of(text)
    assert [one.root for one in found if one.element is not None] == elements
    assert [one.text for one in found if one.element is None] == loose
    words = {"1 & 2": "1 & 2", "1 < 2": "1 < 2", "x</b>y": "xy", "\0": "\u2400", "]]>": "]]>", "cut": "cut"}
    for wrong, right in words.items():
        if elements and f"<a>{wrong}" in text:
            assert found[0].element.text == right


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../../x"},
        {"root": "a><b"},
        {"category": "a/b"},
        {"description": "a\0"},
        {"fields": [{"name": f"f{n}", "type": {"kind": "int"}} for n in range(65)]},
        {"fields": [{"name": "a b", "type": {"kind": "int"}}]},
        {"fields": [{"name": "a", "type": {"kind": "choice"}}]},
        {"fields": [{"name": "a", "type": {"kind": "list"}}]},
        {"fields": [{"name": "a", "type": functools.reduce(lambda it, _: {"kind": "list", "of": [it]},
                                                         range(9), {"kind": "int"})}]},
    ],
)  # fmt: skip
def test_forms_that_a_worker_may_claim_are_bounded(change: dict[str, Any]) -> None:
    form = {"name": "x", "category": "c", "root": "x", "description": "Does.", "fields": []}
    agent = {"name": "x", "tool_name": "x", "description": "", "parameters": {}, "class_name": "X"}
    parameters = {"type": "object", "properties": {}}

    def read(listener: dict[str, Any]) -> Any:
        told = {**agent, "parameters": parameters, "listener": listener}
        return read_description(msgspec.json.encode({"rel": "x_listener.py", "agents": [told]}))

    assert read(form)["agents"][0]["listener"].name == "x"
    with pytest.raises(ValueError):
        read({**form, **change, **({"name": "x"} if "name" not in change else {})})


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        (
            {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
            ["city", "days"],
        ),
        ({"at": {"type": "object", "properties": {"x": {"type": "number"}}}}, ["at"]),
        ({"city": {"type": "string", "pattern": "[A-Z]+"}}, [ARGUMENTS]),
        ({"any": {}}, [ARGUMENTS]),
        ({"a b": {"type": "string"}}, [ARGUMENTS]),
        ({"either": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, [ARGUMENTS]),
    ],
)
def test_schema_of_an_agent_is_a_form_or_one_element_of_json(
    schema: dict[str, Any], fields: list[str]
) -> None:
    form = form_of_agent("Weather", "Tells the weather.", {"type": "object", "properties": schema})
    assert form is not None
    assert [field.name for field in form.fields] == fields
    assert is_json(form) == (fields == [ARGUMENTS])
    value = check(form, example(form))
    etree.XMLSchema(etree.fromstring(xsd(form, 1).encode())).assertValid(
        etree.fromstring(xml_text(form, value, 1))
    )
    assert form.namespace(1) == "https://xml-pipeline.org/ns/agents/Weather/v1"
