"""Any schema and any message: no crash, no call with a hole in it."""

from __future__ import annotations

from datetime import date
from typing import Any

import jsonschema_rs
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.providers.offline.responses import suggest
from agents.providers.offline.route import route

TODAY = date(2026, 1, 15)
SAID = (
    "weather city Berlin to from in for 5 3d6 20% tomorrow 2026-02-01 at 9:30 note: remember that my list add "
    "ann@example.org https://example.org ~/a.txt *.pdf email url count name query text \"two words\" 'one' convert USD "
    'EUR miles km true no without use Dice yes = : , ? translate French into turn on off {"count":3} count=4 '
    "city=Rome high low and with LH400"
)
CALLED = (
    "city count query text url email date time items tags from_unit to_unit amount currency path enabled action level "
    "user_id symbol expression name due_date language host pattern config x Größe 名前"
)

messages = st.one_of(
    st.lists(st.sampled_from(SAID.split()), max_size=14).map(" ".join),
    st.text(max_size=80),
)
names = st.one_of(st.sampled_from(CALLED.split()), st.text(min_size=1, max_size=12))
texts = st.one_of(
    st.sampled_from(["", "The city, e.g. Berlin", "Number of items", "How many minutes"]),
    st.text(max_size=40),
)


def _schema(kind: str, extra: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, **extra}


scalars = st.one_of(
    st.builds(_schema, st.just("string"), st.fixed_dictionaries({"description": texts})),
    st.builds(
        _schema,
        st.just("string"),
        st.sampled_from([{"minLength": 9}, {"maxLength": 4}, {"pattern": "^[a-m]"}]),
    ),
    st.builds(
        _schema, st.just("string"), st.sampled_from(["email", "uri", "date"]).map(lambda f: {"format": f})
    ),
    st.builds(
        _schema,
        st.just("string"),
        st.lists(
            st.sampled_from(["add", "list", "high", "low", "on", "off", "fact"]), min_size=1, unique=True
        ).map(lambda values: {"enum": values}),
    ),
    st.builds(
        _schema,
        st.sampled_from(["integer", "number"]),
        st.sampled_from(
            [{}, {"minimum": 1, "maximum": 10}, {"exclusiveMinimum": 3}, {"default": 7}, {"multipleOf": 5}]
        ),
    ),
    st.builds(_schema, st.just("boolean"), st.just({})),
)
schemas = st.one_of(
    scalars,
    st.builds(
        _schema,
        st.just("array"),
        st.builds(
            lambda items, bounds: {"items": items, **bounds},
            scalars,
            st.sampled_from([{}, {"minItems": 2}, {"maxItems": 1}, {"uniqueItems": True}]),
        ),
    ),
    st.builds(_schema, st.just("object"), st.sampled_from([{}, {"properties": {"count": {"maximum": 2}}}])),
)


@st.composite
def tools(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(st.dictionaries(names, schemas, max_size=5))
    unknown = draw(st.lists(names, max_size=1))
    required = [name for name in properties if draw(st.booleans())] + unknown
    return {
        "type": "function",
        "function": {
            "name": draw(
                st.sampled_from(["Weather", "TodoList", "Dice", "remember_it", "translate-text", "X"])
            ),
            "description": draw(texts),
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(dict.fromkeys(required)),
            },
        },
    }


@settings(max_examples=200, deadline=None)
@given(messages, st.lists(tools(), min_size=1, max_size=4))
def test_call_has_required_arguments_of_right_types(text: str, loaded: list[dict[str, Any]]) -> None:
    for said in (text, f"use {loaded[0]['function']['name']} {text}"):
        decision = route(said, loaded, today=TODAY)
        if decision.ready:
            assert decision.tool is not None
            parameters = decision.tool["function"]["parameters"]
            given_arguments = orjson.loads(orjson.dumps(decision.arguments))
            assert set(parameters["required"]) <= given_arguments.keys()
            jsonschema_rs.Draft202012Validator(parameters, validate_formats=True).validate(given_arguments)
        elif decision.tool is not None:
            assert decision.missing
            assert decision.reason == "missing"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
odd_parameters = st.one_of(
    anything,
    st.fixed_dictionaries({"type": anything, "properties": anything, "required": anything}),
    st.fixed_dictionaries(
        {
            "properties": st.dictionaries(
                st.sampled_from(["count", "text", "a", ""]),
                st.fixed_dictionaries(
                    {},
                    optional=dict.fromkeys(
                        (
                            "type",
                            "enum",
                            "default",
                            "minimum",
                            "maximum",
                            "items",
                            "description",
                            "format",
                            "anyOf",
                        ),
                        anything,
                    ),
                ),
                max_size=3,
            ),
            "required": st.lists(st.one_of(st.sampled_from(["count", "text"]), anything), max_size=2),
        }
    ),
)
odd_tools = st.one_of(
    anything,
    st.fixed_dictionaries({"function": anything}),
    st.fixed_dictionaries(
        {
            "function": st.fixed_dictionaries(
                {
                    "name": st.one_of(st.just("Odd"), anything),
                    "description": anything,
                    "parameters": odd_parameters,
                }
            )
        }
    ),
)


@settings(max_examples=200, deadline=None)
@given(messages, st.lists(odd_tools, max_size=3))
def test_odd_tools_never_raise(text: str, loaded: list[Any]) -> None:
    for said in (text, f"use Odd {text}", "odd 5", "help"):
        decision = route(said, loaded, today=TODAY)
        orjson.dumps(decision.arguments)
        assert not (decision.ready and decision.missing)
    for tool in loaded:
        assert isinstance(suggest(tool), str)
