"""Keyword matching: how often it is right, on the tuned and the held-out set, and how fast it decides."""

from __future__ import annotations

import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any

import orjson

from agents.providers.offline.route import route

_SETS = Path(__file__).resolve().parent.parent / "tests" / "agents" / "offline"
_TODAY = date(2026, 1, 15)
_ROUNDS = 5


def run() -> list[tuple[str, str]]:
    """``(figure, value)`` rows. Times are this thread's processor time, so other work does not count."""
    corpus = orjson.loads((_SETS / "corpus.json").read_bytes())
    held_out = orjson.loads((_SETS / "heldout.json").read_bytes())
    tools = [{"type": "function", "function": agent} for agent in corpus["agents"]]
    rows: list[tuple[str, str]] = []
    for name, utterances in (("tuned", corpus["utterances"]), ("held-out", held_out["utterances"])):
        rows += _accuracy(name, utterances, tools)
    said = [one["text"] for one in corpus["utterances"]]
    rows += _speed("50 tools", said, tools)
    rows += _speed("1,000 tools", said, _many(tools, 1_000))
    return rows


def _accuracy(
    name: str, utterances: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> list[tuple[str, str]]:
    hits = [one for one in utterances if one["agent"]]
    talk = [one for one in utterances if not one["agent"]]
    right = arguments = wrong = 0
    for one in hits:
        decision = route(one["text"], tools, today=_TODAY)
        found = decision.ready and decision.name == one["agent"]
        right += found
        arguments += found and one.get("arguments", {}).items() <= decision.arguments.items()
    for one in talk:
        wrong += route(one["text"], tools, today=_TODAY).ready
    return [
        (f"keyword matching, {name} set: right agent", _share(right, len(hits))),
        (f"keyword matching, {name} set: right agent and arguments", _share(arguments, len(hits))),
        (f"keyword matching, {name} set: wrong call on talk", _share(wrong, len(talk))),
    ]


def _speed(name: str, said: list[str], tools: list[dict[str, Any]]) -> list[tuple[str, str]]:
    unread = _many(tools, len(tools), "Unread")
    started = time.thread_time()
    route(said[0], unread, today=_TODAY)
    first = time.thread_time() - started
    route(said[0], tools, today=_TODAY)
    taken = []
    for _ in range(_ROUNDS):
        for text in said:
            started = time.thread_time()
            route(text, tools, today=_TODAY)
            taken.append(time.thread_time() - started)
    slow = statistics.quantiles(taken, n=20)[-1]
    return [
        (f"keyword matching, {name}: decide, median", f"{statistics.median(taken) * 1e6:,.0f} µs"),
        (f"keyword matching, {name}: decide, slowest twentieth", f"{slow * 1e6:,.0f} µs"),
        (f"keyword matching, {name}: first decision, tools still unread", f"{first * 1e3:,.0f} ms"),
    ]


def _many(tools: list[dict[str, Any]], count: int, word: str = "Variant") -> list[dict[str, Any]]:
    """``tools`` again and again under other names, with some words of their own each."""
    many = []
    for number in range(count):
        function = tools[number % len(tools)]["function"]
        copy = number // len(tools)
        name = f"{function['name']}{f'_v{copy}' if copy else ''}"
        told = f"{function['description']} {word}{copy} of site{number}."
        many.append({"type": "function", "function": {**function, "name": name, "description": told}})
    return many


def _share(count: int, total: int) -> str:
    return f"{count}/{total} ({count / total:.1%})"
