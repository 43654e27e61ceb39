"""Pieces of a time within a sentence: a day, a clock time, a part of the day, a wait, a repetition. Pure.

dateparser 1.5 was tried in place of this: it takes "me" of "remind me" for a date, knows neither "at seven", "half past
four" nor "halb acht", has no repetitions, and reads six sentences in two seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agents.moments.vocabulary import (
    DAY_OF,
    HOLIDAYS,
    HOURS,
    MINUTES,
    MONTH,
    NEVER_CONTENT,
    NUMBER,
    ORDINALS,
    PARTS,
    UNIT,
    UNKNOWN_DAYS,
    WEEKDAY,
    any_of,
)


class Span(NamedTuple):
    """A time's place in a sentence, and its pieces: kind to what was said."""

    start: int
    end: int
    pieces: Mapping[str, Mapping[str, str]]


_HOUR = rf"(?P<hour>[01]?\d|2[0-4]|{any_of(HOURS)})"
_SPECIAL = (
    r"half\s+past|halb|drei\s+viertel|(?:a\s+)?quarter\s+(?:past|to)|viertel\s+(?:nach|vor)|dreiviertel"
)
_OCLOCK = r"(?:\s*(?:uhr|o'clock)\b)?"
_AMPM = r"(?:\s*(?P<ampm>[ap]\.?m\b\.?))"
_DAYS = rf"{WEEKDAY}s?(?:(?:\s*,\s*|\s+(?:and|und|&|or|oder)\s+)(?:on\s+)?{WEEKDAY}s?)*"
_PART = any_of(part for part in PARTS if part != "tonight")
_EACH_DAYS = [f"{name}s" for name in DAY_OF if name.endswith(("day", "tag", "abend"))]
_EVERY = r"(?:every|each|jede[nrsm]?|alle)"
_NTH = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th|\.)?"
_ORDINAL = any_of(ORDINALS)
_OF_MONTH = r"(?:of|in|im|des|jedes|eines\s+jeden)\s+(?:(?:the|each|every|a|any|jedem|jedes)\s+)?(?:month|monate?s?)\b"
_MONTHS_END = (
    r"(?:(?:last\s+day|letzten\s+tag|end|ende)\s+(?:of|des)\s+(?:the\s+|this\s+)?(?:month|monats)|monatsende)"
)
_WAIT = rf"(?:in|within|after|nach)\s+(?P<count>{NUMBER})\s*(?P<unit>{UNIT})"
_TIMES_A = rf"(?:once|twice|thrice|{NUMBER}\s+times|\w+mal)\s+(?:a|an|per|every|each|am|pro|in\s+der|im|die)"
_NEXT_HALF = r"(?:\b|(?=[ap]\.?m))"
_WHOSE = r"(?:(?:my|our|the|her|his|mein\w*|dem|der)\s+)?(?:\w+'s\s+)?"
_OR_ORDINAL = rf"(?:{_NTH.format('nth')}|(?P<ordinal>{_ORDINAL}))"
_PIECES: tuple[tuple[str, str], ...] = (
    ("repeat", rf"(?:(?:on|am|an)\s+)?(?:the\s+)?(?:{_EVERY}\s+)?(?P<ordinal>{_ORDINAL})\s+(?P<nthday>{WEEKDAY})\s+{_OF_MONTH}"),
    ("repeat", rf"{_EVERY}\s+(?P<alternate>other|second|2nd|zweite[nrs]?|2\.)\s+(?P<days>{WEEKDAY})s?\b"),
    ("repeat", rf"{_EVERY}\s+(?P<ordinal>{_ORDINAL}|\d+(?:st|nd|rd|th|\.))\s+(?P<vague>{WEEKDAY})s?\b"),
    ("repeat", rf"(?P<count>once|einmal)\s+(?:a|an|per|every|each|am|pro|in\s+der|die)\s+(?P<unit>{UNIT})\b"),
    ("often", rf"(?P<often>{_TIMES_A}\s+{UNIT}|\w+mal\s+täglich)\b"),
    ("monthday", rf"(?P<each>{_EVERY})\s+{_OR_ORDINAL}(?:\s+day|\s+tag)?\s+{_OF_MONTH}"),
    ("monthday", rf"(?P<each>{_EVERY})\s+(?P<nth>\d{{1,2}})(?:st|nd|rd|th|\.)(?=\W|$)"),
    ("repeat", rf"{_EVERY}\s+(?:(?P<count>{NUMBER})\s+|(?P<other>other|second|zweiten?)\s+)?(?P<unit>{UNIT})\b"),
    ("repeat", rf"{_EVERY}\s+(?P<some>weekdays?|work(?:ing)?\s?days?|werktage?|arbeitstage?|weekends?|wochenenden?)\b"),
    ("repeat", r"(?P<some>(?:on\s+)?weekdays|(?:on\s+)?workdays|werktags|an\s+werktagen|(?:on|at)\s+weekends|am\s+wochenende\b(?=.*\bimmer\b))"),
    ("repeat", rf"{_EVERY}\s+(?P<days>{_DAYS})\b"),
    ("repeat", rf"{_EVERY}\s+(?P<parted>{_PART})\b"),
    ("repeat", rf"(?:on\s+)?(?P<days>(?:{any_of(_EACH_DAYS)})(?:(?:\s*,\s*|\s+(?:and|und)\s+){WEEKDAY}s)*)\b"),
    ("repeat", r"(?P<adverb>daily|hourly|weekly|monthly|yearly|täglich|stündlich|wöchentlich|monatlich|jährlich|jahrlich)\b"),
    ("monthday", rf"(?:on|am)\s+(?:the\s+)?{_OR_ORDINAL}\s+(?:of\s+)?(?P<each>every|each|jedes|eines\s+jeden|im)\s+(?:month|monats?)\b"),
    ("monthday", r"(?:on|am)\s+(?:the\s+)?(?:last\s+day|letzten(?:\s+tag)?)\s+(?:of\s+)?(?P<each>every|each|jedes)\s+(?:month|monats)\b"),
    ("monthday", rf"(?P<last>(?:(?:on|am|at)\s+)?(?:the\s+)?{_MONTHS_END})\b"),
    ("monthday", r"(?:on|am)\s+(?:the\s+)?(?P<last>last\s+day|letzten(?:\s+tag)?)(?=\W|$)"),
    ("wait", r"(?:in|within|after)\s+(?P<count>\d+)\s*(?P<unit>[hms])(?:\s*(?P<count2>\d+)\s*(?P<unit2>[ms])?)?\b"),
    ("wait", rf"{_WAIT}\b(?:\s*,?\s*(?:(?:and|und)\s+)?(?P<count2>{NUMBER})\s*(?P<unit2>{UNIT})\b)?(?:\s+from\s+now\b)?"),
    ("wait", r"(?:in|within|after)\s+(?P<hourhalf>an\s+hour\s+and\s+a\s+half)\b"),
    ("wait", rf"(?P<count>{NUMBER})\s*(?P<unit>{UNIT})\s+from\s+now\b"),
    ("date", r"(?:on\s+|am\s+)?(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?:t(?=\d))?"),
    ("date", r"(?:on\s+(?:the\s+)?|am\s+|den\s+)?(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?:\s?(?P<year>20\d\d))?(?!\d)"),
    ("date", rf"(?:on\s+)?(?:the\s+|am\s+|den\s+)?{_NTH.format('day')}\s+(?:of\s+)?(?P<name>{MONTH})\b\.?(?:,?\s+(?P<year>20\d\d)\b)?"),
    ("date", rf"(?:on\s+)?(?P<name>{MONTH})\s+(?:the\s+)?{_NTH.format('day')}\b(?:,?\s+(?P<year>20\d\d)\b)?"),
    ("monthday", r"(?:on\s+the|am)\s+(?P<nth>\d{1,2})(?:st|nd|rd|th|\.)(?=\W|$)"),
    ("date", r"(?:on|am)\s+(?P<one>\d{1,2})/(?P<two>\d{1,2})(?:/(?P<year>20\d\d))?(?![\d/])"),
    ("date", rf"(?:(?:on|at|an|zu)\s+)(?P<holiday>{any_of(HOLIDAYS)})\b"),
    ("date", rf"(?P<holiday>{any_of(NEVER_CONTENT)})\b"),
    ("unknown", rf"(?:on|at|by|an|zu|bei|beim|before|vor|after|nach)\s+{_WHOSE}(?P<unknown>{any_of(UNKNOWN_DAYS)})\b"),
    ("relative", rf"(?P<word>(?:the\s+)?day\s+after\s+tomorrow|übermorgen|uebermorgen|tomorrow|today|heute|morgen)(?:\s+(?P<part>{_PART}))?\b"),
    ("relative", r"(?P<word>(?:the\s+day\s+before\s+)?yesterday|(?:vor)?gestern|last\s+(?:week|month|night|year))\b"),
    ("relative", r"(?P<word>next|nächste)\s+(?P<span>week|woche|month|monat|year|jahr)\b"),
    ("weekday", r"(?P<weekend>(?:at|on|over)\s+the\s+weekend|this\s+weekend|am\s+(?:kommenden\s+)?wochenende)\b"),
    ("weekday", rf"(?:(?:on|am|this|diesen|kommenden|coming|next|nächsten|naechsten)\s+)+(?P<name>{WEEKDAY})(?:\s*(?P<part>{_PART}))?\b"),
    ("weekday", rf"(?P<name>{any_of(name for name in DAY_OF if len(name) > 5)})(?:\s*(?P<part>{_PART}))?\b"),
    ("clock", rf"(?:at\s+|um\s+)?(?P<special>{_SPECIAL})\s+{_HOUR}\b{_AMPM}?(?:\s+uhr\b)?"),
    ("clock", rf"(?:at\s+|um\s+)?(?P<minutes>{NUMBER})\s+(?:minutes\s+|minuten\s+)?(?P<way>past|to|nach|vor)\s+{_HOUR}\b{_AMPM}?(?:\s+uhr\b)?"),
    ("clock", rf"(?:at|um|by|gegen)\s+(?P<hour>{any_of(HOURS)})(?:\s+uhr)?\s+(?P<minuteword>{any_of(MINUTES)})\b{_AMPM}?"),
    ("clock", rf"(?:at\s+|um\s+|gegen\s+|by\s+|@\s*)?(?P<hour>[01]?\d|2[0-4])[:.h](?P<minute>[0-5]\d)(?::[0-5]\d)?(?!\d){_AMPM}?{_OCLOCK}"),
    ("clock", rf"(?:at\s+|um\s+|gegen\s+|by\s+|@\s*){_HOUR}(?!\d|:\d){_NEXT_HALF}{_AMPM}?(?:\s*(?:uhr|o'clock)\b(?:\s+(?P<minute>[0-5]\d)\b)?)?"),
    ("clock", r"(?:at|um)\s+(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)\b(?:\s+(?:hours|uhr)\b)?"),
    ("clock", rf"{_HOUR}(?!\d|:\d)\s*(?:{_AMPM}|(?:uhr|o'clock)\b(?:\s+(?P<minute>[0-5]\d)\b)?)"),
    ("clock", r"(?:at\s+|um\s+)?(?P<named>midnight|mitternacht|noon|midday)\b"),
    ("part", rf"(?:(?:in\s+the|at|am|in\s+der|this|heute)\s+)?(?P<part>tonight|{_PART})\b"),
    ("zone", r"(?P<zone>(?:africa|america|antarctica|asia|atlantic|australia|europe|indian|pacific)/[a-z_]+(?:/[a-z_]+)?|utc)(?:\s+time)?\b"),
)  # fmt: skip
_FIRST_OF = re.compile(r"[\w@]")
_BETWEEN = re.compile(r"\s*,?\s*(?:(?:at|on|um|am|starting|ab|immer)\s+)?")
_compiled: list[tuple[str, re.Pattern[str]]] = []


def spans(text: str) -> list[Span]:
    """The times in a sentence, in their order; ``text`` is in small letters."""
    if not _compiled:  # with the first sentence that may have one: most have none
        _compiled.extend((kind, re.compile(pattern)) for kind, pattern in _PIECES)
    found: list[Span] = []
    place = 0
    for start, end, kind, values in _pieces(text):
        if found and kind not in found[-1].pieces and _BETWEEN.fullmatch(text, place, start):
            last = found.pop()
            found.append(Span(last.start, end, {**last.pieces, kind: values}))
        else:
            found.append(Span(start, end, {kind: values}))
        place = end
    return [one for one in found if one.pieces.keys() - {"zone"}]


def _pieces(text: str) -> Iterator[tuple[int, int, str, dict[str, str]]]:
    place = 0
    while (start := _FIRST_OF.search(text, place)) is not None:
        place = start.start()
        if place and (text[place - 1].isalnum() or text[place - 1] in "_-"):
            place += 1
            continue
        for kind, pattern in _compiled:
            if match := pattern.match(text, place):
                values = {key: value for key, value in match.groupdict().items() if value}
                yield place, match.end(), kind, values
                place = match.end()
                break
        else:
            place += 1
