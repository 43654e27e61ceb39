"""The share of messages that reach the right agent, over fifty agents as strangers write them."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.providers.offline.route import route

HERE = Path(__file__).parent
TODAY = date(2026, 1, 15)
CORPUS = orjson.loads((HERE / "corpus.json").read_bytes())
TOOLS = [{"type": "function", "function": agent} for agent in CORPUS["agents"]]


def _measured(utterances: list[dict[str, Any]]) -> tuple[Counter[str], list[str]]:
    counted: Counter[str] = Counter()
    wrong: list[str] = []
    for said in utterances:
        decision = route(said["text"], TOOLS, today=TODAY)
        called = decision.name if decision.ready else None
        wanted = said["agent"]
        counted["hits" if wanted else "talk"] += 1
        if wanted:
            right = called == wanted
            counted["right agent"] += right
            expected = said.get("arguments", {})
            counted["right arguments"] += right and expected.items() <= decision.arguments.items()
        else:
            right = called is None
            counted["wrong calls"] += not right
        if not right:
            wrong.append(f"{said['text']!r}: wanted {wanted}, called {called} {decision.arguments}")
    return counted, wrong


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len({agent["name"] for agent in CORPUS["agents"]}) == 50
    hits = [said for said in CORPUS["utterances"] if said["agent"]]
    assert len(hits) >= 80
    assert len(CORPUS["utterances"]) - len(hits) >= 30
    assert len({said["text"] for said in CORPUS["utterances"]}) == len(CORPUS["utterances"])


def test_the_right_agent_runs_and_small_talk_runs_none(capsys: pytest.CaptureFixture[str]) -> None:
    counted, wrong = _measured(CORPUS["utterances"])
    with capsys.disabled():
        print(
            f"\nkeyword matching: right agent {counted['right agent']}/{counted['hits']}, with the right arguments "
            f"{counted['right arguments']}/{counted['hits']}, wrong calls on talk {counted['wrong calls']}/{counted['talk']}"
        )
    assert counted["right agent"] >= 0.85 * counted["hits"], wrong
    assert counted["right arguments"] >= 0.80 * counted["hits"], wrong
    assert counted["wrong calls"] <= 0.05 * counted["talk"], wrong


def test_no_call_lacks_a_required_argument() -> None:
    held_out = orjson.loads((HERE / "heldout.json").read_bytes())
    for said in CORPUS["utterances"] + held_out["utterances"]:
        decision = route(said["text"], TOOLS, today=TODAY)
        if decision.ready:
            assert decision.tool is not None
            required = decision.tool["function"]["parameters"].get("required", [])
            assert set(required) <= decision.arguments.keys(), said["text"]


def test_what_is_missing_is_named_for_the_agent_that_was_meant() -> None:
    for said in CORPUS["utterances"]:
        if said.get("kind") == "missing":
            decision = route(said["text"], TOOLS, today=TODAY)
            assert (decision.name, decision.reason) == (said["about"], "missing"), said["text"]
            assert decision.missing


def test_asking_what_there_is_is_understood() -> None:
    for said in CORPUS["utterances"]:
        if said.get("kind") == "help":
            assert route(said["text"], TOOLS).reason == "help", said["text"]
