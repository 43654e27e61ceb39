"""Decides the next step of a conversation without a model: one agent call, or an honest answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.contract.agent import is_structural
from agents.providers.offline.commands import ASKING, DOING, RESTORING, neighborhood_deed, twin_deed
from agents.providers.offline.memory import RECALLING, asking_buddy, recalling, remembered
from agents.providers.offline.responses import (
    NO_MODEL,
    NOTHING_RUN,
    ONLY_THERE,
    listing,
    needs,
    nothing_fits,
    polite,
    recalled,
    unclear,
)
from agents.providers.offline.result_format import present
from agents.providers.offline.route import EXPLICIT, Decision, pleasantry, route
from agents.providers.provider import Message, Tool

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
    call = recalling(text, tools) if decision.reason == "nothing" else None
    return Decision(call[0], call[1], reason="call") if call is not None else None


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
    said = messages[: messages.index(asked[-1]) + 1]
    decision = decided(said, tools)
    if decision.ready or lookup(decision, _text(asked[-1]), tools) is None:
        return ""
    if memories := remembered(_text(asked[-1]), found[0][1]):
        return recalled(memories)
    if (call := asking_buddy(_text(asked[-1]), tools)) is not None:
        return Decision(call[0], call[1], reason="call")
    return nothing_fits(tools, summaries=summaries)


def asked_last(messages: Sequence[Message]) -> str:
    """The last sentence of the person."""
    return next((_text(one) for one in reversed(messages) if one.get("role") == "user"), "")


def decided(messages: Sequence[Message], tools: Sequence[Tool]) -> Decision:
    """The decision on the last sentence, which may complete what was asked before it."""
    said = [message for message in messages if message.get("role") in ("user", "assistant")]
    text = _text(said[-1]) if said and said[-1].get("role") == "user" else ""
    decision = route(text, tools)
    answering = len(said) >= 3 and len(text.split()) <= _LONGEST_ANSWER
    if answering and (meant := _confirmed(_text(said[-3]), _text(said[-2]), text, tools)) is not None:
        return meant
    if answering and _text(said[-2]).removeprefix(NO_MODEL).startswith(f"{ASKING} needs"):
        # whatever an agent here could do with it: it was asked for another machine
        return _completed(_text(said[-3]), _text(said[-2]), text, tools) or decision
    if decision.ready or decision.reason in ("help", "talk", "negated") or not answering:
        return decision
    return _completed(_text(said[-3]), _text(said[-2]), text, tools) or decision


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
    told = asked.removeprefix(NO_MODEL)
    if meant.reason != "missing" or not told.startswith(needs(meant, tools).removeprefix(NO_MODEL)):
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
