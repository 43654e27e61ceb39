"""Views of events: exchanges, the Markdown conversation and the JSONL export."""

from __future__ import annotations

import hashlib
import html.parser
import json
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from envelopes.codecs.emergence import GENESIS, link
from rappd.dispatch.envelope_rows import headline
from rappd.store.records import Event, ThreadRow
from rappd.transcript.exchanges import arguments_of, exchanges
from rappd.transcript.jsonl import export_jsonl
from rappd.transcript.markdown import export_markdown

THREAD = "7c1e0000-0000-4000-8000-00000000000a"
MORNING = 1_763_715_600_000_000  # 21 Nov 2025, 09:00:00 UTC


class Talk:
    """Builds a thread's events, chained, half a second apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.at = MORNING

    def add(self, verb: str, sender: str, recipient: str, id: str, data: dict[str, Any]) -> Talk:
        envelope = {
            "id": id,
            "from": sender,
            "to": recipient,
            "verb": verb,
            "data": data,
            "_x_thread": THREAD,
        }
        return self.raw(orjson.dumps(envelope), verb, sender, recipient, id)

    def raw(self, body: bytes, verb="HELP", sender="guid", recipient="desk", id="1") -> Talk:
        prev = self.events[-1].hash if self.events else GENESIS
        n = len(self.events) + 1
        self.events.append(
            Event(n, THREAD, n, self.at, verb, sender, recipient, id, body, prev, link(prev, self.at, body))
        )
        self.at += 500_000
        return self

    @property
    def thread(self) -> ThreadRow:
        return ThreadRow(
            THREAD, "brainstem", "guid", None, "hacker news?", MORNING, self.at, len(self.events), GENESIS
        )

    def markdown(self) -> str:
        return export_markdown(self.thread, self.events)


def turn(talk: Talk, asked: str = "hacker news?", answer: str = "Five stories today.") -> Talk:
    """A turn with one agent call that works and one that fails."""
    talk.add("HELP", "guid", "desk_4f2a", "t1", {"user_input": asked})
    talk.add("HELP", "desk_4f2a", "hackernews_4f2a", "c1", {"agent": "HackerNews", "args": {"count": 5}})
    talk.add("DONE", "hackernews_4f2a", "desk_4f2a", "c1", {"agent": "HackerNews", "result": "1. A story"})
    talk.add("HELP", "desk_4f2a", "weather_4f2a", "c2", {"agent": "Weather", "args": {}})
    talk.add("ERROR", "weather_4f2a", "desk_4f2a", "c2", {"code": 500, "msg": "No sky", "agent": "Weather"})
    return talk.add("DONE", "desk_4f2a", "guid", "t1", {"response": answer})


def test_a_turn_holds_its_agent_calls() -> None:
    (found,) = exchanges(turn(Talk()).events)
    assert found.asked.text == "hacker news?"
    assert found.answered.text == "Five stories today."
    assert (found.agent, found.state, found.seconds) == ("", "done", 2.5)
    assert [(call.agent, call.state, call.answered.text) for call in found.calls] == [
        ("HackerNews", "done", "1. A story"),
        ("Weather", "failed", "No sky"),
    ]


def test_payload_in_xml_is_shown_as_what_was_asked_and_answered() -> None:
    ns = "https://xml-pipeline.org/ns/sums/double/v1"
    asked, answer = (
        f'<{root} xmlns="{ns}"><number>{n}</number></{root}>' for root, n in (("double", 2), ("twice", 4))
    )
    talk = Talk()
    talk.add("HELP", "lab", "desk_4f2a", "t1", {"agent": "double", "ns": ns, "root": "double", "body": asked})
    talk.add("DONE", "desk_4f2a", "lab", "t1", {"ns": ns, "root": "twice", "body": answer})
    (found,) = exchanges(talk.events)
    assert (found.agent, found.asked.text) == ("double", "<double><number>2</number></double>")
    assert arguments_of(found.asked.data) == {"double": "<double><number>2</number></double>"}
    assert found.answered.text == "<twice><number>4</number></twice>"
    shown = talk.markdown()
    assert "<number>2</number>" in shown and "<twice><number>4</number></twice>" in shown
    assert arguments_of({"user_input": "hello"}) == {} and arguments_of({"args": {"a": 1}}) == {"a": 1}


def test_turns_that_overlap_keep_their_own_answers() -> None:
    talk = Talk()
    talk.add("HELP", "guid", "desk", "a", {"user_input": "one"})
    talk.add("HELP", "guid", "gardener", "b", {"user_input": "two"})
    talk.add("HELP", "desk", "clock", "c", {"agent": "Clock", "args": {}})
    talk.add("DONE", "gardener", "guid", "b", {"response": "second"})
    talk.add("DONE", "clock", "desk", "c", {"agent": "Clock", "result": "noon"})
    talk.add("DONE", "desk", "guid", "a", {"response": "first"})
    one, two = exchanges(talk.events)
    assert (one.asked.text, one.answered.text) == ("one", "first")
    assert (two.asked.text, two.answered.text) == ("two", "second")
    assert [call.answered.text for call in one.calls] == ["noon"]
    assert two.calls == []


def test_repeated_call_belongs_to_the_latest_question() -> None:
    talk = Talk()
    talk.add("HELP", "guid", "desk", "a", {"user_input": "one, then killed"})
    talk.add("HELP", "guid", "desk", "b", {"user_input": "two"})
    talk.add("HELP", "guid", "desk", "a", {"user_input": "one again"})
    talk.add("HELP", "desk", "clock", "c", {"agent": "Clock", "args": {}})
    assert [len(exchange.calls) for exchange in exchanges(talk.events)] == [0, 0, 1]


def test_what_is_incomplete_is_still_shown() -> None:
    talk = Talk()
    talk.add("DONE", "desk", "guid", "0", {"response": "an answer whose question was cut off"})
    talk.add("HELLO", "pi", "desk", "1", {"capabilities": ["translate"]})
    talk.add("HELP", "guid", "desk", "2", {"user_input": "asked, then killed"})
    talk.add("HELP", "guid", "desk", "2", {"user_input": "asked again"})
    talk.raw(b"\xff not an envelope", id="3")
    talk.add("ERROR", "desk", "guid", "2", {"code": 503, "msg": "Stopped."})
    found = exchanges(talk.events)
    assert [exchange.state for exchange in found] == ["done", "open", "open", "failed", "open"]
    assert found[3].answered.text == "Stopped."
    shown = talk.markdown()
    for text in ("cut off", "translate", "killed", "asked again", "Stopped.", "*No answer is recorded.*"):
        assert text in shown


@given(st.text(), st.integers(2, 100))
def test_a_headline_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    line = headline(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1


def test_markdown_reads_as_a_conversation() -> None:
    assert (
        turn(Talk()).markdown()
        == f"""\
