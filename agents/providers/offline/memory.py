"""Orders to remember something, and questions that no agent answers, looked up in what was remembered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agents.providers.offline.schema_check import fits
from agents.providers.offline.vocabulary import FAINT, STOP, stem
from agents.providers.provider import Tool

KEEPING = "ManageMemory"
"""The agent; ``memory_type`` and ``content`` are its parameters."""

_LONGEST = 4000
_POLITE = (
    r"(?:(?:please|hey|hi|ok|okay|now|so|and|also|oh|(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to"
    r"|i want you to|you (?:should|must|have to|need to))[\s,]+)*"
)
_FOR_ME = r"(?:\s+(?:this|the following|it|for me|for later|down|in mind))*"
_MARK = r"\s*[:,–—-]\s*"
_ORDERS = re.compile(
    rf"\s*{_POLITE}(?:remember|memori[sz]e|(?:don't|dont|do not|never) forget)"
    rf"(?:{_FOR_ME}{_MARK}(?:that\s+)?|\s+(?:the\s+fact\s+)?that\s+)(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_NOTES = re.compile(
    rf"\s*{_POLITE}(?:(?:note|save|store|record|write)|(?:keep|bear) in mind|(?:make|take) (?:a )?note(?: of)?|for the record)"
    rf"(?:{_FOR_ME}{_MARK}(?:that\s+)?|{_FOR_ME}\s+(?:the\s+fact\s+)?that\s+)(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASKED = re.compile(rf"\s*{_POLITE}(?<=you )", re.IGNORECASE)
_FEELS = re.compile(
    r"(?:i|we|he|she|they|my \w+|[A-Z]\w+)\s+(?:\w+ly\s+)?(?:prefers?|likes?|loves?|hates?|dislikes?|enjoys?)\b"
    r"|my favou?rite\b",
    re.IGNORECASE,
)


def remembered_fact(text: str) -> tuple[dict[str, Any], bool] | None:
    """The arguments that keep what is said, and True where the sentence plainly asks for it; None for any other.

    "note that x" is not plain: an agent that keeps notes comes first. What is remembered is a fact, whatever words
    it holds, but for what somebody likes.
    """
    if len(text) > _LONGEST:
        return None
    text = text.replace("’", "'")
    plain = _ORDERS.fullmatch(text)
    found = plain or _NOTES.fullmatch(text)
    if found is None:
        return None
    what = found["what"].strip()
    what = what.rstrip("?").rstrip() if _ASKED.match(text) else what
    if what.count(".") == 1:  # one sentence is kept without its full stop, as other arguments are read
        what = what.removesuffix(".")
    kind = "preference" if _FEELS.match(what) else "fact"
    return {"memory_type": kind, "content": what}, plain is not None


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
