"""A sentence about a twin by name: "fork Rose as Iris", "ask Rose how the garden is", "set the twin Rose aside"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

DOING = "Twin"
"""The agent that looks after twins; ``action``, ``rappid_uuid``, ``name`` and ``text`` are its parameters."""

_LONGEST = 2000  # characters of a sentence that is looked at
_POLITE = re.compile(
    r"\s*(?:(?:please|hey|hi|ok|okay|now|then|(?:can|could|would|will) you(?: please)?)[\s,]+)*",
    re.IGNORECASE,
)
_YES = re.compile(r"\s*yes[\s,.!:]+", re.IGNORECASE)
_BIG = r"(?-i:[A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΫА-Я])"
_QUOTED = r'"[^"]{1,120}"|“[^”]{1,120}”|„[^“]{1,120}“'
_REST = r"(?:[\w.’'-]*\w)?"
_NAME = rf"{_QUOTED}|{_BIG}{_REST}(?:\s+(?:&\s+)?(?:{_BIG}{_REST}|\d+))*"
_WHO = rf"(?:(?:the\s+|my\s+)?twin\s+(?P<told>{_NAME}|\w{_REST})|(?P<bare>{_NAME}))"
_SHOW = r"(?:(?:show|list)(?:\s+me)?\s+|what\s+is\s+)?(?:the\s+)?"
_NEW = rf"(?P<name>{_QUOTED}|[^,;:?!]{{1,120}}?)"
_EVERY = r"(?:all|every|each)?(?:\s+of)?\s*(?:the\s+|my\s+)?twins?"
_DEEDS: tuple[tuple[str, str, str], ...] = (
    (
        "list",
        "who which",
        r"who (?:all )?lives here|who is here|which twins (?:are there|live here|do i have)",
    ),
    ("lineage", "who whose", r"who descends from whom|whose child is (?:who|whom)"),
    ("eggs", "what", r"what (?:was|has been|did (?:i|we)) hatch(?:ed)?(?: here)?"),
    ("list_purged", "which", r"which twins (?:are|were) (?:gone|purged|ended)"),
    ("chat", "ask tell", rf"(?:ask|tell)\s+{_WHO}(?:\s*[:,]\s*|\s+(?:to|that|about)\s+|\s+)(?P<text>.+)"),
    ("update_identity", "rename", rf"rename\s+{_WHO}\s+(?:to|into|as)\s+{_NEW}"),
    ("fork", "fork duplicate clone", rf"\w+\s+{_WHO}(?:\s+(?:as|called|named|to|into)\s+{_NEW})?"),
    ("lay_egg", "pack", rf"pack\s+{_WHO}"),
    ("boot", "wake boot", rf"(?:wake(?:\s+up)?|boot)\s+{_WHO}(?:\s+up)?"),
    ("stop", "let put", rf"(?:let|put)\s+{_WHO}\s+(?:to\s+)?(?:sleep|rest)"),
    ("rollback", "bring take", rf"\w+\s+{_WHO}\s+back\s+to\s+.*\bcheckpoint"),
    ("rollback", "roll", rf"roll\s+back\s+{_WHO}"),
    ("rollback", "roll", rf"roll\s+{_WHO}\s+back"),
    ("unarchive", "unarchive", rf"unarchive\s+{_WHO}"),
    ("unarchive", "bring", rf"bring\s+{_WHO}\s+back(?:\s+from\s+the\s+archive)?"),
    (
        "archive",
        "archive set put",
        rf"(?:archive|(?:set|put)\s+aside)\s+{_EVERY}\s+(?:whose\s+names?|with\s+names?|called|named|that|which)(?:\s+that|\s+are\s+called)?"
        rf"\s+(?:starts?|begins?|starting|beginning)\s+with\s+(?P<prefix>{_QUOTED}|\S+?)",
    ),
    (
        "archive",
        "archive set put",
        rf"(?:archive|(?:set|put)\s+aside)\s+{_EVERY}\s+of\s+(?:the\s+)?kind\s+(?P<kind>{_QUOTED}|[\w-]+)",
    ),
    (
        "archive",
        "archive set put",
        rf"(?:archive|(?:set|put)\s+aside)\s+{_EVERY}\s+(?:that|which)\s+(?:have|has|were|was|are|is)\s+(?:been\s+)?"
        r"(?:stopped|asleep|unused|not\s+used|idle)\s+(?:for|since)\s+(?P<days>\d{1,5})\s+days?",
    ),
    ("archive", "archive", rf"archive\s+{_WHO}"),
    ("archive", "set put", rf"(?:set|put)\s+{_WHO}\s+aside"),
    ("purge", "purge", rf"purge\s+{_WHO}"),
    ("checkpoint", "make keep take save checkpoint", rf"(?:\w+\s+a\s+checkpoint\s+of|checkpoint)\s+{_WHO}"),
    ("checkpoints", "checkpoints show list", rf"{_SHOW}checkpoints\s+of\s+{_WHO}"),
    ("history", "history show list", rf"{_SHOW}(?:history|earlier\s+souls)\s+of\s+{_WHO}"),
    ("update_soul", "soul the show what", rf"{_SHOW}soul\s+of\s+{_WHO}"),
    ("lineage", "lineage family the show what", rf"{_SHOW}(?:lineage|family)\s+of\s+{_WHO}"),
    ("overview", "show who how describe", rf"(?:show(?:\s+me)?|who\s+is|how\s+is|describe)\s+{_WHO}"),
)
"""Each action with the words that such a sentence opens with, and the sentence."""
_ONLY_TOLD = frozenset({"who", "how", "describe"})
"""Actions that anybody can be asked for: only "the twin …" makes these about a twin."""


_OPENINGS: dict[str, list[int]] = {}
for _number, (_, _words, _) in enumerate(_DEEDS):
    for _word in _words.split():
        _OPENINGS.setdefault(_word, []).append(_number)


@cache
def _pattern(number: int) -> re.Pattern[str]:
    """Compiled when a sentence first opens like it: that takes milliseconds, and most never do."""
    return re.compile(rf"(?:{_DEEDS[number][2]})\s*[.?!…]*\s*", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True, frozen=True)
class TwinDeed:
    """A command for the twins' agent. ``plainly``: the sentence says that it is about a twin."""

    arguments: dict[str, Any]
    plainly: bool