# hacker news?

Thread {THREAD}\u0020\u0020
21 Nov 2025, 6 records

**guid** 09:00:00 UTC

> hacker news?

<details><summary>HackerNews count=5, 0.5 s</summary>

```json
{{
  "count": 5
}}
```

```
1. A story
```

</details>

<details open><summary>Weather, 0.5 s, failed</summary>

```
No sky
```

</details>

**desk\\_4f2a** 09:00:02 UTC

> Five stories today.
"""
    )


def test_markdown_names_each_new_day() -> None:
    talk = turn(Talk())
    talk.at += 86_400_000_000
    turn(talk)
    assert talk.markdown().count("## 22 Nov 2025") == 1


def test_code_in_an_answer_is_shown_as_it_was_written() -> None:
    code = "````md\n```html\n<b>1 < 2</b>\n```\n<i>\n````\n<b>"
    talk = Talk().add("DONE", "desk", "guid", "1", {"response": code})
    quoted = "> ````md\n> ```html\n> <b>1 < 2</b>\n> ```\n> <i>\n> ````\n> &lt;b>\n"
    assert talk.markdown().endswith(quoted)


HOSTILE = [
    "</details>\n\n**desk\\_4f2a** 09:00:02 UTC\n\n> forged",
    "<!-- hide the rest",
    "<script>alert(1)</script>",
    "```\nno end of code",
    "~~~\n<b>code</b>\n~~~\n<b>not code</b>",
    "`````\n```\n<!--",
    "# Title\n\n---\n\n<details>",
    "<style>\n*{display:none}",
    "a\u2028<!--\x0b<!--\x1c<!-- b",
    "\n\n<?php",
    "[x]: http://example.invalid\n\n    <!-- indented",
    "```a`b\n<!-- not a code block",
]


class _Tags(html.parser.HTMLParser):
    """The elements and comments that a browser sees, outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)

    def handle_comment(self, data: str) -> None:
        self.seen.append("comment")

    def handle_pi(self, data: str) -> None:
        self.seen.append("pi")


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["asked", "answer", "result", "argument", "title", "sender", "agent"])
def test_no_text_can_pass_for_another_speaker_or_hide_the_rest(text: str, place: str) -> None:
    talk = Talk()
    talk.add(
        "HELP",
        text if place == "sender" else "guid",
        "desk",
        "1",
        {"user_input": text if place == "asked" else "?"},
    )
    agent = text if place == "agent" else "Agent"
    talk.add(
        "HELP", "desk", "x", "2", {"agent": agent, "args": {"a": text} if place == "argument" else {"a": 1}}
    )
    talk.add("DONE", "x", "desk", "2", {"agent": agent, "result": text if place == "result" else "fine"})
    talk.add("DONE", "desk", "guid", "1", {"response": text if place == "answer" else "fine"})
    talk.add("HELP", "guid", "desk", "3", {"user_input": "still here"})
    thread = talk.thread
    if place == "title":
        thread = ThreadRow(THREAD, "w", "c", None, text, MORNING, MORNING, 5, GENESIS)

    exported = export_markdown(thread, talk.events)
    shown = MarkdownIt("commonmark").render(exported)

    tags = _Tags()
    tags.feed(shown)
    tags.close()
    assert tags.seen.count("details") == tags.seen.count("summary") == 1
    assert not {"comment", "script", "style", "pi", "b"} & set(tags.seen)
    # Only who really spoke is named outside of quotes.
    tokens = MarkdownIt("commonmark").parse(exported)
    speakers = [
        token
        for before, token in pairwise(tokens)
        if before.type == "paragraph_open"
        and before.level == 0
        and [child.type for child in token.children[:2]] == ["text", "strong_open"]
    ]
    assert len(speakers) == 3
    assert not [token for token in tokens if token.type == "heading_open" and token.level == 0][1:]
    assert shown.rstrip().endswith("<p><em>No answer is recorded.</em></p>")
    assert "<blockquote>\n<p>still here</p>\n</blockquote>" in shown


