"""A sentence about all machines: "snapshot my machines", "restore home as a simulation"."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

TAKING, RESTORING, KEEPING = "NeighborhoodSnapshot", "NeighborhoodRun", "Fleet"
"""The agents; ``action``, ``name``, ``egg_path``, ``target``, ``filter`` and ``confirm`` are their parameters."""

_LONGEST = 1000
_POLITE = r"(?:(?:please|hey|hi|ok|okay|now|then|(?:can|could|would|will) you(?: please)?)[\s,]+)*"
_YES = re.compile(r"\s*yes[\s,.!:]+", re.IGNORECASE)
_ALL = r"(?:(?:all|of|all of|every one of)\s+)*(?:my|the|our|these)?\s*"
_MACHINES = rf"(?:{_ALL}(?:machines|computers|neighbou?rhood|fleet)|everything)"
_NAME = r'(?:\s+(?:called|named)\s+(?P<name>"[^"]{1,120}"|[\w.-]*[\w-]))?'
_EGG = r'(?:(?:the\s+)?(?:(?:last|latest|newest)\s+)?(?:snapshot|egg)\b\s*)?(?:(?:called|named)\s+)?(?P<egg>"[^"]{1,200}"|[\w./~-]*[\w-])?'
_SIMULATED = r"(?P<simulated>\s+(?:as\s+a\s+simulation|in\s+(?:a\s+)?simulation|simulated|locally))?"
_TIMES = r"(?:every|each|daily|weekly|nightly|hourly|on\s+\w+days?|at\s+\d|at\s+(?:night|noon|midnight))\b.*"
_DEEDS: tuple[tuple[str, str, str], ...] = (
    (TAKING, "snapshot", rf"(?:take|make|create)\s+a\s+(?:new\s+)?snapshot(?:\s+of\s+{_MACHINES})?{_NAME}"),
    (
        TAKING,
        "snapshot",
        rf"(?:snapshot|back\s*up|copy)\s+{_MACHINES}(?:\s+into\s+(?:one|a)\s+(?:file|egg))?{_NAME}",
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
    rf"{_POLITE}(?:take|make|create|snapshot|back|backup|copy|what|which|list|show|how|when|is|are|can|compare|schedule|inspect|plan|archive|restore|simulate)\b",
    re.IGNORECASE,
)


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """Compiled when a sentence first opens like one: most never do."""
    return tuple(
        (agent, action, re.compile(rf"\s*{_POLITE}(?:{pattern})\s*[.?!…]*\s*", re.IGNORECASE))
        for agent, action, pattern in _DEEDS
    )


def neighborhood_deed(text: str) -> tuple[str, dict[str, Any], bool] | None:
    """The agent, its arguments, and False where the sentence may be about something else; None where it is.

    "yes, restore home" is the yes to the plan that was shown. "restore third" may be about a snapshot of that name.
    """
    if len(text) > _LONGEST:
        return None
    yes = _YES.match(text)
    asked = text[yes.end() :] if yes else text
    if _FIRST.match(asked.lstrip()) is None:
        return None
    for agent, action, pattern in _patterns():
        if (found := pattern.fullmatch(asked)) is None:
            continue
        said = found.groupdict()
        arguments: dict[str, Any] = {"action": action}
        if egg := (said.get("egg") or "").strip('"'):
            arguments["egg_path"] = egg
        if name := (said.get("name") or "").strip('"'):
            arguments["name"] = name
        if kind := said.get("kind"):
            arguments["filter"] = {"kind": kind}
        if said.get("simulated") or asked.lstrip().casefold().startswith("simulate"):
            arguments["target"] = "local-simulate"
        if yes and action in ("hatch", "archive_estate"):
            arguments["confirm"] = True
        plainly = action != "hatch" or _is_plain(asked, arguments, yes=yes is not None)
        return (agent, arguments, plainly) if plainly or egg else None
    return None


def _is_plain(asked: str, arguments: dict[str, Any], *, yes: bool) -> bool:
    """True when a sentence with "restore" is about a snapshot: much else is restored."""
    said = yes or "target" in arguments or re.search(r"\b(?:snapshot|egg)\b", asked, re.IGNORECASE)
    return bool(said) or re.search(r"[\d/.-]", arguments.get("egg_path", "")) is not None
