"""Decides for which models agents are chosen by keyword matching, and how sure that choice must be.

Small models seldom call an agent, and invent what an agent would have told. Where the words alone leave no doubt, the
agent is chosen without the model, which then only words the answer. This module decides; it asks nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

_SMALL = 4.0
"""Billions of parameters below which models miss calls: those of 1 to 3 B miss about every second one in the public
leaderboards of function calling, those of 7 or 8 B about one in five."""
_MOST_WRONG = 2
"""Calls out of the last turns that may go wrong before a model is helped."""
_SILENT_TURNS = 3
"""Turns without any call of its own after which a model is not asked first any more."""
REMEMBERED_TURNS = 8
_SURE_SCORE = 2.5
"""Score of keyword matching that counts as sure: of the sentences of its corpus that reach it, all reach the agent
that was meant, and "write a haiku about remembering" stays below."""

_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d{1,2})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])", re.IGNORECASE)


class Help(StrEnum):
    """Help of keyword matching for a model.

    ``SECOND``: the model is asked first, and keyword matching chooses where the model called no agent. ``FIRST``: it
    chooses without asking the model, which never calls one.
    """

    NONE = "none"
    SECOND = "second"
    FIRST = "first"


class Ground(StrEnum):
    """Reasons for which keyword matching chooses an agent, surest first."""

    NAMED = "named"
    """By its name, or a twin or machine by theirs; also a "yes, purge Rose"."""
    EXAMPLE = "example"
    """By the example that its card shows."""
    REMEMBER = "remember"
    RECALL = "recall"
    WORDS = "words"


class Outcome(StrEnum):
    """Result of a turn with tools on offer, where keyword matching was sure that an agent was meant."""

    CALLED = "called"
    WRONG = "wrong"
    """The model's call could not be performed."""
    MISSED = "missed"
    """The model called none."""


class ModelTraits(msgspec.Struct, frozen=True):
    """A model as far as its server tells.

    ``tools``: False where it cannot be offered any, or was never taught to call one. ``billions``: parameters, 0
    unknown. ``here``: its server runs on this machine. ``context``: tokens, 0 unknown.
    """

    tools: bool = True
    billions: float = 0.0
    here: bool = False
    context: int = 0


def help_for(mode: str, traits: ModelTraits, outcomes: Sequence[Outcome] = ()) -> Help:
    """The help that a model gets. ``outcomes`` are those of its last turns, the newest last."""
    if mode == "never":
        return Help.NONE
    if not traits.tools or _never_calls(outcomes):
        return Help.FIRST
    if mode == "always" or _is_small(traits):
        return Help.SECOND
    wrong = sum(one is not Outcome.CALLED for one in outcomes[-REMEMBERED_TURNS:])
    return Help.SECOND if wrong >= _MOST_WRONG else Help.NONE


def offers_tools(mode: str, traits: ModelTraits) -> bool:
    """False for a small model that was never taught to call an agent; keyword matching chooses for it.

    llama.cpp would force its whole answer into JSON, which one of 135 M never closed.
    """
    return mode == "never" or traits.tools or not _is_small(traits)


def _never_calls(outcomes: Sequence[Outcome]) -> bool:
    return len(outcomes) >= _SILENT_TURNS and all(one is Outcome.MISSED for one in outcomes)


def _is_small(traits: ModelTraits) -> bool:
    """Small, or of a size that nobody told on a machine of the person: those are mostly small."""
    return traits.billions < _SMALL if traits.billions else traits.here


def is_known_small(traits: ModelTraits) -> bool:
    """True for a small model whose size its server told."""
    return 0 < traits.billions < _SMALL


def is_sure(ground: Ground, score: float, *, structural: bool) -> bool:
    """True when an agent is chosen without the model.

    An agent that changes the machine is chosen only where the sentence names it or is its example, with the
    arguments that keyword matching would give it: what needs a yes still asks for it.
    """
    if structural:
        return ground in (Ground.NAMED, Ground.EXAMPLE)
    return ground is not Ground.WORDS or score >= _SURE_SCORE


def size_in_name(model: str) -> float:
    """Billions of parameters as a model's name tells them ("qwen2.5:0.5b", "SmolLM2-135M"); 0 where it does not."""
    sizes = [
        float(number) * (int(times) if times else 1) / (1000 if unit in "mM" else 1)
        for times, number, unit in _SIZE.findall(model)
    ]
    return max(sizes, default=0.0)


TOOLS_SHARE = 0.25
"""Share of a context that the tools on offer may have."""
SYSTEM_SHARE = 0.35
"""Share of a context that the soul, memories and the list of agents may have."""

_LONGEST_ANSWER = 16_384
_LONGEST_OF_TINY = 400
"""Tokens. A model of 135 M that was asked to say hello wrote until its context of 2048 was full."""


def most_tokens(traits: ModelTraits) -> int:
    """Tokens that one answer of a model may have, for small models may write without an end."""
    return _LONGEST_OF_TINY if 0 < traits.billions < 1 else _LONGEST_ANSWER


_LONGEST_WORDED = 1200
"""Characters of a result that a model of less than a billion parameters can word."""
_LONGEST_SHORT = 30
"""Words of a result all of whose words are looked for in an answer."""
_SHARE_KEPT = 0.6
_SHARE_GROUNDED = 0.4
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]{3,}")


def can_word(result: str, traits: ModelTraits) -> bool:
    """True when a model can be trusted to put a result into words at all."""
    return len(result) <= _LONGEST_WORDED or not traits.billions or traits.billions >= 1


def longest_wording(result: str) -> int:
    """Characters after which a wording is given up: small models may repeat themselves for ever."""
    return max(600, 2 * len(result))


def keeps(result: str, wording: str, question: str) -> bool:
    """True when a model's wording says what an agent returned: no number of its own, and the words that matter."""
    if not wording.strip():
        return False
    known = set(_NUMBER.findall(result)) | set(_NUMBER.findall(question))
    if not set(_NUMBER.findall(wording)) <= known:
        return False
    returned, worded = _stems(result), _stems(wording)
    numbers = set(_NUMBER.findall(result)) - set(_NUMBER.findall(question))
    if len(returned) > _LONGEST_SHORT:
        return len(worded & (returned | _stems(question))) >= _SHARE_GROUNDED * len(worded)
    new = returned - _stems(question)
    if not all(number in wording for number in numbers) or (new and not new & worded):
        return False
    return len(returned & worded) >= _SHARE_KEPT * len(returned)


def _stems(text: str) -> set[str]:
    return {word.casefold().removesuffix("s")[:6] for word in _WORD.findall(text)}