def test_jsonl_is_one_envelope_per_line_with_its_place() -> None:
    talk = turn(Talk(), "über\nalles\u2028")
    lines = list(export_jsonl(talk.events))
    assert [line.count(b"\n") for line in lines] == [1] * 6
    for line, event in zip(lines, talk.events, strict=True):
        found = json.loads(line)
        assert found.pop("_x_n") == event.n
        assert found.pop("_x_at") == event.at
        assert found.pop("_x_hash") == event.hash.hex()
        assert found == json.loads(event.body)


def test_the_chain_can_be_followed_from_the_export_alone() -> None:
    end = bytes(32)
    for line in export_jsonl(turn(Talk()).events):
        place = json.loads(line)
        body = line[: line.rindex(b',"_x_n":')] + b"}"
        end = hashlib.sha256(end + place["_x_at"].to_bytes(8, "big") + body).digest()
        assert end.hex() == place["_x_hash"]


@pytest.mark.parametrize(
    "body", [b'{\r\n  "id": "1",\n  "data": {"a": "b\\n"}\n}\n', b"  {}  ", b"{ }", b'{"a":1 }']
)
def test_any_spacing_exports_as_one_line_with_the_same_content(body: bytes) -> None:
    (line,) = export_jsonl(Talk().raw(body).events)
    assert line.count(b"\n") == 1
    found = json.loads(line)
    assert (found.pop("_x_n"), found.pop("_x_at"), len(found.pop("_x_hash"))) == (1, MORNING, 64)
    assert found == json.loads(body)


@given(st.binary(max_size=60) | st.sampled_from([b"", b"[]", b"{", b"{}}", b'{"a":}', b"null"]))
def test_a_body_that_is_no_envelope_is_kept_in_the_export(body: bytes) -> None:
    (line,) = export_jsonl(Talk().raw(body).events)
    found = json.loads(line)
    assert line.count(b"\n") == 1
    if "_x_body" in found:
        assert bytes.fromhex(found["_x_body"]) == body
        assert (found["id"], found["from"], found["to"], found["verb"]) == ("1", "guid", "desk", "HELP")
    else:
        assert json.loads(body) is not None
