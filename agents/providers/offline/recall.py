"""Questions that no agent answers, looked up in what was remembered; and "remember: x" made plain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agents.providers.offline.schema_check import fits
from agents.providers.offline.tokens import FAINT, STOP, stem
from agents.providers.provider import Tool

RECALLING = "ContextMemory"
"""The agent that reads the memory."""
REMEMBERING = "ManageMemory"
"""The agent that writes it."""
BUDDY = "Buddy"
"""The agent of a buddy, which has a memory of its own."""

_MOST_KEYWORDS = 6
_MOST_READ = 50
_MOST_TOLD = 3
_SHORTEST = 3
_SHARE = 0.5  # of the question's words; a memory must have more
_ASKS = re.compile(
    r"(?:(?:and|so|but|please|hey|ok(?:ay)?)[ ,]+)*(?:when|where|who|whom|whose|what|which|how|why|is|are|was|were|do|does|did|has|have|can)\b"
)
_REMEMBER = re.compile(
    r"[\s*_`~>#-]*(?:please[\s,]+)?[*_`~]*remember[*_`~]*\s*(?P<colon>[:,–—-]?)[*_`~]*\s*(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
# An answer seldom repeats it: "the car is red", "bins go out on Tuesday".
_KIND_ASKED = re.compile(r"\b(?:what|which)\s+(\w[\w-]*)")
_QUOTES_WITHIN = re.compile(r"(?!to\b)\w[^\"“„`]*[\"“„`]")
_MEMORY = re.compile(r"^- (.*?) \(Theme: [^()\n]*, Recorded: [^()\n]*\)$", re.MULTILINE | re.DOTALL)


def plain_order(text: str) -> str:
    """``text`` itself, or "remember that x" for "remember: x" and "**remember** x", however it is marked up."""
    found = _REMEMBER.match(text)
    if found is None or not (
        found["colon"] or re.match(r"[\s>#-]*[*_`~]", text) or _QUOTES_WITHIN.match(found["what"])
    ):
        return text
    what = re.sub(r"^that\s+", "", found["what"], flags=re.IGNORECASE)
    return f"remember that {_without_open_marks(what.strip())}"


def _without_open_marks(what: str) -> str:
    """``what`` without the signs of markup around it; those of a pair within it stay ("the cat is *Minka*")."""
    bare = what.strip("*_`~").strip()
    end = re.search(r"[*_`~]+$", what)
    return bare + end[0] if end and bare.count(end[0]) % 2 else bare


def orders_remembering(text: str, name: str) -> bool:
    """True when ``text`` is an order to remember something, and the agent called ``name`` does so."""
    return name == REMEMBERING and _REMEMBER.match(text) is not None and not text.rstrip().endswith("?")


def keywords_of(text: str) -> list[str]:
    """The words of a question by which a memory is found; none for what is no question."""
    folded = text.strip().casefold()
    if not (folded.endswith("?") or _ASKS.match(folded)):
        return []
    words = dict.fromkeys(re.findall(r"\w[\w-]*", folded))
    return [word for word in words if len(word) >= _SHORTEST and word not in STOP | FAINT][:_MOST_KEYWORDS]


def recalling(text: str, tools: Sequence[Tool]) -> tuple[Tool, dict[str, Any]] | None:
    """The call that looks a question up in the memory; None where it cannot be."""
    tool = next((one for one in tools if one.get("function", {}).get("name") == RECALLING), None)
    words = keywords_of(text) if tool is not None else []
    if tool is None or not words:
        return None
    # stems are found within the words of a memory, too: "serviced" in "service"
    arguments = {"keywords": [stem(word) for word in words], "max_messages": _MOST_READ}
    return (tool, arguments) if fits(arguments, tool["function"].get("parameters")) else None


def asking_buddy(text: str, tools: Sequence[Tool]) -> tuple[Tool, dict[str, Any]] | None:
    """The call that looks a question up in what a buddy remembers itself; None for who is no buddy."""
    tool = next((one for one in tools if one.get("function", {}).get("name") == BUDDY), None)
    if tool is None or not keywords_of(text):
        return None
    # a buddy gives what has all these words, so that "favorite number" must not become "favorite"
    words = dict.fromkeys(re.findall(r"\w[\w-]*", text.casefold()))
    asked = [stem(word) for word in words if len(word) >= _SHORTEST and word not in STOP]
    arguments = {"action": "recall", "text": " ".join(asked)}
    return (tool, arguments) if fits(arguments, tool["function"].get("parameters")) else None


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
    return [memory for share, _, memory in sorted(found) if share == best][:_MOST_TOLD]
