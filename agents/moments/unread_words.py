"""Words beside a time that belong to it and are not understood: a reminder at another time is worse than none. Pure."""

from __future__ import annotations

import re

from agents.moments.errors import NoMomentError
from agents.moments.time_pieces import Span
from agents.moments.vocabulary import HOURS, NUMBER, UNIT, WEEKDAY, any_of

_AND = r"(?:,|and|und|&|or|oder)"
_CLOCK_LIKE = rf"(?:\d|{any_of(HOURS)}\b)"
_BEFORE = re.compile(
    rf"(?:(?P<two>(?:\d\s*(?:[ap]\.?m\.?)?|\b{any_of(HOURS)})\s*{_AND}\s*)"
    r"|\b(?P<word>in|(?:at|um)\s+\d+|(?:every|each|jede[nrsm]?|alle)(?:\s+\w+)?|before|after|until|till|except|between|from|not|vor|nach|bis|außer"
    r"|zwischen|von|nicht)\s*)$"
)
_BEHIND = re.compile(
    rf"\s*(?:(?P<two>{_AND}\s*(?:at\s+|um\s+)?{_CLOCK_LIKE})|(?P<word>before|except|außer|but\s+(?:not\s+)?(?:on\s+)?{WEEKDAY}|and\s+a\s+half|from\b|until|till|bis|only|nur|-|–|for\s+{NUMBER}\s*{UNIT}\b"
    rf"|(?:from|between|zwischen|von|starting|ab|after|vor|nach|to)\s+(?:at\s+)?(?={_CLOCK_LIKE}|next\b|the\b)))"
)
_ZONES = ("est", "edt", "cst", "cdt", "mst", "mdt", "pst", "pdt", "gmt", "bst", "cet", "cest", "eet", "jst", "ist", "mez", "mesz")  # fmt: skip
_BEHIND_IT = re.compile(
    rf"\s*(?P<word>[a-z]+\s+time\b|{any_of(_ZONES)}\b|(?:\d+\s*)?{UNIT}\b)(?=.*\b(?:to|about|that|an|daran|dass)\b)"
)
_TIME_WORDS = re.compile(rf"\b(?P<word>{WEEKDAY}s?|weekends?|daily|weekly|monthly|once|twice|every|each)\b")
_JOINT = re.compile(r"\b(?:to|about|that|of|an|ans|daran|dass)\b|[:,]")
_ODD_HOUR = re.compile(r"\s*(?:at|um)\s+(\d{2,}(?:[:.]\d+)?)\b")


def check_beside(rest: str, times: list[Span], chosen: list[Span]) -> None:
    """Raises ``NoMomentError`` where words beside a time that was chosen belong to it and are not understood."""
    for one in chosen:
        before, behind = _BEFORE.search(rest, 0, one.start), _BEHIND.match(rest, one.end)
        check_hour(rest, one)
        if any(
            re.fullmatch(rf"\s*{_AND}?\s*", rest[min(one.end, other.end) : max(one.start, other.start)])
            for other in times
            if other not in chosen
        ) or any(found is not None and found["two"] for found in (before, behind)):
            raise NoMomentError("Two times at once; nothing was set.", do="Say one for each.")
        leads = None if _JOINT.search(rest, 0, one.start) else _TIME_WORDS.search(rest, 0, one.start)
        within = _BEHIND_IT.match(rest, one.end)
        for found in (before, behind, leads, within):
            if found is not None and found["word"]:
                raise NoMomentError(
                    f"“{found['word'].strip()}” beside a time is not understood; nothing was set."
                )


def check_hour(rest: str, span: Span) -> None:
    """Raises ``NoMomentError`` where an hour that there is not stands behind a time."""
    if odd := _ODD_HOUR.match(rest, span.end):
        raise NoMomentError(f"There is no {odd[1]} o'clock; nothing was set.")
