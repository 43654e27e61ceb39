"""Replies when no agent is called: abilities, missing arguments, nothing that fits; and examples of what to type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import islice

from agents.providers.offline.route import NOT_AT_ONCE, SHIPPED_FIRST, Decision, order_of, route
from agents.providers.offline.tool_index import Param, Profile, parsed, profile_of, raw
from agents.providers.offline.vocabulary import (
    BASE_VERBS,
    FAINT,
    SAMPLES,
    SAYINGS,
    STOP,
    name_words,
    stem,
    word_set,
)
from agents.providers.provider import Tool

_LONGEST_DESCRIBED = 6  # words of a description that still make a thing one would say

_TAILS = word_set("agent tool helper manager service handler")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # what terminals obey
_ANY_DAY = date(2026, 1, 15)  # a suggestion must not change overnight


def suggest(tool: Tool, tools: Sequence[Tool] | None = None) -> str:
    """A short thing to type that ``route`` takes to ``tool`` among ``tools`` (by default alone); the plain name when nothing better does.

    An ellipsis stands for what only the person can fill in.
    """
    others = tuple(raw(other) for other in tools) if tools is not None else ()
    return _suggested(raw(tool), others)


def suggestions(tool: Tool, tools: Sequence[Tool], most: int) -> list[str]:
    """Up to ``most`` different things to type for ``tool``, each as ``suggest`` finds it."""
    return list(_found(raw(tool), tuple(raw(other) for other in tools), most))


def _suggested(content: bytes, others: tuple[bytes, ...]) -> str:
    profile = profile_of(content)
    found = _found(content, others, 1)
    return found[0] if found else profile.name if profile is not None else ""


@lru_cache(maxsize=1_024)
def _found(content: bytes, others: tuple[bytes, ...], most: int) -> tuple[str, ...]:
    profile = profile_of(content)
    if profile is None:
        return ()
    tools = [parsed(other) for other in others if profile_of(other) is not None] or [parsed(content)]
    reached = (saying for saying in dict.fromkeys(_sayings(profile)) if _reaches(saying, profile, tools))
    return tuple(islice(reached, most))


def _reaches(saying: str, profile: Profile, tools: Sequence[Tool]) -> bool:
    decision = route(saying, tools, today=_ANY_DAY)
    return decision.name == profile.name and (decision.ready or saying.endswith("…"))


def _sayings(profile: Profile) -> Iterator[str]:
    named = name_words(profile.name)
    keys = [stem("".join(named)), *(stem(word) for word in named)]
    for key in dict.fromkeys(keys):
        yield from SAYINGS.get(key, ())
    plain = " ".join(word for word in named if word not in _TAILS) or " ".join(named)
    samples = [_sample(param) for param in profile.required()]
    described = imperative(profile.first_sentence)
    if described and len(described.split()) <= _LONGEST_DESCRIBED and not samples:
        yield described
    if all(samples):
        yield " ".join([plain, *samples])
        yield " ".join(
            [plain, *(f"{p.name}={_bare(s)}" for p, s in zip(profile.required(), samples, strict=True))]
        )
    yield f"{plain} …" if samples else plain
    yield f"{profile.name} …" if samples else profile.name


def imperative(sentence: str) -> str:
    """``Gets the weather.`` as what one would order: ``get the weather``; empty if it does not start so."""
    sentence = plain_line(sentence).rstrip(".!:;")
    first, _, rest = sentence.partition(" ")
    verb = first.lower()
    if (
        not re.fullmatch(r"[a-z]{2,20}", verb)
        or (verb in STOP and verb.removesuffix("s") not in BASE_VERBS)
        or not rest
    ):
        return ""
    if verb in _NOT_VERBS or first.isupper():
        return ""
    if verb.endswith("ies") and len(verb) > 4:
        verb = verb[:-3] + "y"
    elif verb.endswith(("ches", "shes", "sses", "xes", "zzes")):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    elif verb not in BASE_VERBS:
        return ""
    return f"{verb} {rest}"


def plain_line(text: str) -> str:
    """A stranger's text on one line, without control characters and marks that pages would act on."""
    text = _ESCAPE.sub("", text)
    return " ".join(
        "".join(" " if not sign.isprintable() or sign in "<>[]`" else sign for sign in text).split()
    )


def _sample(param: Param) -> str:
    if param.choices:
        return str(param.choices[0])
    if param.example and len(param.example) <= 30 and param.example.isprintable():
        return param.example
    if param.kind in ("integer", "number") and not param.least <= 3 <= param.most:
        return str(int(max(param.least, min(param.most, 3))))
    return SAMPLES.get(param.kind, "")


def _bare(sample: str) -> str:
    sample = sample.strip("“”")
    return f'"{sample}"' if " " in sample else sample


_NOT_VERBS = FAINT & frozenset("various different news status details access")


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
"""Ends most texts; the page shows a button in its place (``components/chat/turn-view.js``)."""
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
        description = summaries.get(profile.name) or profile.first_sentence
        sentence = _short(plain_line(description).rstrip(":;"), _LONGEST_SENTENCE)
        lines.append(f"- {_name(profile)}: {sentence}" if sentence else f"- {_name(profile)}")
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
    clause = imperative(plain_line(summary) or _CUT.split(plain_line(profile.first_sentence), maxsplit=1)[0])
    return clause if clause and len(clause) <= _LONGEST_CLAUSE else f"use {_name(profile)}"


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
