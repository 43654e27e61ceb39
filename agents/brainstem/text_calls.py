"""Calls that a model wrote as text, because its server does not understand them.

One is performed only when the whole answer is that call, it names an agent that was offered, and the agent changes
no structure. A call among other words, in a code fence or a quotation is none: it may come from what an agent or a
page said.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any

import orjson

from agents.brainstem.tool_call_checks import resolve
from agents.contract.agent import is_structural
from agents.providers.provider import ToolCall

NOT_UNDERSTOOD = (
    "The model wrote a call of an agent as text: its server does not understand its model's calls."
)
_MOST_HELD = 4000
"""Characters of an answer that are held back while it may be a call."""
_TAGS = (
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<function=",
    "functools[",
    "<|tool_call|>",
    "<|tool_call>",
)
_KEYS = ("name", "type", "function", "tool", "tool_calls", "tool_call", "arguments", "parameters", "id")
_TAGGED = re.compile(
    r"^(?:<tool_call>|<\|tool_call\|?>|\[TOOL_CALLS\]|<\|python_tag\|>|functools)\s*(?P<json>[\[{].*[\]}])"
    r"\s*(?:</tool_call>|<\|/?tool_call\|?>|</s>|<\|eom_id\|>)?$",
    re.DOTALL,
)
_FUNCTION = re.compile(
    r"^<function=(?P<name>[\w.\-]{1,64})>\s*(?P<json>\{.*\})\s*(?:</function>)?$", re.DOTALL
)
_NAMED = re.compile(
    r"^\[TOOL_CALLS\]\s*(?P<name>[\w.\-]{1,64})\s*(?:\[ARGS\])?\s*(?P<json>\{.*\})$", re.DOTALL
)
_SPOKEN = re.compile(r"^functions\.(?P<name>[\w\-]{1,64}):?\s*\(?\s*(?P<json>\{.*\})\s*\)?$", re.DOTALL)
"""As llama.cpp for Python lets each model write its calls, and some write them on where they may call none."""
_SPOKEN_BEGUN = re.compile(r"^functions\.[\w\-]{0,64}:?\s*\(?\s*(?:\{.*)?$", re.DOTALL)
_BEGUN = re.compile(r'^[\[{\s]*"?(?P<key>[a-z_]*)(?P<closed>"?)')


def call_in_text(text: str, offered: Iterable[str]) -> ToolCall | None:
    """The call that is the whole of ``text``; None where it is none that may be performed."""
    names = list(offered)
    text = text.strip()
    found = _whole_call(text)
    if found is None:
        return None
    name, arguments = resolve(found[0], names), found[1]
    if name not in names or is_structural(name):
        return None
    return ToolCall(f"call_{uuid.uuid4().hex}", name, arguments)


def speaks_of_a_call(text: str, offered: Iterable[str]) -> bool:
    """True when an answer holds what models write for a call of one of ``offered``, wherever in it."""
    names = list(offered)
    if any(tag in text for tag in _TAGS[:4]) or _SPOKEN.match(text.strip()):
        return True
    found = _whole_call(_unfenced(text.strip()))
    return found is not None and resolve(found[0], names) in names


def may_become_a_call(text: str) -> bool:
    """True when an answer that begins with ``text`` may turn out to be a call."""
    return len(text) <= _MOST_HELD and _may_be_a_call(text.lstrip())


class TextCallHold:
    """Holds the beginning of an answer back while it may turn out to be a call."""

    def __init__(self) -> None:
        self._pending = ""
        self._open = False

    def feed(self, piece: str) -> str:
        """The text that may be shown now."""
        if self._open:
            return piece
        self._pending += piece
        if may_become_a_call(self._pending):
            return ""
        return self.release()

    def release(self) -> str:
        """Everything that was held; from now on nothing is."""
        self._open = True
        pending, self._pending = self._pending, ""
        return pending


def _may_be_a_call(text: str) -> bool:
    if not text:
        return True
    if any(text.startswith(tag) or tag.startswith(text) for tag in _TAGS):
        return True
    if "functions.".startswith(text) or _SPOKEN_BEGUN.match(text):
        return True
    if text[0] not in "{[":
        return False
    begun = _BEGUN.match(text)
    if begun is None:
        return False
    key = begun["key"]
    if begun["closed"] or len(text) > begun.end():
        return key in _KEYS and bool(begun["closed"])
    return any(one.startswith(key) for one in _KEYS)


def _whole_call(text: str) -> tuple[str, str] | None:
    """Name and arguments (JSON text) of the call that ``text`` is."""
    for pattern in (_FUNCTION, _NAMED, _SPOKEN):
        if match := pattern.match(text):
            return (match["name"], match["json"]) if _loaded(match["json"]) is not None else None
    match = _TAGGED.match(text)
    body = match["json"] if match else text
    if body[:1] not in ("{", "["):
        return None
    return _named_call(_loaded(body))


def _named_call(found: Any) -> tuple[str, str] | None:
    if isinstance(found, dict) and isinstance(found.get("tool_calls"), list):
        found = found["tool_calls"]
    if isinstance(found, list):
        found = found[0] if len(found) == 1 else None
    if isinstance(found, dict) and isinstance(found.get("function"), dict):
        found = found["function"]
    if not isinstance(found, dict):
        return None
    name = next((found[key] for key in ("name", "function", "tool") if isinstance(found.get(key), str)), "")
    arguments = next((found[key] for key in ("arguments", "parameters", "args") if key in found), None)
    if isinstance(arguments, str):
        arguments = _loaded(arguments)
    if not name or not isinstance(arguments, dict):
        return None
    return name, orjson.dumps(arguments).decode()


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _unfenced(text: str) -> str:
    match = re.match(r"^```[a-zA-Z_]*\s*\n(.*?)\n?```$", text, re.DOTALL)
    return match[1].strip() if match else text
