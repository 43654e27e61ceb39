"""Session eggs: what is written is read, what was changed is refused, and nothing else comes out of the opener."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fixtures.refusals import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twins.eggs.readers.sessions import read_session
from twins.eggs.session_content import (
    MOST_EVENTS,
    MOST_FILE_BYTES,
    MOST_PAGE_BYTES,
    Participant,
    SessionContent,
    SessionEvent,
)
from twins.eggs.writers.sessions import session_egg
from twins.errors import TwinError
from twins.workspace.rappid import Rappid

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60)
NAME = st.text("abcXYZ äß0", min_size=1, max_size=20).map(lambda text: " ".join(text.split())).filter(bool)
DATA = st.fixed_dictionaries({"text": WORDS}, optional={"to": NAME, "error": st.just(True)})
KINDS = st.sampled_from(["session_start", "operator_input", "twin_response", "demo_step", "clear", "branch"])
EVENT = st.tuples(KINDS, NAME, DATA)


def content(events: list[SessionEvent], **more: Any) -> SessionContent:
    fields: dict[str, Any] = {
        "rappid": Rappid.mint("desk", "session").text, "title": "Two at a table", "description": "",
        "participants": [Participant("", "operator", "Owner")], "events": events,
        "transcript": [msgspec.structs.asdict(one) for one in events], "page": "<!doctype html>ä", "page_pinned": True,
        "transcript_pinned": True, "parent_rappid": "", "branch_at_event": None, "made_at": "2026-11-26T10:00:00.000Z",
        "made_by": "rappd",
    }  # fmt: skip
    return SessionContent(**{**fields, **more})


def some_events(count: int, text: str = "words") -> list[SessionEvent]:
    return [SessionEvent(n, f"p:{n}", "operator_input", "", "Owner", {"text": text}) for n in range(count)]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(EVENT, max_size=12), st.integers(0, 5), st.none() | st.integers(0, 99))
def test_egg_gives_back_the_session_that_was_written(
    tmp_path: Path, said: list[tuple[str, str, dict[str, Any]]], gap: int, at: int | None
) -> None:
    events = [
        SessionEvent(n * (gap + 1), f"p:{n}", kind, "2026-11-26T10:00:00.000Z", by, data)
        for n, (kind, by, data) in enumerate(said)
    ]
    parent = Rappid.mint("desk", "session").text if at is not None else ""
    written = content(events, parent_rappid=parent, branch_at_event=at)
    egg = tmp_path / "it.egg"
    egg.write_bytes(session_egg(written))
    assert read_session(egg) == written


def changed(document: dict[str, Any], key: str) -> None:
    if key == "page":
        document["runtime"]["payload"] += " "
    elif key == "text":
        document["transcript"][1]["data"]["text"] = "other words"
    elif key == "order":
        document["transcript"].reverse()
    elif key == "event":
        document["transcript"].pop()
    else:
        document[key] = "0" * 64


@pytest.mark.parametrize("key", ["page", "text", "order", "event", "transcript_sha256"])
def test_egg_that_was_changed_is_refused(tmp_path: Path, key: str) -> None:
    document = json.loads(session_egg(content(some_events(3))))
    changed(document, key)
    egg = tmp_path / "it.egg"
    egg.write_text(json.dumps(document))
    with pytest.raises(TwinError, match=r"damaged \((runtime|transcript)\)") as refused:
        read_session(egg)
    assert refused.value.exit_code == 5


LARGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "its page": lambda egg: egg["runtime"].update(payload="x" * (MOST_PAGE_BYTES + 1), sha256=None),
    f"more than {MOST_EVENTS} events": lambda egg: egg.update(transcript=[{}] * (MOST_EVENTS + 1)),
    "its transcript": lambda egg: egg.update(transcript=[{"text": "x" * (9 << 20)}]),
    "it has": lambda egg: egg.update(description="x" * MOST_FILE_BYTES),
}


@pytest.mark.parametrize("what", LARGE)
def test_egg_that_is_too_large_is_refused(tmp_path: Path, what: str) -> None:
    document = json.loads(session_egg(content(some_events(3))))
    del document["transcript_sha256"]
    LARGE[what](document)
    egg = tmp_path / "it.egg"
    egg.write_text(json.dumps(document))
    with pytest.raises(TwinError, match=f"too large for a session: .*{what}") as refused:
        read_session(egg)
    assert refused.value.exit_code == 5


def test_session_that_is_too_long_is_not_written() -> None:
    for events in (some_events(MOST_EVENTS + 1), some_events(9, "x" * (1 << 20))):
        with refused("session_too_large"):
            session_egg(content(events))
    session_egg(content(some_events(MOST_EVENTS)))


def test_published_shapes_are_read_as_unpinned(tmp_path: Path) -> None:
    cart = {
        "schema": "rappterbox-cart/0.1",
        "participants": [{"rappid": "rappid:x", "role": "operator", "name": "Kody"}, "nonsense", {"role": 5}],
        "runtime": {"type": "html", "payload": "<p>"},
        "transcript": [
            {
                "event": 4,
                "kind": "operator_input",
                "ts": 1_747_000_000_000,
                "by": "rappid:x",
                "data": {"text": "hi"},
            },
            "nonsense",
            {"kind": "Weird Kind", "data": "as text", "ts": "yesterday"},
        ],
    }
    egg = tmp_path / "old.egg"
    egg.write_text(json.dumps(cart))
    found = read_session(egg)
    assert (found.page, found.page_pinned, found.transcript_pinned) == ("<p>", False, False)
    assert [(one.event, one.kind, one.by, one.text) for one in found.events] == [
        (4, "operator_input", "Kody", "hi"), (5, "note", "", "as text"),
    ]  # fmt: skip
    assert [one.ts for one in found.events] == ["2025-05-11T21:46:40.000Z", ""]
    assert [one.name for one in found.participants] == ["Kody"]


def test_variant_session_of_rapp1_is_read_as_data(tmp_path: Path) -> None:
    document = {
        "schema": "rapp/1-egg", "variant": "session", "rappid": Rappid.mint("kody", "sample").text,
        "created_utc": "2026-07-16T00:00:00.000Z", "contents": [], "sig": None,
        "payload": {"runtime": "{'type': 'html'}", "transcript": [
            {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]},
    }  # fmt: skip
    from envelopes.codecs.canonical import canonical

    egg = tmp_path / "sample.egg"
    egg.write_bytes(canonical(document))
    found = read_session(egg)
    assert (found.page, found.transcript_pinned) == ("", False)
    assert [(one.kind, one.text) for one in found.events] == [
        ("operator_input", "hello"),
        ("twin_response", "hi"),
    ]


def test_egg_of_another_kind_is_refused_with_the_reason(tmp_path: Path) -> None:
    egg = tmp_path / "buddy.egg"
    egg.write_text(json.dumps({"_meta": {"format": "phylogeny.v1"}, "identity": {"id": "x", "name": "Rex"}}))
    with pytest.raises(TwinError, match="holds no session: it is of the kind phylogeny") as refused:
        read_session(egg)
    assert refused.value.exit_code == 5


def test_opener_raises_nothing_but_its_own_errors(tmp_path: Path) -> None:
    seed = random.Random(20261126)
    whole = session_egg(content(some_events(4)))
    values: list[Any] = [
        None,
        0,
        -1,
        2**60,
        1e300,
        "",
        "x",
        [],
        {},
        [[]],
        [None],
        {"a": 1},
        True,
        "\ud7ff",
        "0" * 64,
    ]
    egg = tmp_path / "it.egg"
    for turn in range(500):
        if turn % 2:
            octets = bytearray(whole)
            for _ in range(seed.randint(1, 6)):
                octets[seed.randrange(len(octets))] = seed.randrange(256)
            egg.write_bytes(octets)
        else:
            document = json.loads(whole)
            document.pop("transcript_sha256")
            places = [document, document["runtime"], document["participants"][0], document["transcript"][1]]
            for _ in range(seed.randint(1, 3)):
                place = seed.choice(places)
                place[seed.choice(list(place))] = seed.choice(values)
            egg.write_text(json.dumps(document))
        try:
            read_session(egg)
        except TwinError as problem:
            assert problem.exit_code == 5
