"""The decision: which agent a message asks for, and with which arguments."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from agents.providers.offline.arguments import Filled, fill
from agents.providers.offline.match import Evidence, Index, Mention, coverage, index_of
from agents.providers.offline.neighborhood_commands import neighborhood_deed
from agents.providers.offline.peer_prefix import ASKING, addressed
from agents.providers.offline.quick_questions import ANSWERING, is_quick_question
from agents.providers.offline.recall import plain_order
from agents.providers.offline.remembering import KEEPING as REMEMBERING
from agents.providers.offline.remembering import remembered_fact
from agents.providers.offline.schema_check import fits
from agents.providers.offline.shipped import SHIPPED
from agents.providers.offline.small_talk import kind_of
from agents.providers.offline.tokens import FAINT_STEMS
from agents.providers.offline.twin_commands import DOING, twin_deed
from agents.providers.offline.utterance import Utterance
from agents.providers.provider import Tool

Reason = Literal["call", "missing", "help", "talk", "negated", "unclear", "nothing"]

_THRESHOLD = 1.35
_TOLD_THRESHOLD = 4.0  # for sentences that tell rather than ask
_MARGIN = 0.04  # by which share the best agent must lead
_CANDIDATES = 6
_BASE = 0.2  # share of its evidence that an agent keeps when no other meaningful word speaks for it
_HOPELESS = 0.4  # share of the strongest evidence below which arguments cannot make up for the words
EXPLICIT = 10.0
"""The score of a decision that the sentence leaves no doubt about."""
_LONGEST_TEXT = 200_000


@dataclass(slots=True, frozen=True)
class Decision:
    """``tool`` is the agent meant, if any; call it only when ``missing`` is empty.

    ``reason`` says what to answer otherwise: ``missing`` arguments, ``help`` wanted, ``talk``, ``negated`` (asked not to),
    ``unclear`` between ``tools`` named in ``rivals``, or ``nothing`` fits.
    """

    tool: Tool | None
    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    score: float = 0.0
    reason: Reason = "nothing"
    rivals: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool's name, empty without one."""
        return str(self.tool["function"]["name"]) if self.tool is not None else ""

    @property
    def ready(self) -> bool:
        """True when the tool can be called as it is."""
        return self.tool is not None and not self.missing


def route(text: str, tools: Sequence[Tool], *, today: date | None = None) -> Decision:
    """Decide on ``text``.

    A machine that it is for by name wins, then an agent asked for by its exact name, then one whose
    description quotes the whole sentence, otherwise the best score above the threshold. ``today`` (the
    machine's date by default) is what "tomorrow" counts from. Never raises.
    """
    text = plain_order(text)
    utterance = Utterance(text[:_LONGEST_TEXT], today or date.today())
    index = index_of(tools)
    kind = kind_of(text)
    mentions = index.mentions(utterance)
    if kind == "negated":
        return Decision(None, reason="negated")
    elsewhere = _for_a_machine(text, tools, index, mentions, told=kind in ("told", "small"))
    if elsewhere is not None:
        return elsewhere
    if mentions and mentions[0].explicit:
        return _decision(
            tools, index, mentions[0].tool, fill(index.profiles[mentions[0].tool], utterance), EXPLICIT
        )
    neighborhood = _of_the_neighborhood(text, tools, index)
    if neighborhood is not None and neighborhood.score:
        return neighborhood
    deed = _of_a_twin(text, tools, index)
    if deed is not None and deed.score:
        return deed
    kept = _to_remember(text, tools, index)
    if kept is not None and kept.score:
        return kept
    quoting = None if kind == "help" else index.quoted_by(text)
    if quoting is not None:
        return _decision(tools, index, quoting, fill(index.profiles[quoting], utterance), EXPLICIT)
    if kind in ("help", "small"):
        return Decision(None, reason="help" if kind == "help" else "talk")
    quick = _quick_question(text, tools, index)
    ranked = [one for one in _ranked(index, utterance, mentions) if index.profiles[one[1]].name != ANSWERING]
    if not ranked or ranked[0][0] < (_TOLD_THRESHOLD if kind == "told" else _THRESHOLD):
        return quick or kept or deed or neighborhood or Decision(None, score=ranked[0][0] if ranked else 0.0)
    if quick is not None and index.profiles[ranked[0][1]].name in SHIPPED:
        return quick  # an agent of the owner's comes before it, another shipped one does not
    score, number, filled = ranked[0]
    close = [other for other in ranked[1:] if other[0] > score * (1 - _MARGIN)]
    if close and bool(close[0][2].missing) == bool(filled.missing):
        names = tuple(index.profiles[one[1]].name for one in (ranked[0], *close))
        return Decision(None, score=score, reason="unclear", rivals=names)
    return _decision(tools, index, number, filled, score)


