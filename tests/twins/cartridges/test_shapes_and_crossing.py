from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.cartridges.living_documents import Document, buddies, seeds, specs, values
from twins.cartridges import egg_spec
from twins.cartridges.json_documents import encode, parse, same
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape, checked, shape_of
from twins.errors import BadCartridgeError

DRAWN = {Shape.SEED: seeds, Shape.BUDDY: buddies, Shape.SPEC: specs}

FLUFFY: Document = {
    "schema": "rappter-egg/1.0",
    "id": "fluffy-04",
    "name": "Fluffy",
    "stage": "juvenile",
    "stats": {"intellect": 47, "patience": 22, "snark": 81},
    "skills": ["chat", "remember-favorite-sites", "browser-buddy-tasks"],
    "personality": "curious, easily distracted, deeply loyal",
    "memory": [
        {"type": "user-pref", "key": "favorite-color", "value": "purple"},
        {"type": "interaction", "ts": "2026-04-12T14:33:00Z", "summary": "..."},
    ],
    "code": {
        "lang": "lispy",
        "entry": "(define run (lambda (input) ...))",
        "agents_loaded": ["chat-agent", "memory-agent", "context-agent"],
    },
    "continuation": {"frame": 4729, "pending_inputs": [], "last_state": {"...": "..."}},
    "lineage": {
        "hatched_at": "2026-03-01T00:00:00Z",
        "hatched_in": "rappter-buddy-v1.0",
        "evolutions": [{"to_stage": "juvenile", "at": "2026-03-15T00:00:00Z"}],
    },
}
"""The cartridge document's own example."""


def test_document_example_becomes_a_valid_buddy() -> None:
    buddy = convert(FLUFFY, Shape.BUDDY)
    organism = buddy["organism"]
    assert buddy["_meta"]["type"] == "rappter.egg"
    assert buddy["_meta"]["version"] == 1
    assert (organism["name"], organism["stage"]) == ("Fluffy", "juvenile")
    assert organism["personality"] == ["curious", "easily distracted", "deeply loyal"]
    assert organism["frames_survived"] == 4729
    assert organism["hatched_at"] == "2026-03-01T00:00:00Z"
    assert organism["memories"] == [
        {"type": "hatch", "at": "2026-03-01T00:00:00Z"},
        {"type": "evolution", "to": "juvenile", "at": "2026-03-15T00:00:00Z"},
    ]
    assert [memory["text"] for memory in organism["long_memory"]] == ["favorite-color: purple", "..."]
    assert organism["xp"] == 50, "a juvenile has what it takes to be one"
    assert list(organism)[:4] == ["name", "stage", "mood", "energy"]


def test_as_egg_spec_it_is_a_daemon_with_its_state_in_the_body() -> None:
    egg = convert(FLUFFY, Shape.SPEC)
    assert list(egg)[:6] == ["_format", "_schema_version", "organism", "body", "lineage", "validation"]
    assert list(egg["body"]) == ["kind", "filename", "content", "sha256", "size_bytes"]
    assert egg["organism"]["scale"] == "daemon"
    assert egg["body"]["kind"] == "state_json"
    assert egg["body"]["content"]["name"] == "Fluffy"
    egg_spec.verify(egg)


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("to", list(Shape))
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_there_and_back_nothing_is_lost(shape: Shape, to: Shape, data: st.DataObject) -> None:
    document = data.draw(DRAWN[shape])
    given_one = copy.deepcopy(document)
    there = convert(document, to)
    assert same(document, given_one)
    assert shape_of(parse(encode(there))) is to
    assert same(convert(there, shape), document)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_through_every_shape_and_home_again(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(list(Shape)))
    document = data.draw(DRAWN[shape])
    travelling = document
    for stop in data.draw(st.lists(st.sampled_from(list(Shape)), max_size=5)):
        travelling = convert(parse(encode(travelling)), stop)
    assert same(convert(travelling, shape), document)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_life_in_another_shape_keeps_all_fields(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([Shape.SEED, Shape.SPEC]))
    document = data.draw(DRAWN[shape])
    away = convert(document, Shape.BUDDY)
    away["organism"]["xp"] = 123456
    away["organism"]["long_memory"].append({"text": "we met", "type": "met", "saved_at": "now"})
    home = convert(away, shape)
    again = convert(home, Shape.BUDDY)
    assert again["organism"]["xp"] == 123456
    assert any(
        one.get("text") == "we met" for one in again["organism"]["long_memory"] if isinstance(one, dict)
    )
    if shape is Shape.SEED:
        assert home["stats"]["xp"] == 123456
        assert [
            one for one in document.get("memory", []) if not any(same(one, kept) for kept in home["memory"])
        ] == []
        for key in document.keys() - {"stats", "memory"}:
            assert same(home[key], document[key]), key
    else:
        for key in document.keys() - {"body"}:
            assert same(home[key], document[key]), key
        egg_spec.verify(home)


