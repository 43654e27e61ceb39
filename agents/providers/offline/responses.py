"""Replies when no agent is called: abilities, missing arguments, nothing that fits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.providers.offline.route import Decision
from agents.providers.offline.schema import Param, Profile, profile_of, raw
from agents.providers.offline.shipped import NOT_AT_ONCE, SHIPPED_FIRST, order_of
from agents.providers.offline.suggest import imperative, plain_line, suggest, suggestions
from agents.providers.provider import Tool

NO_MODEL = "(no model) "
"""Begins every text of keyword matching, so that nobody takes it for a model."""

NOTHING_RUN = f"{NO_MODEL}Nothing was run."
"""Answers being asked not to do something."""

ONLY_THERE = f"{NO_MODEL}That is done on the computer only: say it there."
"""Answers a phone that asks for what changes twins, agents or machines."""

_MOST_LISTED = 60
_MOST_NAMED = 6
_MOST_TRIED = 12
_LONGEST_CLAUSE = 60
_LONGEST_SENTENCE = 120
_LONGEST_NAME = 64
_OPEN_QUESTIONS = "For open questions connect a model: "
_SETTING = f"{_OPEN_QUESTIONS}rappd models connect"
"""Ends most texts; the page shows a button in its place (``components/chat/connect-model.js``)."""
_NONE: Mapping[str, str] = {}
_CUT = re.compile(
    r"[,;:(]| - | – | — |\. | and (?=(?:returns?|shows?|tells?|gives?|explains?|points?|reports?) )"
)


def listing(tools: Sequence[Tool], summaries: Mapping[str, str] = _NONE, *, has_model: bool = False) -> str:
    """The loaded agents in plain words, with something to try, and that no model is there unless one is."""
    known = _known(tools)
    if not known:
        none = "No agent is loaded yet. Drop an agent file into the agents folder."
        return none if has_model else f"{NO_MODEL}{none} {_SETTING}"
    count = "1 agent" if len(known) == 1 else f"{len(known)} agents"
    without = f"{NO_MODEL}I have no model: I match your words to {count} and run the one that fits."
    lines = [f"I can talk, and use {count}:" if has_model else without, ""]
    for _, profile in known[:_MOST_LISTED]:
        line = summaries.get(profile.name) or profile.first_sentence
        told = _short(plain_line(line).rstrip(":;"), _LONGEST_SENTENCE)
        lines.append(f"- {_name(profile)}: {told}" if told else f"- {_name(profile)}")
    if len(known) > _MOST_LISTED:
        lines.append(f"- and {len(known) - _MOST_LISTED} more")
    tries = examples(tools)
    lines += ["", *([f"Try: {'; '.join(tries)}"] if tries else []), *(() if has_model else (_SETTING,))]
    return "\n".join(lines).rstrip()


def examples(tools: Sequence[Tool]) -> list[str]:
    """Up to three things to type that work right now: of the owner's agents, then of the shipped ones."""
    known = [(tool, profile) for tool, profile in _known(tools) if profile.name not in NOT_AT_ONCE]
    found: list[str] = []
    for tool, profile in known[:_MOST_TRIED]:
        most = 2 if profile.name == SHIPPED_FIRST[0] else 1
        found += [saying for saying in suggestions(tool, tools, most) if not saying.endswith("…")]
        if len(found) >= 3:
            break
    return list(dict.fromkeys(found))[:3]


def polite(kind: str, tools: Sequence[Tool]) -> str:
    """The answer to a greeting, to thanks, to a farewell, and to being asked how one is."""
    if kind == "thanks":
        return f"{NO_MODEL}You are welcome."
    if kind == "farewell":
        return f"{NO_MODEL}Goodbye. What was said is kept."
    if not _known(tools):
        return listing(tools)
    hello = "Hello." if kind == "greeting" else "All is well here."
    tries = examples(tools)
    lines = [
        f"{NO_MODEL}{hello} I have no model: I run the agent that fits your words (ask: what can you do?)."
    ]
    return "\n".join([*lines, *([f"Try: {'; '.join(tries)}"] if tries else []), _SETTING])


