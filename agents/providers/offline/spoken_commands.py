"""Commands with a form of their own: for another machine by name, about a twin by name, about all machines, to remember something."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
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


def addressed(text: str, tool: Tool, *, only_tells: bool = False) -> Addressed | None:
    """The question for ``tool`` (the one that asks machines); None when the sentence names no known machine.

    A sentence that only tells something (``only_tells``) is for a machine when it begins with that, not by "… on desk".
    """
    names = _names(tool)
    if not names:
        return None
    forms = _forms(names)
    if found := forms.before.match(text[:_LONGEST_HEAD]):
        return Addressed(forms.known(found[found.lastgroup or 0]), _asked(text[found.end() :]))
    if not only_tells and (found := forms.after.search(text[-_LONGEST_END:])):
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


DOING = "Twin"
"""The agent that looks after twins; ``action``, ``rappid_uuid``, ``name`` and ``text`` are its parameters."""

_SENTENCES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_PART = re.compile(r"\{([a-z_]+)\}")


@cache
def _part(name: str) -> str:
    return _whole(_SENTENCES["parts"][name])


def _whole(pattern: str) -> str:
    """The expression with its parts put in."""
    return _PART.sub(lambda found: _part(found[1]), pattern)


_MOST_OF_A_TWIN = 2000  # characters of a sentence that is looked at
_POLITELY = re.compile(rf"\s*{_part('kindly')}", re.IGNORECASE)
_YES = re.compile(r"\s*yes[\s,.!:]+", re.IGNORECASE)
_OF_A_TWIN: Sequence[tuple[str, str, str]] = _SENTENCES["of_a_twin"]
"""Each action with the words that such a sentence opens with, and the sentence."""
_ONLY_TOLD = frozenset({"who", "how", "describe"})
"""Actions that anybody can be asked for: only "the twin …" makes these about a twin."""


_OPENINGS: dict[str, list[int]] = {}
for _number, (_, _words, _) in enumerate(_OF_A_TWIN):
    for _word in _words.split():
        _OPENINGS.setdefault(_word, []).append(_number)


@cache
def _pattern(number: int) -> re.Pattern[str]:
    """Compiled when a sentence first opens like it: that takes milliseconds, and most never do."""
    return re.compile(rf"(?:{_whole(_OF_A_TWIN[number][2])})\s*[.?!…]*\s*", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True, frozen=True)
class TwinDeed:
    """A command for the twins' agent. ``plainly``: the sentence says that it is about a twin."""

    arguments: dict[str, Any]
    plainly: bool


def twin_deed(text: str) -> TwinDeed | None:
    """Reads a command about a twin from a sentence; None when there is none.

    "yes, purge Rose" is the yes to what has to be confirmed.
    """
    if len(text) > _MOST_OF_A_TWIN:
        return None
    yes = _YES.match(text)
    asked = text[yes.end() :] if yes else text
    asked = asked[polite.end() :] if (polite := _POLITELY.match(asked)) else asked
    opening = asked.split(maxsplit=1)[0].casefold() if asked.strip() else ""
    for number in _OPENINGS.get(opening, ()):
        if (found := _pattern(number).fullmatch(asked)) is None:
            continue
        parts = {key: value for key, value in found.groupdict().items() if value}
        who = parts.get("told") or parts.get("bare", "")
        if "bare" in parts and opening in _ONLY_TOLD:
            continue
        arguments: dict[str, Any] = {"action": _OF_A_TWIN[number][0]}
        texts = {"rappid_uuid": who, "name": parts.get("name", ""), "text": parts.get("text", "")}
        arguments |= {key: _bare(value) for key, value in texts.items() if _bare(value)}
        chosen = {"name_prefix": _bare(parts.get("prefix", "")), "kind": _bare(parts.get("kind", ""))}
        chosen = {clause: value for clause, value in chosen.items() if value}
        if chosen or "days" in parts:
            days = {"stopped_for_days": int(parts["days"])} if "days" in parts else {}
            arguments["filter"] = {**chosen, **days}
        if yes:
            arguments["confirm"] = True
        return TwinDeed(arguments, "bare" not in parts)
    return None


def _bare(text: str) -> str:
    return text.strip().strip('"“”„').strip()