def test_memory_keeps_shape_specific_fields() -> None:
    buddy = convert(FLUFFY, Shape.BUDDY)
    buddy["organism"]["long_memory"].insert(0, {"text": "older", "type": "memory", "saved_at": None})
    del buddy["organism"]["long_memory"][2]
    memory = convert(buddy, Shape.SEED)["memory"]
    assert memory == [{"type": "memory", "ts": None, "summary": "older"}, FLUFFY["memory"][0]]


def test_living_xml_egg_becomes_hybrid_without_loss() -> None:
    egg: Document = {
        "_format": "egg",
        "_schema_version": 1,
        "organism": {"slug": "hello", "species": "page", "instance": "hello-1", "scale": "daemon"},
        "body": {"kind": "cartridge_xml", "filename": "hello.xml", "content": "<organism/>\n"},
    }
    egg_spec.seal(egg)
    buddy = convert(egg, Shape.BUDDY)
    assert same(convert(buddy, Shape.SPEC), egg)
    buddy["organism"]["xp"] = 7
    lived = convert(buddy, Shape.SPEC)
    assert lived["body"]["kind"] == "hybrid"
    assert lived["body"]["content"]["cartridge_xml"] == "<organism/>\n"
    assert lived["body"]["content"]["state_json"]["xp"] == 7
    assert lived["organism"] == egg["organism"]


def test_birth_date_survives_becoming_a_hybrid() -> None:
    egg: Document = {
        "_format": "egg",
        "_schema_version": 1,
        "organism": {"slug": "hello", "species": "page", "instance": "hello-1", "scale": "daemon"},
        "lineage": {"created_at": "soon"},
        "body": {"kind": "state_json", "content": {"created_at": "soon", "cartridge_xml": ""}},
    }
    egg_spec.seal(egg)
    buddy = convert(egg, Shape.BUDDY)
    buddy["organism"]["xp"] = 7
    lived = convert(buddy, Shape.SPEC)
    assert lived["body"]["kind"] == "hybrid"
    assert lived["lineage"]["created_at"] == "soon"