def connecting(text: str, command: str) -> str:
    """``text`` with another command at its end to connect a model by; with "" none, where a model is set up."""
    if not text.endswith(_SETTING):
        return text
    before = text.removesuffix(_SETTING)
    return f"{before}{_OPEN_QUESTIONS}{command}" if command else before.rstrip()


def recalled(memories: Sequence[str]) -> str:
    """The answer from memory: one line for each that speaks of the question."""
    if len(memories) == 1:
        return f"{NO_MODEL}I remember: {memories[0]}"
    return "\n".join([f"{NO_MODEL}I remember:", *(f"- {memory}" for memory in memories)])


def nothing_fits(tools: Sequence[Tool], *, besides: str = "", summaries: Mapping[str, str] = _NONE) -> str:
    """Says that no agent fits, and lists the agents. ``besides``: what is not there either, as in 'twin is called "Paris"'."""
    known = _known(tools)
    if not known:
        return listing(tools)
    clauses = [_clause(profile, summaries.get(profile.name, "")) for _, profile in known[:_MOST_NAMED]]
    more = len(known) - len(clauses)
    rest = f"; and {more} more (ask: what can you do?)" if more > 0 else ""
    none = f"No {besides}, and none" if besides else "None"
    return f"{NO_MODEL}{none} of my agents does that. I can: {'; '.join(clauses)}{rest}.\n{_SETTING}"


def needs(decision: Decision, tools: Sequence[Tool]) -> str:
    """Names the arguments that the agent meant still needs, with an example that has them."""
    assert decision.tool is not None
    profile = profile_of(raw(decision.tool))
    assert profile is not None
    params = {param.name: param for param in profile.params}
    missing = [_needed(params[name]) for name in decision.missing if name in params]
    asked = f"{NO_MODEL}{_name(profile)} needs {_joined(missing)}."
    example = suggest(decision.tool, tools)
    complete = example != profile.name and not example.endswith("…")
    return f"{asked} Try: {example if complete else _pairs(profile, decision)}"


def unclear(decision: Decision) -> str:
    """Says that several agents fit equally well."""
    names = [_short(plain_line(name), _LONGEST_NAME) for name in decision.rivals]
    return (
        f"{NO_MODEL}{_joined(names)} could both do that. Say which: use {names[0]}"
        if len(names) == 2
        else (f"{NO_MODEL}{_joined(names)} could all do that. Say which: use {names[0]}")
    )


def _known(tools: Sequence[Tool]) -> list[tuple[Tool, Profile]]:
    """The agents, the owner's first, then shipped ones as they are of use to a newcomer."""
    found = ((tool, profile_of(raw(tool))) for tool in tools)
    known = [(tool, profile) for tool, profile in found if profile is not None]
    return sorted(known, key=lambda one: order_of(one[1].name))


def _clause(profile: Profile, summary: str) -> str:
    """A short description of the agent, or else its name."""
    told = imperative(plain_line(summary) or _CUT.split(plain_line(profile.first_sentence), maxsplit=1)[0])
    return told if told and len(told) <= _LONGEST_CLAUSE else f"use {_name(profile)}"


def _needed(param: Param) -> str:
    human = _short(plain_line(param.human()), 40)
    article = (
        "" if human.endswith("s") and not human.endswith("ss") else "an " if human[:1] in "aeio" else "a "
    )
    choices = [str(one) for one in param.choices if isinstance(one, str | int | float)]
    if 1 < len(choices) <= 6:
        return f"{article}{human} ({_joined([_short(plain_line(one), 30) for one in choices], 'or')})"
    return article + human


def _pairs(profile: Profile, decision: Decision) -> str:
    """The call written out: what was understood, and an ellipsis for what was not."""
    known = [f"{name}={value}" for name, value in decision.arguments.items() if " " not in str(value)]
    return " ".join([_name(profile), *known, *(f"{name}=…" for name in decision.missing)])


def _name(profile: Profile) -> str:
    return _short(plain_line(profile.name), _LONGEST_NAME)


def _short(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return text[:longest].rsplit(" ", 1)[0].rstrip(",;:. ") + "…"


def _joined(parts: list[str], word: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"