def twin_deed(text: str) -> TwinDeed | None:
    """Reads a command about a twin from a sentence; None when there is none.

    "yes, purge Rose" is the yes to what has to be confirmed.
    """
    if len(text) > _LONGEST:
        return None
    yes = _YES.match(text)
    asked = text[yes.end() :] if yes else text
    asked = asked[polite.end() :] if (polite := _POLITE.match(asked)) else asked
    opening = asked.split(maxsplit=1)[0].casefold() if asked.strip() else ""
    for number in _OPENINGS.get(opening, ()):
        if (found := _pattern(number).fullmatch(asked)) is None:
            continue
        said = {key: value for key, value in found.groupdict().items() if value}
        who = said.get("told") or said.get("bare", "")
        if "bare" in said and opening in _ONLY_TOLD:
            continue
        arguments: dict[str, Any] = {"action": _DEEDS[number][0]}
        texts = {"rappid_uuid": who, "name": said.get("name", ""), "text": said.get("text", "")}
        arguments |= {key: _bare(value) for key, value in texts.items() if _bare(value)}
        chosen = {"name_prefix": _bare(said.get("prefix", "")), "kind": _bare(said.get("kind", ""))}
        chosen = {clause: value for clause, value in chosen.items() if value}
        if chosen or "days" in said:
            days = {"stopped_for_days": int(said["days"])} if "days" in said else {}
            arguments["filter"] = {**chosen, **days}
        if yes:
            arguments["confirm"] = True
        return TwinDeed(arguments, "bare" not in said)
    return None


def _bare(text: str) -> str:
    return text.strip().strip('"“”„').strip()