TAKING, RESTORING, KEEPING = "NeighborhoodSnapshot", "NeighborhoodRun", "Fleet"
"""The agents; ``action``, ``name``, ``egg_path``, ``target``, ``filter`` and ``confirm`` are their parameters."""

_MOST_OF_ALL = 1000
_FIRST = re.compile(
    rf"{_part('kindly')}(?:take|make|create|snapshot|back|backup|copy|what|which|list|show|how|when|is|are|can|compare|schedule|inspect|plan|archive|restore|simulate)\b",
    re.IGNORECASE,
)


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Compiled when a sentence first opens like one: most never do."""
    return tuple(
        (agent, action, re.compile(rf"\s*{_part('kindly')}(?:{_whole(pattern)})\s*[.?!…]*\s*", re.IGNORECASE))
        for agent, action, pattern in _SENTENCES["of_all_machines"]
    )


def neighborhood_deed(text: str) -> tuple[str, dict[str, Any], bool] | None:
    """The agent, its arguments, and False where the sentence may be about something else; None where it is.

    "yes, restore home" is the yes to the plan that was shown. "restore third" may be about a snapshot of that name.
    """
    if len(text) > _MOST_OF_ALL:
        return None
    yes = _YES.match(text)
    asked = text[yes.end() :] if yes else text
    if _FIRST.match(asked.lstrip()) is None:
        return None
    for agent, action, pattern in _patterns():
        if (found := pattern.fullmatch(asked)) is None:
            continue
        parts = found.groupdict()
        arguments: dict[str, Any] = {"action": action}
        if egg := (parts.get("egg") or "").strip('"'):
            arguments["egg_path"] = egg
        if name := (parts.get("name") or "").strip('"'):
            arguments["name"] = name
        if kind := parts.get("kind"):
            arguments["filter"] = {"kind": kind}
        if parts.get("simulated") or asked.lstrip().casefold().startswith("simulate"):
            arguments["target"] = "local-simulate"
        if yes and action in ("hatch", "archive_estate"):
            arguments["confirm"] = True
        plainly = action != "hatch" or _is_plain(asked, arguments, yes=yes is not None)
        return (agent, arguments, plainly) if plainly or egg else None
    return None


def _is_plain(asked: str, arguments: dict[str, Any], *, yes: bool) -> bool:
    """True when a sentence with "restore" is about a snapshot: much else is restored."""
    confirmed = yes or "target" in arguments or re.search(r"\b(?:snapshot|egg)\b", asked, re.IGNORECASE)
    return bool(confirmed) or re.search(r"[\d/.-]", arguments.get("egg_path", "")) is not None


REMEMBERING = "ManageMemory"
"""The agent that writes the memory; ``memory_type`` and ``content`` are its parameters."""

_LONGEST_FACT = 4000
_POLITE_ORDER = (
    r"(?:(?:please|hey|hi|ok|okay|now|so|and|also|oh|(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to"
    r"|i want you to|you (?:should|must|have to|need to))[\s,]+)*"
)
_FOR_ME = r"(?:\s+(?:this|the following|it|for me|for later|down|in mind))*"
_MARK = r"\s*[:,–—-]\s*"
_ORDERS = re.compile(
    rf"\s*{_POLITE_ORDER}(?:remember|memori[sz]e|(?:don't|dont|do not|never) forget)"
    rf"(?:{_FOR_ME}{_MARK}(?:that\s+)?|\s+(?:the\s+fact\s+)?that\s+)(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_NOTES = re.compile(
    rf"\s*{_POLITE_ORDER}(?:(?:note|save|store|record|write)|(?:keep|bear) in mind|(?:make|take) (?:a )?note(?: of)?|for the record)"
    rf"(?:{_FOR_ME}{_MARK}(?:that\s+)?|{_FOR_ME}\s+(?:the\s+fact\s+)?that\s+)(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASKED = re.compile(rf"\s*{_POLITE_ORDER}(?<=you )", re.IGNORECASE)
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
    if len(text) > _LONGEST_FACT:
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


_REMEMBER = re.compile(
    r"[\s*_`~>#-]*(?:please[\s,]+)?[*_`~]*remember[*_`~]*\s*(?P<colon>[:,–—-]?)[*_`~]*\s*(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTES_WITHIN = re.compile(r"(?!to\b)\w[^\"“„`]*[\"“„`]")


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