def _for_a_machine(
    text: str, tools: Sequence[Tool], index: Index, mentions: list[Mention], *, told: bool
) -> Decision | None:
    """The question that goes to another machine because the sentence names it, whatever agents are here."""
    number = index.named(ASKING)
    if number is None or (mentions and mentions[0].explicit and mentions[0].tool == number):
        return None
    tool = tools[index.places[number]]
    found = addressed(text[:_LONGEST_TEXT], tool, told=told)
    if found is None or index.is_called(found.peer, text):
        return None
    if not found.text:
        return Decision(tool, {"peer": found.peer}, ["text"], EXPLICIT, "missing")
    arguments = {"peer": found.peer, "text": found.text}
    return Decision(tool, arguments, [], EXPLICIT, "call") if _takes(tool, arguments) else None


def _of_a_twin(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a sentence that names a twin.

    Where the sentence does not say that it is about a twin, it has no score: it only counts when no other
    agent is meant.
    """
    number = index.named(DOING)
    deed = twin_deed(text) if number is not None else None
    if number is None or deed is None:
        return None
    tool = tools[index.places[number]]
    if not _takes(tool, deed.arguments):
        return None
    return Decision(tool, dict(deed.arguments), [], EXPLICIT if deed.plainly else 0.0, "call")


def _to_remember(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a sentence that asks to remember something; without a score where an agent for notes may be meant."""
    number = index.named(REMEMBERING)
    found = remembered_fact(text) if number is not None else None
    if number is None or found is None:
        return None
    tool = tools[index.places[number]]
    arguments, plainly = found
    if not _takes(tool, arguments):
        return None
    return Decision(tool, arguments, [], EXPLICIT if plainly else 0.0, "call")


def _quick_question(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a question about time, days, sums or units."""
    number = index.named(ANSWERING)
    if number is None or not is_quick_question(text):
        return None
    tool = tools[index.places[number]]
    arguments = {"question": text}
    return Decision(tool, arguments, [], EXPLICIT, "call") if _takes(tool, arguments) else None


def _of_the_neighborhood(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a sentence about snapshots of all machines; without a score where it may be about something else."""
    deed = neighborhood_deed(text)
    number = index.named(deed[0]) if deed is not None else None
    if deed is None or number is None:
        return None
    tool = tools[index.places[number]]
    score = EXPLICIT if deed[2] else 0.0
    return Decision(tool, deed[1], [], score, "call") if _takes(tool, deed[1]) else None


def _takes(tool: Tool, arguments: dict[str, Any]) -> bool:
    """True when an agent takes what the one that is shipped under its name would."""
    return fits(arguments, tool["function"].get("parameters"))


def _ranked(index: Index, utterance: Utterance, mentions: list[Mention]) -> list[tuple[float, int, Filled]]:
    evidence = index.evidence(utterance)
    for mention in mentions:
        named = evidence.setdefault(mention.tool, Evidence())
        named.score += 1.2 if mention.length > 1 else 0.8 if mention.start == 0 else 0.4
    likely = heapq.nlargest(_CANDIDATES, evidence, key=lambda number: evidence[number].score)
    least = max((found.score for found in evidence.values()), default=0.0) * _HOPELESS
    ranked = []
    for number in likely:
        if evidence[number].score < least:
            break
        profile = index.profiles[number]
        filled = fill(profile, utterance)
        own = {one for one in profile.name_stems if one not in FAINT_STEMS} or set(profile.name_stems)
        named_share = len(own & evidence[number].name_stems) / len(own) if own else 0.0
        if any(mention.tool == number for mention in mentions):
            named_share = 1.0
        spans = ((place.start, place.end) for place in filled.taken)
        share = coverage(utterance, evidence[number], spans)
        score = evidence[number].score * (0.8 + 0.2 * named_share) * (_BASE + (1 - _BASE) * share)
        if filled.missing:
            score -= 0.25
        elif profile.required():
            score += 0.3
        ranked.append((score, number, filled))
    return sorted(ranked, key=lambda one: (-one[0], one[1]))


def _decision(tools: Sequence[Tool], index: Index, number: int, filled: Filled, score: float) -> Decision:
    tool = tools[index.places[number]]
    reason: Reason = "missing" if filled.missing else "call"
    return Decision(tool, filled.arguments, filled.missing, score, reason)
