"""Choices that the words of a person leave no doubt about, for a model that is helped by keyword matching."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import msgspec

from agents.contract.agent import is_structural
from agents.providers.model_help import Ground, is_sure
from agents.providers.offline.match import bare, index_of
from agents.providers.offline.memory import orders_remembering, remembered
from agents.providers.offline.next_step import asked_last, decided, lookup
from agents.providers.offline.responses import NO_MODEL, listing, needs, suggest
from agents.providers.offline.result_format import failure_of, present
from agents.providers.offline.route import EXPLICIT, Decision
from agents.providers.offline.schema import raw
from agents.providers.offline.utterance import Utterance
from agents.providers.provider import Message, Tool

_ASKS_ABILITIES = re.compile(
    r"\bwhat (?:can|could) (?:you|i)\b|\b(?:what|which|your|list|show)\b.{0,30}\b(?:agents|tools|skills)\b|^\W*help\W*$",
    re.IGNORECASE,
)
"""Of what keyword matching answers with its list, the sentences that a model has no better answer to."""


class Choice(msgspec.Struct, frozen=True):
    """An agent's tool to call with ``arguments``, and why; or, without one, a ``text`` that answers by itself."""

    ground: Ground
    name: str = ""
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)
    text: str = ""


def choose(messages: Sequence[Message], tools: Sequence[Tool], summaries: Mapping[str, str]) -> Choice | None:
    """The choice for the last sentence of ``messages``; None where there is doubt."""
    text, decision = asked_last(messages), decided(messages, tools)
    if decision.reason == "help" and _ASKS_ABILITIES.search(text):
        return Choice(Ground.NAMED, text=listing(tools, summaries, has_model=True))
    if decision.reason == "missing" and decision.score >= EXPLICIT:
        return Choice(Ground.NAMED, text=needs(decision, tools).removeprefix(NO_MODEL))
    ground = _ground(text, decision, tools)
    if decision.ready:
        if is_sure(ground, decision.score, structural=is_structural(decision.name)):
            return Choice(ground, decision.name, decision.arguments)
        return None
    looked_up = lookup(decision, text, tools)
    return None if looked_up is None else Choice(Ground.RECALL, looked_up.name, looked_up.arguments)


def _ground(text: str, decision: Decision, tools: Sequence[Tool]) -> Ground:
    if decision.tool is None:
        return Ground.WORDS
    if decision.score >= EXPLICIT:
        return Ground.NAMED
    if bare(suggest(decision.tool, tools)) == bare(text):
        return Ground.EXAMPLE
    return Ground.REMEMBER if orders_remembering(text, decision.name) else Ground.WORDS


def looks_up(messages: Sequence[Message], tools: Sequence[Tool], name: str) -> bool:
    """True when ``name`` was chosen to look a question up that no agent answers."""
    found = choose(messages, tools, {})
    return found is not None and found.ground is Ground.RECALL and found.name == name


def found_by_lookup(question: str, result: str) -> str:
    """The memories that speak of ``question``, a line each; "" where none does."""
    return "\n".join(remembered(question, result))


def is_failure(results: Sequence[tuple[str, str]]) -> bool:
    """True when one of the results reports an error, which no model should word."""
    return any(failure_of(content) for _, content in results)


def plainly(results: Sequence[tuple[str, str]]) -> str:
    """Results of agents as keyword matching words them."""
    return present(list(results)).removeprefix(NO_MODEL)


def best_tools(text: str, tools: Sequence[Tool], most: int) -> list[Tool]:
    """Those of ``tools`` that fit ``text`` best, as many as have ``most`` bytes as JSON together, in their own order."""
    index = index_of(tools)
    evidence = index.evidence(Utterance(text, date.today()))
    score = {index.places[number]: found.score for number, found in evidence.items()}
    kept, room = [], most
    for place in sorted(range(len(tools)), key=lambda place: (-score.get(place, 0.0), place)):
        room -= len(raw(tools[place]))
        if room < 0:
            break
        kept.append(place)
    return [tools[place] for place in sorted(kept)]
