"""The pages of the extension verbs: every record that they show is one, and their rules' words are in use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envelopes.codecs import wire
from envelopes.envelope import ACK, CANCEL, NOTE, STREAM, Envelope

FOLDER = Path(__file__).parents[2] / "docs" / "rfcs"
VERBS = {"stream.md": STREAM, "cancel.md": CANCEL, "ack.md": ACK, "note.md": NOTE}
SECTIONS = ["Motivation", "Shape", "Rules", "Never sent", "Compatibility", "Security"]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(page: str) -> list[Envelope]:
    """Every record on a page, also those in the data of server-sent events."""
    found = []
    for language, text in _FENCE.findall((FOLDER / page).read_text()):
        if language == "json":
            found.append(wire.decode(text.encode()))
        else:
            events = [dict(line.split(": ", 1) for line in one.splitlines()) for one in text.split("\n\n")]
            assert [event["id"] for event in events] == [str(n + 1) for n in range(len(events))]
            found += [wire.decode(event["data"].encode()) for event in events]
    return found


def test_every_page_is_about_one_verb() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == VERBS.keys()


@pytest.mark.parametrize("page", VERBS)
def test_every_record_shown_is_taken_and_sent(page: str) -> None:
    records = shown(page)
    assert VERBS[page] in {record.verb for record in records}
    for record in records:
        assert wire.decode(wire.encode(record)) == record
    assert len({record.id for record in records}) == 1, "an extension verb keeps the id of its HELP"
    assert len({frozenset((record.sender, record.recipient)) for record in records}) == 1


@pytest.mark.parametrize("page", VERBS)
def test_every_page_has_sections_and_live_links(page: str) -> None:
    text = (FOLDER / page).read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert (FOLDER / target).exists(), target


def test_pieces_count_from_one_and_know_their_type() -> None:
    text = (FOLDER / "stream.md").read_text()
    types = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    pieces = [record for record in shown("stream.md") if record.verb == STREAM]
    assert pieces
    for piece in pieces:
        assert piece.data.keys() == {"n", "event"}
        assert piece.data["n"] >= 1
        assert piece.data["event"]["type"] in types
    *_, last = shown("stream.md")
    assert last.verb == "DONE"


@pytest.mark.parametrize("page", ["cancel.md", "ack.md"])
def test_every_state_shown_is_explained_and_travels_as_202(page: str) -> None:
    states = set(re.findall(r"^\| `(\w+)` \|", (FOLDER / page).read_text(), re.MULTILINE))
    said = [record for record in shown(page) if record.verb == ACK]
    assert said
    for record in said:
        assert record.data.keys() == {"state"}
        assert record.data["state"] in states
        assert wire.http_status(record) == 202


def test_the_answer_to_stopped_work_is_499() -> None:
    (error,) = [record for record in shown("cancel.md") if record.verb == "ERROR"]
    assert wire.http_status(error) == 499
    assert error.data == {"code": 499, "msg": "Stopped.", "reason": "stopped"}
