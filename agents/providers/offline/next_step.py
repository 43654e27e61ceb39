"""Decides the next step of a conversation without a model: one agent call, or an honest answer; and what leaves no doubt, for a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import msgspec

from agents.contract.agent import is_structural
from agents.contract.readable_results import failure_of, present
from agents.contract.schema_check import fits
from agents.providers.model_help import Ground, is_sure
from agents.providers.offline.responses import (
    NO_MODEL,
    NOTHING_RUN,
    ONLY_THERE,
    listing,
    needs,
    nothing_fits,
    polite,
    recalled,
    suggest,
    unclear,
)
from agents.providers.offline.route import EXPLICIT, Decision, pleasantry, route
from agents.providers.offline.spoken_commands import (
    ASKING,
    DOING,
    RESTORING,
    neighborhood_deed,
    orders_remembering,
    twin_deed,
)
from agents.providers.offline.tool_index import bare, index_of, raw
from agents.providers.offline.utterance import Utterance
from agents.providers.offline.vocabulary import FAINT, STOP, stem
from agents.providers.provider import Message, Tool

RECALLING = "ContextMemory"
"""The agent that reads the memory."""
BUDDY = "Buddy"
"""The agent of a buddy, which has a memory of its own."""

_MOST_KEYWORDS = 6
_MOST_READ = 50
_MOST_RECALLED = 3
_SHORTEST = 3
_SHARE = 0.5  # of the question's words; a memory must have more
_ASKS = re.compile(
    r"(?:(?:and|so|but|please|hey|ok(?:ay)?)[ ,]+)*(?:when|where|who|whom|whose|what|which|how|why|is|are|was|were|do|does|did|has|have|can)\b"
)
# An answer seldom repeats it: "the car is red", "bins go out on Tuesday".
_KIND_ASKED = re.compile(r"\b(?:what|which)\s+(\w[\w-]*)")
_MEMORY = re.compile(r"^- (.*?) \(Theme: [^()\n]*, Recorded: [^()\n]*\)$", re.MULTILINE | re.DOTALL)

_NONE: Mapping[str, str] = {}
_LONGEST_ANSWER = 12  # words of a message that may complete the one before
_PLAIN_YES = re.compile(
    r"\s*(?:(?:yes|yep|yeah|sure|ok(?:ay)?|please|do (?:it|that)|go ahead|confirm(?:ed)?|ja)[\s,.!]*)+",
    re.IGNORECASE,
)
_ASKS_FOR_YES = re.compile(r"Nothing (?:was done|changed) yet\b|so nothing was yet\b")
_LONGEST_ASKED = 100  # characters of a name before "needs"


def decide(
    messages: Sequence[Message],
    tools: Sequence[Tool],
    number: int,
    summaries: Mapping[str, str] = _NONE,
    *,
    at_computer: Sequence[Tool] = (),
) -> Decision | str:
    """The step of round ``number``: call an agent (the decision is ready), or say the text.

    ``summaries`` are lines for people by tool name. ``at_computer``: tools that the person may use there alone.
    """
    found = _results(messages)
    if found:
        if looked := _looked_up(messages, tools, found, summaries):
            return looked
        what, nobody = _nobody_shown(messages, found)
        if nobody:
            return nothing_fits(tools, besides=f'{what} is called "{nobody}"', summaries=summaries)
        return NO_MODEL + present(found).removeprefix(NO_MODEL)  # another brainstem may have said it already
    if number > 0:
        return nothing_fits(tools, summaries=summaries)
    decision = decided(messages, tools)
    if at_computer and (not decision.ready or is_structural(decision.name)):
        there = decided(messages, at_computer)
        if there.ready and (there.name, there.arguments) != (decision.name, decision.arguments):
            return ONLY_THERE
    if not decision.ready and (looked_up := lookup(decision, asked_last(messages), tools)) is not None:
        return looked_up
    return decision if decision.ready else _answer(decision, asked_last(messages), tools, summaries)


def lookup(decision: Decision, text: str, tools: Sequence[Tool]) -> Decision | None:
    """Looks a question that no agent answers up in the memory."""
    return _recalling(text, tools) if decision.reason == "nothing" else None


def keywords_of(text: str) -> list[str]:
    """The words of a question by which a memory is found; none for what is no question."""
    folded = text.strip().casefold()
    if not (folded.endswith("?") or _ASKS.match(folded)):
        return []
    words = dict.fromkeys(re.findall(r"\w[\w-]*", folded))
    return [word for word in words if len(word) >= _SHORTEST and word not in STOP | FAINT][:_MOST_KEYWORDS]


def _recalling(text: str, tools: Sequence[Tool]) -> Decision | None:
    """The call that looks a question up in the memory; None where it cannot be."""
    # stems are found within the words of a memory, too: "serviced" in "service"
    words = [stem(word) for word in keywords_of(text)]
    return _asking(RECALLING, {"keywords": words, "max_messages": _MOST_READ}, tools) if words else None


def _asking_buddy(text: str, tools: Sequence[Tool]) -> Decision | None:
    """The call that looks a question up in what a buddy remembers itself; None for who is no buddy."""
    if not keywords_of(text):
        return None
    # a buddy gives what has all these words, so that "favorite number" must not become "favorite"
    words = dict.fromkeys(re.findall(r"\w[\w-]*", text.casefold()))
    asked = [stem(word) for word in words if len(word) >= _SHORTEST and word not in STOP]
    return _asking(BUDDY, {"action": "recall", "text": " ".join(asked)}, tools)


def _asking(name: str, arguments: dict[str, Any], tools: Sequence[Tool]) -> Decision | None:
    """The call of a shipped agent; None where it is not here, or takes other arguments."""
    tool = next((one for one in tools if one.get("function", {}).get("name") == name), None)
    if tool is None or not fits(arguments, tool["function"].get("parameters")):
        return None
    return Decision(tool, arguments, reason="call")


def remembered(question: str, result: str) -> list[str]:
    """The memories in a result that speak of what was asked, the best first."""
    words = keywords_of(question)
    kinds = _KIND_ASKED.findall(question.casefold())
    wanted = {stem(word) for word in words if word not in kinds} or {stem(word) for word in words}
    found = []
    for place, memory in enumerate(_MEMORY.findall(result)):
        has = {stem(word) for word in re.findall(r"\w[\w-]*", memory.casefold())}
        share = len(wanted & has) / len(wanted) if wanted else 0.0
        if share > _SHARE:
            found.append((-share, place, " ".join(memory.split())))
    best = min((share for share, _, _ in found), default=0.0)
    return [memory for share, _, memory in sorted(found) if share == best][:_MOST_RECALLED]


def _looked_up(
    messages: Sequence[Message],
    tools: Sequence[Tool],
    found: Sequence[tuple[str, str]],
    summaries: Mapping[str, str],
) -> Decision | str:
    """The answer to such a question: what is remembered of it, or that nobody knows. "" for any other result.

    A buddy, whose memory has nothing of it, is asked for what it remembers itself.
    """
    before = messages[: len(messages) - len(found)]
    asked = [message for message in before if message.get("role") == "user"]
    if len(found) > 1 or found[0][0] != RECALLING or not asked:
        return ""
    earlier = messages[: messages.index(asked[-1]) + 1]
    decision = decided(earlier, tools)
    if decision.ready or lookup(decision, _text(asked[-1]), tools) is None:
        return ""
    if memories := remembered(_text(asked[-1]), found[0][1]):
        return recalled(memories)
    if (call := _asking_buddy(_text(asked[-1]), tools)) is not None:
        return call
    return nothing_fits(tools, summaries=summaries)


def asked_last(messages: Sequence[Message]) -> str:
    """The last sentence of the person."""
    return next((_text(one) for one in reversed(messages) if one.get("role") == "user"), "")


def decided(messages: Sequence[Message], tools: Sequence[Tool]) -> Decision:
    """The decision on the last sentence, which may complete what was asked before it."""
    turns = [message for message in messages if message.get("role") in ("user", "assistant")]
    text = _text(turns[-1]) if turns and turns[-1].get("role") == "user" else ""
    decision = route(text, tools)
    answering = len(turns) >= 3 and len(text.split()) <= _LONGEST_ANSWER
    if answering and (meant := _confirmed(_text(turns[-3]), _text(turns[-2]), text, tools)) is not None:
        return meant
    if answering and _text(turns[-2]).removeprefix(NO_MODEL).startswith(f"{ASKING} needs"):
        # whatever an agent here could do with it: it was asked for another machine
        return _completed(_text(turns[-3]), _text(turns[-2]), text, tools) or decision
    if decision.ready or decision.reason in ("help", "talk", "negated") or not answering:
        return decision
    return _completed(_text(turns[-3]), _text(turns[-2]), text, tools) or decision


def _confirmed(before: str, asked: str, text: str, tools: Sequence[Tool]) -> Decision | None:
    """The decision for a plain "yes" right after an answer that asked for one: what was asked before, confirmed."""
    if not (_PLAIN_YES.fullmatch(text) and _ASKS_FOR_YES.search(asked)):
        return None
    meant = route(before, tools)
    tool = meant.tool
    properties = tool["function"].get("parameters", {}).get("properties", {}) if tool is not None else {}
    if not meant.ready or "confirm" not in properties:
        return None
    return Decision(tool, {**meant.arguments, "confirm": True}, [], EXPLICIT, "call")


def _completed(before: str, asked: str, text: str, tools: Sequence[Tool]) -> Decision | None:
    """The decision for an answer to what this brain asked for: "weather", "Weather needs a city", "Berlin"."""
    if " needs " not in asked[: len(NO_MODEL) + _LONGEST_ASKED]:
        return None
    meant = route(before, tools)
    question = asked.removeprefix(NO_MODEL)
    if meant.reason != "missing" or not question.startswith(needs(meant, tools).removeprefix(NO_MODEL)):
        return None
    asked_again = [f"{before.rstrip(' ?.!')} {text}"]
    if len(meant.missing) == 1:
        spelled = text.replace('"', "'").rstrip(" .!")
        asked_again.append(f'{before} {meant.missing[0]}="{spelled}"')
    for whole in asked_again:
        decision = route(whole, tools)
        if decision.ready and decision.name == meant.name:
            return decision
    return None


def _answer(decision: Decision, text: str, tools: Sequence[Tool], summaries: Mapping[str, str]) -> str:
    match decision.reason:
        case "talk" if kind := pleasantry(text):
            return polite(kind, tools)
        case "help":
            return listing(tools, summaries)
        case "missing":
            return needs(decision, tools)
        case "negated":
            return NOTHING_RUN
        case "unclear":
            return unclear(decision)
        case _:
            return nothing_fits(tools, summaries=summaries)


def _nobody_shown(messages: Sequence[Message], found: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """("twin", "Paris") for "show me Paris" when no twin is called so: then the sentence was not about a twin.

    "restore Paris" is about a snapshot in the same way. Empty texts otherwise.
    """
    name, result = found[0]
    text = asked_last(messages)
    if len(found) > 1:
        return "", ""
    if name == DOING and result.startswith('Error: No twin "'):
        deed = twin_deed(text)
        if deed is not None and not deed.plainly and deed.arguments["action"] == "overview":
            return "twin", str(deed.arguments["rappid_uuid"])
    if name == RESTORING and result.startswith('Error: No snapshot "'):
        meant = neighborhood_deed(text)
        if meant is not None and not meant[2]:
            return "snapshot", str(meant[1]["egg_path"])
    return "", ""


def _results(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """The agents' results at the end of ``messages``, with the agents' names."""
    results: list[tuple[str, str]] = []
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") != "tool":
            break
        name = message.get("name") or _called(messages[:place], message.get("tool_call_id"))
        results.append((str(name or "The agent"), _text(message)))
    return results[::-1]


def _called(messages: Sequence[Message], call_id: Any) -> str:
    for message in reversed(messages):
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list | tuple) else ():
            if (
                isinstance(call, dict)
                and call.get("id") == call_id
                and isinstance(call.get("function"), dict)
            ):
                return str(call["function"].get("name") or "")
    return ""


def _text(message: Message) -> str:
    """A message's text; of a content in parts, the text parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return "" if content is None else str(content)


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
    """The ``tools`` that fit ``text`` best, as many as have ``most`` bytes as JSON together, in their own order."""
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
