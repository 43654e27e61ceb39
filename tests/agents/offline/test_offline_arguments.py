"""Arguments read out of a sentence for each kind of parameter, and text that is left alone."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from agents.providers.offline.route import Decision, route

TODAY = date(2026, 1, 15)  # a Thursday


def ask(said: str, required: str = "", /, **properties: Any) -> Decision:
    """Routes ``use Thing said`` to an agent called Thing with these parameters."""
    parameters = {"type": "object", "properties": properties, "required": required.split()}
    function = {"name": "Thing", "description": "Does a thing.", "parameters": parameters}
    return route(f"use Thing {said}", [{"type": "function", "function": function}], today=TODAY)


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "name", "text", "value"),
    [
        ({"type": "integer"}, "count", "7", 7),
        ({"type": "integer"}, "count", "seven", 7),
        ({"type": "integer"}, "count", "twenty five", 25),
        ({"type": "integer"}, "count", "1,200 of them", 1200),
        ({"type": "number"}, "amount", "12.50", 12.5),
        ({"type": "number"}, "amount", "for $40", 40),
        ({"type": "number"}, "minutes", "for 2 hours", 120),
        ({"type": "number"}, "minutes", "for 90 seconds", 1.5),
        ({"type": "integer"}, "seconds", "for half an hour", 1800),
        ({"type": "boolean"}, "verbose", "verbose", True),
        ({"type": "boolean"}, "include_images", "without images", False),
        ({"type": "string", "enum": ["low", "high"]}, "priority", "with high priority", "high"),
        ({"type": "string", "enum": ["en-US", "de-DE"]}, "locale", "in de-DE", "de-DE"),
        ({"type": "string", "format": "email"}, "to", "write ann@example.org now", "ann@example.org"),
        (
            {"type": "string", "format": "uri"},
            "page",
            "read https://example.org/a?b=1.",
            "https://example.org/a?b=1",
        ),
        (STRING, "url", "read example.org", "https://example.org"),
        (
            STRING,
            "user_guid",
            "for 6F9619FF-8B86-4D01-B42D-00CF4FC964FF",
            "6F9619FF-8B86-4D01-B42D-00CF4FC964FF",
        ),
        ({"type": "string", "format": "date"}, "day", "on 2026-03-12", "2026-03-12"),
        ({"type": "string", "format": "date"}, "day", "tomorrow", "2026-01-16"),
        ({"type": "string", "format": "date"}, "day", "next monday", "2026-01-19"),
        ({"type": "string", "format": "date"}, "day", "on the 3rd of March", "2026-03-03"),
        ({"type": "string", "format": "date"}, "day", "on 5.2.2026", "2026-02-05"),
        ({"type": "string", "format": "time"}, "at", "at 5pm", "17:00"),
        ({"type": "string", "format": "time"}, "at", "at 17:30", "17:30"),
        ({"type": "string", "format": "date-time"}, "when", "tomorrow at 9:15", "2026-01-16T09:15:00"),
        (STRING, "file_path", "for src/main.py please", "src/main.py"),
        (STRING, "pattern", "for *.pdf", "*.pdf"),
        (STRING, "host", "on 10.0.0.7", "10.0.0.7"),
        (STRING, "timezone", "in Asia/Tokyo", "Asia/Tokyo"),
        (STRING, "target_language", "to German", "German"),
        ({"type": "string", "description": "ISO 639-1 code"}, "target_language", "to German", "de"),
        (STRING, "currency", "in euros", "EUR"),
        (STRING, "order_number", "for order 4711-A", "4711-A"),
        (STRING, "expression", "12 times 3", "12 * 3"),
        (STRING, "expression", "15% of 80", "15 / 100 * 80"),
        (STRING, "city", "in New York tomorrow", "New York"),
        (STRING, "title", 'titled "Big plan"', "Big plan"),
        (STRING, "topic", "about black holes", "black holes"),
        (STRING, "text", "that the daemon is warm", "the daemon is warm"),
        (STRING, "note", "“keep this exactly”", "keep this exactly"),
        (
            {"type": "array", "items": STRING},
            "ingredients",
            "with eggs, some flour and milk",
            ["eggs", "flour", "milk"],
        ),
        ({"type": "array", "items": {"type": "number"}}, "values", "of 3, 4.5 and 6", [3, 4.5, 6]),
        ({"type": "array", "items": STRING}, "attendees", "with a@b.co and c@d.co", ["a@b.co", "c@d.co"]),
        ({"type": "object"}, "payload", '{"a": [1, 2]}', {"a": [1, 2]}),
        ({"type": ["string", "null"]}, "city", "in Oslo", "Oslo"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "count", "4", 4),
        (STRING, "city", "city=Rome", "Rome"),
        (STRING, "city", 'city="New Delhi"', "New Delhi"),
        ({"type": "integer"}, "max_results", "max results: 9", 9),
        ({"type": "boolean"}, "deep", "deep=no", False),
        ({"type": "integer"}, "count", '{"count": 3}', 3),
        ({"type": "string", "default": "en"}, "lang", "", "en"),
        ({"const": "v2"}, "version", "", "v2"),
    ],
)
def test_a_required_argument_is_found(schema: dict[str, Any], name: str, text: str, value: Any) -> None:
    decision = ask(text, name, **{name: schema})
    assert decision.arguments == {name: value}
    assert decision.ready


@pytest.mark.parametrize(
    ("schema", "name", "text"),
    [
        (STRING, "city", ""),
        (STRING, "city", "please"),
        (STRING, "text", "this"),
        (STRING, "query", "it for me"),
        ({"type": "integer"}, "count", "some"),
        ({"type": "integer"}, "count", "2.5"),
        ({"type": "integer", "maximum": 10}, "count", "50"),
        ({"type": "string", "format": "email"}, "to", "to bob"),
        ({"type": "string", "format": "uri"}, "url", "the page"),
        ({"type": "string", "format": "date"}, "day", "soon"),
        ({"type": "string", "enum": ["red", "blue"]}, "color", "in green"),
        ({"type": "boolean"}, "deep", "now"),
        ({"type": "object"}, "payload", "{broken"),
        ({"type": "array", "items": {"type": "number"}}, "values", "of some"),
        (STRING, "tracking_number", "my package"),
    ],
)
def test_what_is_not_there_is_missing_and_never_made_up(schema: dict[str, Any], name: str, text: str) -> None:
    decision = ask(text, name, **{name: schema})
    assert decision.missing == [name]
    assert not decision.ready


@pytest.mark.parametrize(
    ("schema", "name", "text"),
    [
        ({"type": "array", "items": {"type": "integer", "maximum": 10}}, "values", "20%"),
        ({"type": "array", "items": {"type": "number", "exclusiveMinimum": 3}}, "values", "of 1, 2 and 3"),
        ({"type": "array", "items": {"type": "number", "multipleOf": 5}}, "values", "of 3 and 4"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, "values", "of 4"),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, "values", "of 4, 5 and 6"),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "values", "of 4, 5 and 4"),
        ({"type": "array", "items": {"type": "string", "maxLength": 3}}, "ingredients", "with eggs, milk"),
        ({"type": "array", "items": {"type": "integer", "maximum": 10}}, "values", '{"values": [20]}'),
        ({"type": "array", "items": {"type": "array", "items": {"maximum": 10}}}, "v", '{"v": [[20]]}'),
        ({"type": "integer", "exclusiveMaximum": 10}, "count", "10"),
        ({"type": "integer", "multipleOf": 5}, "count", "7"),
        ({"type": "integer", "default": 20, "maximum": 10}, "count", ""),
        ({"type": "number", "exclusiveMinimum": 10**15}, "count", "1000000000000000"),
        ({"type": "string", "maxLength": 3}, "city", "in New York"),
        ({"type": "string", "minLength": 30}, "title", 'titled "Big plan"'),
        ({"type": "string", "pattern": "^[A-Z]{3}$"}, "city", "city=Rome"),
        ({"type": "object", "required": ["b"]}, "payload", '{"a": 1}'),
        ({"type": "object", "properties": {"a": {"maximum": 10}}}, "payload", '{"a": 20}'),
        ({"type": "object", "additionalProperties": {"maximum": 10}}, "payload", '{"a": 20}'),
    ],
)
def test_what_the_schema_refuses_is_never_proposed(schema: dict[str, Any], name: str, text: str) -> None:
    decision = ask(text, name, **{name: schema})
    assert decision.arguments == {}
    assert decision.missing == [name]
    assert ask(text, **{name: schema}).arguments == {}, "nor when it may be left out"


@pytest.mark.parametrize(
    ("schema", "name", "text", "value"),
    [
        ({"type": "array", "items": {"type": "integer", "maximum": 10}}, "values", "of 20, 5 and 7", [5, 7]),
        ({"type": "array", "items": {"type": "number", "multipleOf": 0.1}}, "values", "of 0.3", [0.3]),
        ({"type": "integer", "minimum": 20, "multipleOf": 20}, "percent", "20%", 20),
        ({"type": "string", "pattern": "^R"}, "city", "city=Rome", "Rome"),
        ({"type": "string", "pattern": "(broken"}, "city", "city=Rome", "Rome"),
        ({"type": "string", "pattern": "^(R|o|m|e+)+!$"}, "city", "city=Rome", "Rome"),  # never asked
        ({"type": "object", "additionalProperties": {"maximum": 10}}, "payload", '{"a": 7}', {"a": 7}),
    ],
)
def test_what_the_schema_allows_is(schema: dict[str, Any], name: str, text: str, value: Any) -> None:
    assert ask(text, name, **{name: schema}).arguments == {name: value}


def test_an_agent_called_twin_is_given_what_it_takes() -> None:
    parameters = {
        "type": "object",
        "properties": {"action": {"enum": ["spin", "halt"]}},
        "required": ["action"],
    }
    function = {"name": "Twin", "description": "Spins.", "parameters": parameters}
    decision = route("fork the twin Rose", [{"type": "function", "function": function}], today=TODAY)
    assert decision.arguments == {}


def test_a_required_name_without_a_schema_can_be_written_out() -> None:
    assert ask("", "zone").missing == ["zone"]
    assert ask("zone=north", "zone").arguments == {"zone": "north"}


def test_optional_arguments_stay_out_unless_said() -> None:
    schema = {
        "count": {"type": "integer", "default": 10},
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
    }
    assert ask("please", **schema).arguments == {}
    assert ask("count 3", **schema).arguments == {"count": 3}


def test_two_ends_of_a_pair_keep_their_sides() -> None:
    units = {"value": {"type": "number"}, "from_unit": STRING, "to_unit": STRING}
    decision = ask("10 miles to km", "value from_unit to_unit", **units)
    assert decision.arguments == {"value": 10, "from_unit": "miles", "to_unit": "km"}
    money = {"amount": {"type": "number"}, "from_currency": STRING, "to_currency": STRING}
    decision = ask("how much is 20 euros in dollars", "amount from_currency to_currency", **money)
    assert decision.arguments == {"amount": 20, "from_currency": "EUR", "to_currency": "USD"}
    places = {"origin": STRING, "destination": STRING}
    decision = ask("from Berlin to Rome", "origin destination", **places)
    assert decision.arguments == {"origin": "Berlin", "destination": "Rome"}


def test_a_number_inside_free_text_is_no_rating() -> None:
    schema = {"content": STRING, "importance": {"type": "integer", "minimum": 1, "maximum": 5}}
    decision = ask("that my car has 4 doors", "content", **schema)
    assert decision.arguments == {"content": "my car has 4 doors"}


def test_free_text_keeps_its_inner_words_and_its_lines() -> None:
    decision = ask("about nothing: first line, then\nthe second: done", "text", text=STRING)
    assert decision.arguments == {"text": "first line, then\nthe second: done"}