def test_shapes_are_told_apart_by_what_is_in_them() -> None:
    assert shape_of(FLUFFY) is Shape.SEED
    assert shape_of({"_meta": {"type": "rappter.egg"}, "organism": {}}) is Shape.BUDDY
    assert shape_of({"_format": "egg", "_schema_version": 1}) is Shape.SPEC
    assert shape_of({"_meta": {"type": "lispy-cartridge"}}) is None
    assert shape_of({"_meta": "rappter.egg"}) is None
    assert shape_of({"_format": "egg", "organism": {"kind": "neighborhood"}}) is None
    assert shape_of({"_format": "egg", "_content_sha256": "00"}) is None
    assert shape_of({}) is None
    with pytest.raises(BadCartridgeError, match="at once"):
        shape_of({**FLUFFY, "_format": "egg"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stage": "teenager"}, "stage is not one of egg, hatchling"),
        ({"stage": ["egg"]}, "stage is not one of"),
        ({"name": ""}, "name is not a name"),
        ({"memory": {}}, "memory is not a list"),
        ({"continuation": {"frame": -1}}, "continuation.frame is not a whole number"),
        ({"continuation": {"frame": True}}, "continuation.frame is not a whole number"),
        ({"lineage": []}, "lineage is not an object"),
        ({"_rappd": []}, "_rappd"),
        ({"_rappd": {"rappter.egg": {"edits": [], "without": [], "more": 1}}}, "_rappd"),
        ({"_rappd": {"rappter.egg": {"edits": [1], "without": []}}}, "damaged"),
        ({"_rappd": {"rappter.egg": {"edits": [], "without": [[1]]}}}, "damaged"),
        ({"_rappd": {"rappter.egg": {"edits": [], "without": [[["stats"]]]}}}, "damaged"),
        ({"_rappd": {"rappter.egg": {"edits": [], "without": [[{}]]}}}, "damaged"),
        ({"memory": [{"_rappd": "x"}]}, "damaged"),
    ],
)
def test_a_document_that_is_not_what_it_says_is_refused(change: Document, why: str) -> None:
    with pytest.raises(BadCartridgeError, match=why.replace(".", r"\.")):
        convert({**FLUFFY, **change}, Shape.BUDDY)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_document_edited_anywhere_is_converted_or_refused(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(list(Shape)))
    document = convert(data.draw(DRAWN[shape]), data.draw(st.sampled_from(list(Shape))))
    for _ in range(data.draw(st.integers(1, 3))):
        holder: Any = document
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(holder[key], dict | list) and data.draw(st.booleans()):
                holder = holder[key]
                continue
            holder[key] = data.draw(values)
            break
    try:
        converted = convert(document, data.draw(st.sampled_from(list(Shape))))
    except BadCartridgeError:
        return
    checked(parse(encode(converted)))


def test_carried_edits_keep_a_loadable_document() -> None:
    edit = {"at": ["organism", "stage"], "was": "juvenile", "is": "god"}
    carried = {"rappter.egg": {"edits": [edit], "without": []}}
    with pytest.raises(BadCartridgeError, match="stage"):
        convert({**FLUFFY, "_rappd": carried}, Shape.BUDDY)


# Egg Spec v1


@pytest.mark.parametrize(
    ("kind", "content", "sha256", "size"),
    [
        (
            "state_json",
            {"tick": 0, "name": "Sparky", "mood": "curious"},
            "8212945245a0aee1e49eee9ca275715810e266c04ce7bbae1ab3feb875ee76bf",
            43,
        ),
        (
            "cartridge_xml",
            "<organism>\n  <name>Hello</name>\n</organism>\n",
            "945246918eb874fbbfc0559ce4dc78a0bfc0c8773e652ac565f7c5c39cef162c",
            44,
        ),
    ],
)
def test_the_published_vectors(kind: str, content: Any, sha256: str, size: int) -> None:
    egg: Document = {
        "_format": "egg",
        "_schema_version": 1,
        "organism": {"instance": "sparky", "species": "spark"},
        "body": {"kind": kind, "content": content},
    }
    egg_spec.seal(egg)
    assert egg["body"]["sha256"] == sha256
    assert egg["body"]["size_bytes"] == size
    assert checked(egg) is Shape.SPEC
    egg_spec.verify(egg)


def test_a_body_that_does_not_match_is_refused() -> None:
    egg = convert(FLUFFY, Shape.SPEC)
    egg["body"]["content"]["xp"] += 1
    with pytest.raises(BadCartridgeError, match="changed by hand"):
        egg_spec.verify(egg)
    egg = convert(FLUFFY, Shape.SPEC)
    egg["body"]["size_bytes"] += 1
    with pytest.raises(BadCartridgeError, match="bytes"):
        egg_spec.verify(egg)
