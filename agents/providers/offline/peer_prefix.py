"""A sentence that is for another machine by name: "ask desk how warm it is", "on desk: how warm is it?"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agents.providers.provider import Tool

ASKING = "AskPeer"
"""The agent that asks other machines; where some are known, its ``peer`` lists their names."""

_POLITE = (
    r"(?:(?:please|hey|hi|hello|ok|okay|so|and|well|now|then|just|(?:can|could|would|will) you(?: please)?"
    r"|i(?:'d| would) like you to|i want you to)[\s,]+)*"
)
_LEAD = r"(?:[\s,]+(?:to|that|please|about)(?=\s)|'s(?=\s)|[:：,\-–—])*\s*"
_WHETHER = re.compile(r"(?:if|whether)\s+(?=\S)", re.I)
_LONGEST_HEAD = 400  # characters looked at for a name at the beginning
_LONGEST_END = 200  # characters looked at for a name at the end
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "'": "'", "`": "`"}


@dataclass(slots=True, frozen=True)
class Addressed:
    """The addressee of a sentence, and the rest of it to ask; "" when nothing is left."""

    peer: str
    text: str


def addressed(text: str, tool: Tool, *, told: bool = False) -> Addressed | None:
    """The question for ``tool`` (the one that asks machines); None when the sentence names no known machine.

    A sentence that only tells something (``told``) is for a machine when it begins with that, not by "… on desk".
    """
    names = _names(tool)
    if not names:
        return None
    forms = _forms(names)
    if found := forms.before.match(text[:_LONGEST_HEAD]):
        return Addressed(forms.known(found[found.lastgroup or 0]), _asked(text[found.end() :]))
    if not told and (found := forms.after.search(text[-_LONGEST_END:])):
        end = max(0, len(text) - _LONGEST_END) + found.start()
        return Addressed(forms.known(found["there"]), _asked(text[:end]))
    return None


def _names(tool: Tool) -> tuple[str, ...]:
    try:
        found: Any = tool["function"]["parameters"]["properties"]["peer"]["enum"]
    except (KeyError, TypeError):
        return ()
    return tuple(name for name in found if isinstance(name, str) and name) if isinstance(found, list) else ()


@dataclass(slots=True, frozen=True)
class _Forms:
    """The words before a question, those after it, and the names by how they are spoken."""

    before: re.Pattern[str]
    after: re.Pattern[str]
    by_spelling: dict[str, str]

    def known(self, spoken: str) -> str:
        """A machine's name as it is written here."""
        return self.by_spelling[_plain(spoken)]


@lru_cache(maxsize=8)
def _forms(names: tuple[str, ...]) -> _Forms:
    spelled = sorted(names, key=len, reverse=True)
    any_name = "|".join(r"[\s_-]".join(map(re.escape, re.split(r"[\s_-]", name))) for name in spelled)
    name = rf"@?(?:{any_name})(?![\w-])"
    asks = rf"(?:ask|tell|let|have|get)\s+(?P<asked>{name}){_LEAD}"
    there = rf"on\s+(?P<there>{name})\s*[:：,]\s*"
    headed = rf"(?P<headed>{name})\s*[:：]\s*"
    return _Forms(
        before=re.compile(rf"\s*{_POLITE}(?:{asks}|{there}|{headed})", re.I),
        after=re.compile(rf"[\s,]+(?:over\s+)?on\s+(?P<there>{name})\s*[?.!…]*\s*$", re.I),
        by_spelling={_plain(one): one for one in reversed(spelled)},
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", " ", name.casefold().removeprefix("@"))


def _asked(text: str) -> str:
    """The question alone: without quotes around it, and "whether it rains" as one."""
    text = text.strip()
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1].strip()
    if found := _WHETHER.match(text):
        return f"{text[found.end() :].rstrip(' .?!')}?"
    return text
