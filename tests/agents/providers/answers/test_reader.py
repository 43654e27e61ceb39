"""Answers of model servers as bytes: tables of what servers really send, and every cut of them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.providers.answers.reader import AnswerReader, Ending, ModelAnswer, Text, Thought


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def events(*values: Any, end: str = "\n\n", done: bool = True, field: str = "data: ") -> bytes:
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(f"{field}{line}{end}" for line in [*lines, *(["[DONE]"] if done else [])]).encode()


def piece(arguments: Any = None, name: str | None = None, **rest: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **rest}


def read(octets: bytes, size: int = 1 << 20, *, end: bool = True) -> tuple[ModelAnswer, str, str]:
    """The answer, and the text and thoughts that a person saw while it came in pieces of ``size`` bytes."""
    reader = AnswerReader("asked")
    pieces = []
    for begin in range(0, len(octets), size):
        pieces += reader.feed(octets[begin : begin + size])
    pieces += reader.finish() if end else reader.pause()
    text = "".join(one.text for one in pieces if isinstance(one, Text))
    thoughts = "".join(one.text for one in pieces if isinstance(one, Thought))
    return reader.answer(), text, thoughts


def calls(answer: ModelAnswer) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in answer.calls]


HELLO = (chunk(content="Grüße "), chunk(content="🌹"), chunk("stop"))


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    "octets",
    [
        events(*HELLO),
        events(*HELLO, end="\r\n\r\n"),
        events(*HELLO, end="\r\r"),
        events(*HELLO, end="\n"),  # the empty line between events is left out
        events(*HELLO, field="data:"),
        b"\xef\xbb\xbf" + events(*HELLO),
        b"\n\n  " + events(*HELLO),
        b": ping\n\n: ping\n\n" + events(*HELLO),
        b"event: message\nid: 1\nretry: 5\n" + events(*HELLO),
        events(*HELLO, done=False),
        events(*HELLO, done=False).rstrip(),
        events(chunk(content="Grüße "), chunk(content="🌹")),  # no reason to finish, but [DONE]
        events(*(json.dumps(one, ensure_ascii=False) for one in HELLO)),
        events(*(json.dumps(one, indent=1).replace("\n", "\ndata: ") for one in HELLO)),
        json.dumps({"choices": [{"message": {"content": "Grüße 🌹"}, "finish_reason": "stop"}]}).encode(),
        json.dumps({"choices": [{"message": {"content": "Grüße 🌹"}}]}).encode(),
        b"\xef\xbb\xbf " + json.dumps({"choices": [{"text": "Grüße 🌹", "finish_reason": "stop"}]}).encode(),
        "\n".join(json.dumps(one) for one in HELLO).encode(),
        b'{"message":{"content":"Gr\\u00fc\\u00dfe "},"done":false}\n'
        b'{"message":{"content":"\\ud83c\\udf39"},"done":true,"done_reason":"stop"}\n',
    ],
)
def test_one_answer_in_every_framing(octets: bytes, size: int) -> None:
    answer, text, _ = read(octets, size)
    assert (answer.text, text, answer.ending) == ("Grüße 🌹", "Grüße 🌹", Ending.FINISHED)


@pytest.mark.parametrize(
    ("octets", "text", "ending"),
    [
        (events(chunk(content="Half"), done=False), "Half", Ending.BROKEN),
        (b"", "", Ending.BROKEN),
        (b": ping\n\n", "", Ending.BROKEN),
        (events(chunk(content="Half"), {"error": {"message": "CUDA out of memory"}}), "Half", Ending.REFUSED),
        (events({"error": "no"}), "", Ending.REFUSED),
        (b'{"error": {"message": "no"}}', "", Ending.REFUSED),
        (b'[{"error": {"message": "no"}}]', "", Ending.REFUSED),
        (b'{"detail": "Not Found"}', "", Ending.REFUSED),
        (b'{"object": "error", "message": "no"}', "", Ending.REFUSED),
        (b'event: error\ndata: {"message": "no"}\n\n', "", Ending.REFUSED),
        (b'error: {"code": 500, "message": "no"}\n\n', "", Ending.REFUSED),
        (events(chunk(content="A")) [:0] + b'data: {"choices": []}\n\n{"error": "no"}\n', "", Ending.REFUSED),
        (events(chunk("length", content="The three")), "The three", Ending.LENGTH),
        (events(chunk("MAX_TOKENS", content="The three")), "The three", Ending.LENGTH),
        (events(chunk("content_filter")), "", Ending.FILTER),
        (events({"choices": None}, done=False), "", Ending.NO_ANSWER),
        (b'{"hello": 1}', "", Ending.NO_ANSWER),
        (b"<html>Login</html>", "", Ending.NOT_A_MODEL_SERVER),
        (b"upstream connect error", "", Ending.NOT_A_MODEL_SERVER),
        (b"\xff\xfe\x00", "", Ending.NOT_A_MODEL_SERVER),
        (events(chunk(content="one")) + events(chunk(content="two")), "one", Ending.FINISHED),
        (b'{"choices": [{"message": ' + b"[" * 100_000, "", Ending.NOT_A_MODEL_SERVER),
        (b'{"a": "' + b"x" * (5 << 20), "", Ending.TOO_LONG),
        (b"data: " + b"x" * (10 << 20), "", Ending.TOO_LONG),
    ],
)  # fmt: skip
def test_how_an_answer_ends(octets: bytes, text: str, ending: Ending) -> None:
    answer, seen, _ = read(octets, 65_536)
    assert (answer.text, seen, answer.ending) == (text, text, ending)


def test_whole_body_on_a_connection_that_stays_open_is_an_answer() -> None:
    body = json.dumps({"choices": [{"message": {"content": "All."}}]}).encode()
    reader = AnswerReader("asked")
    assert reader.feed(body[:10]) == reader.pause() == []
    assert reader.feed(body[10:]) == []
    assert reader.pause() == [Text("All.")]
    assert reader.complete


def test_reason_to_finish_is_noticed_before_the_connection_ends() -> None:
    reader = AnswerReader("asked")
    reader.feed(events(chunk(content="All."), chunk("stop"), done=False))
    assert (reader.finished, reader.complete) == (True, False)
    reader.feed(events({"choices": [], "usage": {"prompt_tokens": 12.0, "completion_tokens": None}}))
    assert reader.complete
    assert (reader.answer().input_tokens, reader.answer().output_tokens) == (12, 0)


ONE = [("Note", '{"text": "one"}')]


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ([piece('{"text": "one"}', "Note", index=0, id="a")], ONE),
        ([piece('{"text": ', "Note", index=0, id="a"), piece('"one"}', index=0)], ONE),
        ([piece('{"text": ', "Note", index=0, id="a"), piece('"one"}', None, index=0, id="")], ONE),
        ([piece('{"text": ', "Note", index="0", id="a"), piece('"one"}', index="0", id=None)], ONE),
        ([piece("", "Note"), piece('{"text": '), piece('"one"}')], ONE),
        ([piece('{"text": ', "Note", id="a"), piece('"one"}', id="a")], ONE),
        ([piece('{"text": ', "Note", id="a"), piece('"one"}', id="b")], ONE),  # a new id for every piece
        ([piece('{"text": ', "Note", index=0, id="a"), piece('"one"}', index=0, id="b")], ONE),
        (
            [piece('{"text": ', "Note", index=0), piece('"one"}', "Note", index=0)],
            ONE,
        ),  # the name in every piece
        ([piece('{"text": ', "Note"), piece('"one"}', "Note")], ONE),
        ([piece('{"text": ', "Note", index=0), piece('"one"}', index=1)], ONE),  # counts pieces
        ([piece('{"text": ', id="a", index=0), piece('"one"}', "Note", id="a", index=0)], ONE),  # name last
        ([piece("", "No", index=0, id="a"), piece('{"text": "one"}', "te", index=0, id="a")], ONE),
        ([{"name": "Note", "arguments": '{"text": "one"}'}], ONE),  # no "function" around
        ([piece({"text": "one"}, "Note", id="a")], [("Note", '{"text":"one"}')]),
        (
            [piece({"text": "one"}, "Note", id="a"), piece({"text": "one"}, id="a")],
            [("Note", '{"text":"one"}')],
        ),
        ([piece(None, "Note", id="a")], [("Note", "")]),
        ([piece("{}", "Note", id="a"), piece("{}", "Clock", id="b")], [("Note", "{}"), ("Clock", "{}")]),
        ([piece("{}", "Note", index=0, id="a"), piece("{}", "Note", index=0, id="b")], [("Note", "{}")] * 2),
        ([piece("{}", "Note", index=0), piece("{}", "Clock", index=0)], [("Note", "{}"), ("Clock", "{}")]),
        ([piece("{}", "Note", index=0), piece("{}", "Note", index=0)], [("Note", "{}")] * 2),
        ([piece("{}", "Note", index=0, id="x"), piece("{}", "Note", index=1, id="x")], [("Note", "{}")] * 2),
        ([piece("{}", "Note"), piece("{}", "Note")], [("Note", "{}")] * 2),
        ([piece("{}", None, id="a")], []),
    ],
)
def test_pieces_of_calls_are_joined(pieces: list[dict[str, Any]], wanted: list[tuple[str, str]]) -> None:
    streamed = read(events(*(chunk(tool_calls=[one]) for one in pieces), chunk("tool_calls")))[0]
    assert calls(streamed) == wanted
    assert len({call.id for call in streamed.calls}) == len(wanted)
    together = read(events(chunk(tool_calls=pieces), chunk("tool_calls")))[0]
    assert calls(together) == wanted


def test_calls_beyond_the_most_are_counted_and_old_function_calls_work() -> None:
    many = [piece("{}", "Note", index=at, id=f"c{at}") for at in range(200)]
    answer = read(events(chunk(tool_calls=many), chunk("tool_calls")))[0]
    assert (len(answer.calls), answer.calls_left_out) == (64, 136)
    old = [
        chunk(function_call={"name": "Note", "arguments": '{"text": '}),
        chunk(function_call={"arguments": '"one"}'}),
    ]
    assert calls(read(events(*old, chunk("function_call")))[0]) == ONE


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
@pytest.mark.parametrize(
    ("deltas", "text", "thoughts"),
    [
        (["<think>Hm |||VOICE|||</think>\n\nHello."], "Hello.", "Hm |||VOICE|||"),
        (["<thi", "nk>Hm</th", "ink>", "\n", "Hello."], "Hello.", "Hm"),
        (["\n<think>never closed"], "", "never closed"),
        (["<thin ice>"], "<thin ice>", ""),
        (["Use <think> here</think>."], "Use <think> here</think>.", ""),
        (["<"], "<", ""),
        ([{"reasoning_content": "Hm", "content": ""}, {"content": "42"}], "42", "Hm"),
        ([{"reasoning": "Hm", "reasoning_content": "Hm"}, {"content": "42"}], "42", "Hm"),
        ([{"reasoning_content": "only"}], "", "only"),
        (
            [
                {
                    "content": [
                        {"type": "thinking", "thinking": [{"text": "Hm"}]},
                        {"type": "text", "text": "42"},
                    ]
                }
            ],
            "42",
            "Hm",
        ),
    ],
)
def test_thoughts_are_kept_apart(deltas: list[Any], text: str, thoughts: str, size: int) -> None:
    chunks = [chunk(**(one if isinstance(one, dict) else {"content": one})) for one in deltas]
    answer, seen, thought = read(events(*chunks, chunk("stop")), size)
    assert (answer.text, seen, answer.thoughts, thought) == (text, text, thoughts, thoughts)


@pytest.mark.parametrize(
    ("deltas", "text"),
    [
        (["one ", "one two", "one two three"], "one two three"),
        (["A longer beginning", "A longer beginning goes on"], "A longer beginning goes on"),
        (["ha", "haha", "!"], "hahaha!"),
        (["ha ", "ha ", "ha "], "ha ha ha "),
        (["one ", "two", "one two"], "one twoone two"),  # short, and no last piece: may be meant
        (["It rains", " today."], "It rains today."),
        (["\ud83d", "\ude00"], "😀"),
        (["a\ud83d", "b"], "a\ufffdb"),
        (["a\udc00"], "a\ufffd"),
        (["a\ud83d"], "a\ufffd"),
    ],
)
def test_text_in_pieces(deltas: list[str], text: str) -> None:
    answer, seen, _ = read(events(*(chunk(content=one) for one in deltas), chunk("stop")))
    assert (answer.text, seen) == (text, text)
    seen.encode()


def test_last_piece_or_message_that_repeats_the_whole_text_adds_nothing() -> None:
    repeated = [chunk(content="It rains"), chunk(content=" today."), chunk("stop", content="It rains today.")]
    assert read(events(*repeated))[0].text == "It rains today."
    whole = {
        "choices": [
            {"index": 0, "delta": {}, "message": {"content": "It rains today."}, "finish_reason": "stop"}
        ]
    }
    assert read(events(*repeated[:2], whole))[0].text == "It rains today."
    assert read(events(whole))[0].text == "It rains today."


def test_several_choices_become_one_answer() -> None:
    other = {
        "choices": [
            {
                "index": 1,
                "delta": {"tool_calls": [piece("{}", "Note", id="a")]},
                "finish_reason": "tool_calls",
            }
        ]
    }
    answer = read(events(chunk(content="Looking."), other, chunk("stop")))[0]
    assert (answer.text, calls(answer)) == ("Looking.", [("Note", "{}")])


@settings(max_examples=120)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), max_size=6),
    st.lists(st.tuples(st.sampled_from(["Note", "Clock"]), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)), max_size=3),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.sampled_from(["\n\n", "\r\n\r\n", "\r\r", "\n"]),
    st.booleans(),
    st.floats(0, 1),
)  # fmt: skip
def test_no_cut_loses_shown_text_or_repeats_a_call(
    texts: list[str],
    made: list[tuple[str, dict[str, int]]],
    cuts: list[int],
    end: str,
    done: bool,
    part: float,
) -> None:
    """Mixed framing, pieces and endings: what was shown stays, and a whole answer has each call once and whole."""
    chunks = [chunk(content=f"{at}:{one};") for at, one in enumerate(texts)]
    for at, (name, arguments) in enumerate(made):
        whole = json.dumps(arguments)
        half = len(whole) // 2
        chunks.append(chunk(tool_calls=[piece(whole[:half], name, index=at, id=f"c{at}")]))
        chunks.append(chunk(tool_calls=[piece(whole[half:], index=at)]))
    octets = events(*chunks, chunk("stop"), end=end, done=done)
    octets = octets[: int(len(octets) * part)] if part < 0.9 else octets
    reader, seen, at = AnswerReader("asked"), "", 0
    for turn in range(10_000):
        size = cuts[turn % len(cuts)]
        seen += "".join(one.text for one in reader.feed(octets[at : at + size]) if isinstance(one, Text))
        at += size
        if at >= len(octets):
            break
    seen += "".join(one.text for one in reader.finish() if isinstance(one, Text))
    answer = reader.answer()
    assert answer.text == seen
    wanted = "".join(f"{at}:{one};" for at, one in enumerate(texts))
    assert wanted.startswith(seen)
    if part >= 0.9:
        assert answer.ending is Ending.FINISHED
        assert seen == wanted
        assert [(name, json.loads(arguments)) for name, arguments in calls(answer)] == made
    elif answer.ending is not Ending.FINISHED:
        assert len(answer.calls) <= len(made)


@settings(max_examples=200)
@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_octets_are_an_answer_or_none_but_never_a_crash(octets: bytes, size: int) -> None:
    for begin in (b"", b"data: ", b'{"choices": [', b'data: {"choices":[{"delta":{"content":"'):
        answer, text, _ = read(begin + octets, size)
        assert answer.text == text
        answer.text.encode()


def test_much_costs_in_proportion() -> None:
    """No part of an answer costs more than its length: 20,000 pieces, one long line, deep nesting."""

    def spent(octets: bytes) -> float:
        began = time.process_time()
        read(octets, 4096)
        return time.process_time() - began

    few, many = (events(*[chunk(content="ha ")] * count, chunk("stop")) for count in (2_000, 20_000))
    short, long = (b"data: " + b"x" * size for size in (400_000, 4_000_000))
    for small, big in ((few, many), (short, long)):
        assert spent(big) < 40 * max(
            spent(small), 0.002
        )  # ten times as much; a quadratic reader takes a hundred
