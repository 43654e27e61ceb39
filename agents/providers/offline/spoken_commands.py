"""Commands with a form of their own: for another machine by name, about a twin by name, about all machines, to remember something."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
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

_MOST_OF_A_TWIN = 2000  # characters of a sentence that is looked at
_KINDLY = r"(?:(?:please|hey|hi|ok|okay|now|then|(?:can|could|would|will) you(?: please)?)[\s,]+)*"
_POLITELY = re.compile(rf"\s*{_KINDLY}", re.IGNORECASE)
_YES = re.compile(r"\s*yes[\s,.!:]+", re.IGNORECASE)
_BIG = r"(?-i:[A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΫА-Я])"
_QUOTED = r'"[^"]{1,120}"|“[^”]{1,120}”|„[^“]{1,120}“'
_REST = r"(?:[\w.’'-]*\w)?"
_TWIN_NAME = rf"{_QUOTED}|{_BIG}{_REST}(?:\s+(?:&\s+)?(?:{_BIG}{_REST}|\d+))*"
_WHO = rf"(?:(?:the\s+|my\s+)?twin\s+(?P<told>{_TWIN_NAME}|\w{_REST})|(?P<bare>{_TWIN_NAME}))"
_SHOW = r"(?:(?:show|list)(?:\s+me)?\s+|what\s+is\s+)?(?:the\s+)?"
_NEW = rf"(?P<name>{_QUOTED}|[^,;:?!]{{1,120}}?)"
_EVERY = r"(?:all|every|each)?(?:\s+of)?\s*(?:the\s+|my\s+)?twins?"
_OF_A_TWIN: tuple[tuple[str, str, str], ...] = (
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
for _number, (_, _words, _) in enumerate(_OF_A_TWIN):
    for _word in _words.split():
        _OPENINGS.setdefault(_word, []).append(_number)


@cache
def _pattern(number: int) -> re.Pattern[str]:
    """Compiled when a sentence first opens like it: that takes milliseconds, and most never do."""
    return re.compile(rf"(?:{_OF_A_TWIN[number][2]})\s*[.?!…]*\s*", re.IGNORECASE | re.DOTALL)


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
_ALL = r"(?:(?:all|of|all of|every one of)\s+)*(?:my|the|our|these)?\s*"
_MACHINES = rf"(?:{_ALL}(?:machines|computers|neighbou?rhood|fleet)|everything)"
_EGG_NAME = r'(?:\s+(?:called|named)\s+(?P<name>"[^"]{1,120}"|[\w.-]*[\w-]))?'
_EGG = r'(?:(?:the\s+)?(?:(?:last|latest|newest)\s+)?(?:snapshot|egg)\b\s*)?(?:(?:called|named)\s+)?(?P<egg>"[^"]{1,200}"|[\w./~-]*[\w-])?'
_SIMULATED = r"(?P<simulated>\s+(?:as\s+a\s+simulation|in\s+(?:a\s+)?simulation|simulated|locally))?"
_TIMES = r"(?:every|each|daily|weekly|nightly|hourly|on\s+\w+days?|at\s+\d|at\s+(?:night|noon|midnight))\b.*"
_OF_ALL_MACHINES: tuple[tuple[str, str, str], ...] = (
    (
        TAKING,
        "snapshot",
        rf"(?:take|make|create)\s+a\s+(?:new\s+)?snapshot(?:\s+of\s+{_MACHINES})?{_EGG_NAME}",
    ),
    (
        TAKING,
        "snapshot",
        rf"(?:snapshot|back\s*up|copy)\s+{_MACHINES}(?:\s+into\s+(?:one|a)\s+(?:file|egg))?{_EGG_NAME}",
    ),
    (
        TAKING,
        "schedule",
        rf"(?:(?:take|make|create)\s+(?:a\s+|the\s+)?(?:new\s+)?snapshots?(?:\s+of\s+{_MACHINES})?|(?:snapshot|back\s*up|copy)\s+{_MACHINES})\s+{_TIMES}",
    ),
    (
        TAKING,
        "schedule",
        rf"(?:schedule|plan)\s+(?:a\s+|the\s+|my\s+)?(?:\w+\s+)?(?:snapshots?|backups?)\b(?:\s+{_TIMES})?",
    ),
    (
        TAKING,
        "schedule",
        r"when\s+(?:is|will)\s+(?:the|my)\s+next\s+(?:snapshot|backup)(?:\s+be)?(?:\s+taken)?",
    ),
    (
        TAKING,
        "list_eggs",
        r"when\s+was\s+(?:the|my)\s+(?:last|latest|newest)\s+(?:snapshot|backup)(?:\s+taken)?",
    ),
    (TAKING, "list_eggs", r"(?:is|are)\s+(?:everything|all|(?:all\s+)?my\s+machines)\s+backed\s+up"),
    (
        TAKING,
        "inspect",
        r"(?:is|can)\s+(?:the|my)\s+(?:last|latest|newest)\s+snapshot\s+(?:restorable|be\s+restored)",
    ),
    (TAKING, "list_eggs", r"compare\s+(?:the\s+|my\s+)?(?:\w+\s+){0,2}snapshots"),
    (TAKING, "list_eggs", r"(?:what|which)\s+snapshots\s+(?:are\s+there|do\s+(?:i|we)\s+have|exist)"),
    (TAKING, "list_eggs", r"(?:list|show)(?:\s+me)?\s+(?:all\s+)?(?:the\s+|my\s+)?snapshots"),
    (TAKING, "inspect", r"how\s+far\s+is\s+(?:the|my)\s+(?:snapshot|restore)"),
    (TAKING, "inspect", rf"what\s+is\s+in\s+(?=the\s+(?:\w+\s+)?snapshot){_EGG}"),
    (TAKING, "inspect", rf"inspect\s+(?=the\s+(?:\w+\s+)?snapshot|snapshot){_EGG}"),
    (RESTORING, "plan", rf"plan\s+(?:the|a)\s+restore\s+of\s+{_EGG}{_SIMULATED}"),
    (RESTORING, "plan", rf"plan\s+to\s+restore\s+{_EGG}{_SIMULATED}"),
    (
        KEEPING,
        "archive_estate",
        rf"archive\s+(?:all\s+)?(?:the\s+|my\s+)?twins\s+of\s+(?:the\s+)?kind\s+(?P<kind>[\w-]{{1,60}})\s+(?:on|of)\s+{_MACHINES}",
    ),
    (
        KEEPING,
        "neighborhoods",
        r"(?:which|what)\s+neighbou?rhoods?\s+(?:(?:am\s+i|are\s+we|is\s+this\s+(?:machine|computer))\s+(?:in|part\s+of|a\s+member\s+of)"
        r"|do\s+(?:i|we)\s+(?:have|belong\s+to)|are\s+there)",
    ),
    (KEEPING, "neighborhoods", r"(?:list|show)(?:\s+me)?\s+(?:all\s+)?(?:the\s+|my\s+)?neighbou?rhoods"),
    (RESTORING, "hatch", rf"(?:restore|simulate\s+the\s+restore\s+of)\s+{_EGG}{_SIMULATED}"),
)
_FIRST = re.compile(
    rf"{_KINDLY}(?:take|make|create|snapshot|back|backup|copy|what|which|list|show|how|when|is|are|can|compare|schedule|inspect|plan|archive|restore|simulate)\b",
    re.IGNORECASE,
)


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Compiled when a sentence first opens like one: most never do."""
    return tuple(
        (agent, action, re.compile(rf"\s*{_KINDLY}(?:{pattern})\s*[.?!…]*\s*", re.IGNORECASE))
        for agent, action, pattern in _OF_ALL_MACHINES
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
