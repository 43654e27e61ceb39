"""Sentences that ask for something at a time, or about what was asked for: what is wanted, when, of which. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from agents.moments.errors import NoMomentError
from agents.moments.moments import Moment, moment_of
from agents.moments.repetitions import repeats
from agents.moments.time_pieces import Span, spans
from agents.moments.unread_words import check_beside, check_hour
from agents.moments.vocabulary import NUMBER, UNIT

Action = Literal["add", "list", "cancel", "move", "snooze", "pause", "resume", "quiet"]
LONGEST = 2000
"""Characters of a sentence."""
_LONGEST_TIME = 200

_POLITE = (
    r"(?:(?:please|bitte|hey|hi|ok|okay|and|und|also|so|now|(?:can|could|would|will) you(?: please)?|kannst du(?: bitte)?|"
    r"könntest du(?: bitte)?|i(?:'d| would) like you to|i want you to|don'?t forget to|you must)[\s,]+)*"
)
_SAID_OTHERWISE = tuple((re.compile(words, re.IGNORECASE), known) for words, known in (
    (r"i\s+(?:need|want|would\s+like)\s+to\s+be\s+reminded", "remind me"),
    (r"(?:don'?t|do\s+not|never)\s+let\s+me\s+forget", "remind me"),
    (r"(?:(?:kannst|könntest|würdest|willst)\s+du\s+)?mich\s+(?:bitte\s+)?(.+?)\s+erinnern\b", r"erinnere mich \1"),
    (r"erinnern\s+sie\s+(mich|uns)(?:\s+bitte)?", r"erinnere \1"),
    (rf"(?:an?\s+)?({NUMBER})[\s-]*({UNIT})\s+timer\b", r"set a timer for \1 \2"),
    (r"start\s+(a|an)\s+(timer|alarm)", r"set \1 \2"),
))  # fmt: skip
"""Other words for a reminder, and those that ``_REMIND`` knows."""
_TIME_FOLLOWS = r"(?=\s*(?:[:,]|for|in|at|to|um|auf|für|morgen|tomorrow|every|jede|\d))"
_REMIND = re.compile(
    rf"{_POLITE}(?:(?P<remind>remind\s+(?:me|us)|erinnere?\s+(?:mich|uns)|(?:set|add|create|make)\s+(?:me\s+)?(?:a\s+|an\s+|another\s+|new\s+)*(?:reminder|alarm|timer)\b"
    r"|(?:notify|ping|alert|nudge|buzz)\s+(?:me|us)(?=\s+(?:in|at|um|every|tomorrow|tonight|morgen)\b)"
    rf"|(?:new\s+)?(?:reminder|erinnerung|timer|wecker|alarm)\b{_TIME_FOLLOWS}|(?:stelle?|setze?)\s+(?:mir\s+)?(?:eine[nr]?)\s+(?:erinnerung|wecker|timer)"
    r"|(?:let|lass)\s+(?:me|mich)\s+know)"
    r"|(?P<wake>wake\s+(?:me|us)(?:\s+up)?|wecke?\s+(?:mich|uns)))(?P<rest>\b.*)",
    re.DOTALL,
)
_REMIND_OTHERS = re.compile(
    rf"{_POLITE}(?:remind|erinnere?)\s+(?!me\b|us\b|mich\b|uns\b)(?P<who>(?:(?:the|my|den|die|das|meine[nr]?)\s+)?[\w-]+)\s+"
    r"(?:[\w:,.]+\s+){0,6}?(?:to|about|of|that|an|daran|dass)\b",
    re.IGNORECASE,
)
_NAMED = r"(?:reminders?|timers?|alarms?|schedules?|erinnerung(?:en)?|wecker|zeitplan)"
_ASKED = r"(?:did\s+i\s+(?:ask|tell)\s+you|have\s+i\s+asked\s+you|should\s+you|are\s+you\s+going|will\s+you|do\s+you\s+have)"
_LIST = re.compile(
    rf"{_POLITE}(?:(?:what|which|of\s+what)\s+{_ASKED}\s+(?:to\s+)?(?:remind\b|do\s+(?:later|at|every|on)).*"
    rf"|(?:what|which)\s+(?:are\s+)?(?:all\s+)?(?:my|the)?\s*{_NAMED}\b.*"
    rf"|(?:list|show)(?:\s+me)?(?:\s+all)?(?:\s+(?:of\s+)?(?:my|the))?\s+{_NAMED}"
    rf"|do\s+i\s+have\s+(?:any\s+)?{_NAMED}.*|my\s+{_NAMED}"
    r"|(?:woran|an\s+was)\s+(?:sollst|wirst|solltest|willst)\s+du\s+(?:mich|uns)\s+erinnern.*"
    rf"|(?:welche|was\s+für)\s+{_NAMED}\b.*|(?:zeige?|liste)(?:\s+mir)?(?:\s+alle)?(?:\s+meine)?\s+{_NAMED}(?:\s+auf|\s+an)?|meine\s+{_NAMED})"
)
_ONE = r"(?:(?:the|my|that|this|die|den|das|meine[nr]?|diese[nr]?)\s+)?"
_WHICH = (
    rf"(?P<which>it|that|this|them\s+all|all(?:\s+of\s+(?:them|my\s+{_NAMED}))?|everything|sie|ihn|es|das|alle"
    rf"|{_ONE}(?:last|letzte[nr]?)?\s*(?:one|{_NAMED})?(?:\s*(?:about|of|for|to|with|an|über|für|mit|zu)\s+.+?)?|{_ONE}.+?\s+(?:one|{_NAMED}))"
)
_AGAIN = (
    r"(?:snooze|remind\s+me\s+(?:again|later)|later|schlummern?"
    r"|erinnere?\s+mich\s+(?:nochmals?|noch\s*(?:mal|einmal)|später|spaeter))"
)
_STOP = r"(?:stop\s+reminding\s+me|cancel|delete|remove|drop|stop|forget|lösche?|storniere?|streiche?|vergiss|entferne?)"
_SHIFT = r"(?:move|change|shift|postpone|reschedule|push|verschiebe?|verlege?|ändere?)"
_CHANGES: tuple[tuple[Action, re.Pattern[str]], ...] = (
    ("cancel", re.compile(rf"{_POLITE}{_STOP}\s+{_WHICH}")),
    ("cancel", re.compile(rf"{_POLITE}(?:sage?|breche?|bestelle?)\s+{_WHICH}\s+ab")),
    ("snooze", re.compile(rf"{_POLITE}{_AGAIN}(?:\s+(?:it|that))?(?P<when>\b.*)?")),
    (
        "move",
        re.compile(
            rf"{_POLITE}{_SHIFT}\s+{_WHICH}\s+(?:to|until|till|auf|nach|bis|(?=(?:by|um)\s))\s*(?P<when>.+)"
        ),
    ),
    ("pause", re.compile(rf"{_POLITE}(?:pause|pausiere?)\s+{_WHICH}")),
    ("resume", re.compile(rf"{_POLITE}(?:resume|continue|restart|setze?)\s+{_WHICH}(?:\s+(?:again|fort))?")),
)
_QUIET = re.compile(
    rf"{_POLITE}(?:(?:set\s+|my\s+|i\s+want\s+)*quiet\s+hours?|(?:do\s+not|don'?t)\s+disturb(?:\s+me)?(?=\s+(?:from|between))|(?:meine\s+)?ruhezeit(?:en)?|be\s+quiet|sei\s+(?:still|ruhig))\b(?P<when>.*)"
)
_HOURS = re.compile(
    r".*?\b(?:from|between|von|zwischen)?\s*(\d{1,2})(?:[:.](\d\d))?\s*(?:uhr|o'clock)?\s*([ap]m)?\s*(?:to|till|until|and|bis|und|-|–)\s*(\d{1,2})(?:[:.](\d\d))?\s*([ap]m)?.*"
)
_BARE = re.compile(
    rf"it|that|this|sie|ihn|es|das|(?:(?:the|my|die|den|das|meine[nr]?)\s+)?(?:last|letzte[nr]?)?\s*(?:one|{_NAMED})?"
)
_ALL = re.compile(
    rf"them\s+all|all(?:\s+of\s+(?:them|my\s+{_NAMED}))?|everything|alle|{_ONE}all\s+{_NAMED}"
    rf"|all\s+(?:my\s+|the\s+)?{_NAMED}|alle\s+(?:meine\s+)?{_NAMED}"
)
_ABOUT = re.compile(
    rf"{_ONE}(?:last\s+)?(?:one|{_NAMED})?\s*(?:about|of|for|to|with|an|über|für|mit|zu)\s+(?P<words>.+)|{_ONE}(?P<before>.+?)\s+(?:one|{_NAMED})"
)
_SAYS_SO = re.compile(
    rf"\b{_NAMED}\b|\b(?:the\s+)?one\s+(?:about|for|to|with)\b|\bone\s+(?:to|until|by)\s+\d|^{_POLITE}(?:snooze|remind|stop\s+remind|erinner|schlummer)"
)
_NO_ORDER = re.compile(
    r"(?:is|are|was|were|will|would|has|have|had|do|does|did|may|might|ist|sind|war|wird|hat|haben|i|we|he|she|they|it|the|my|a|an"
    r"|ich|wir|er|es|what|when|where|who|why|how|which|was|wann|wo|wer|warum|wie|there|there's|that|this)\b"
)
_ORDER = re.compile(
    r"(?:tell|ask|show|say|send|check|give|read|play|turn|take|run|write|call|list|make|start|stop|get|find|search|look|summari[sz]e|translate"
    r"|update|count|open|fetch|report|describe|let|let's|back|snapshot|print|post|roll|wake|water|remind|notify|warn|greet|do"
    r"|sage?|frage?|zeige?|erzähle?|prüfe?|schicke?|sende|lies|gib|mache?|nenne?|suche?|starte?|stoppe?|schreibe?|rufe?|hole?|spiele?|lass|melde?|schalte?|fasse?|übersetze?|würfle|wecke?|erinnere?)\b"
)
_JOINTS = re.compile(
    r"^(?:[\s,:;.–-]+|(?:then|dann|please|bitte|to|that|about|of|for|called|named|up|us|daran|davon|dass|immer|zu|an|ans|auf|für|and|und|me|mich)\b\s*)+"
)
_TAIL = re.compile(r"(?:[\s,;:.!?–-]+|\b(?:please|bitte|daran|um|at|on|am|auf|for|in)\b)+$")


class Wish(msgspec.Struct, frozen=True):
    """A sentence read. ``plainly``: no doubt that a timer is meant.

    ``what`` is to be done, ``asks`` where it is an order to perform, else something to be reminded of. ``which`` are words
    of the timer that is meant, "" for the one spoken of last, "*" for all. ``to`` are the words for where it is moved.
    ``quiet`` is "22:00-07:00", or "off".
    """

    action: Action
    what: str = ""
    asks: bool = False
    moment: Moment | None = None
    which: str = ""
    to: str = ""
    quiet: str = ""
    plainly: bool = True


def wish_of(text: str, now: datetime) -> Wish | None:
    """The wish that a sentence is; None for any other. ``now`` is the local time.

    Raises ``NoMomentError`` for one whose time is missing, over or none.
    """
    if len(text) > LONGEST:
        return None
    sentence = " ".join(text.replace("’", "'").split())
    polite = re.match(_POLITE, sentence, re.IGNORECASE)
    begins = polite.end() if polite else 0
    for pattern, known in _SAID_OTHERWISE:
        if (other := pattern.match(sentence, begins)) is not None:
            sentence = other.expand(known) + sentence[other.end() :]
    low = sentence.lower()
    if len(low) != len(sentence):  # a letter that grows in small: places would be others
        sentence = low
    bare = low.rstrip(" .!?…")
    if _LIST.fullmatch(bare):
        return Wish("list")
    if (hours := _QUIET.fullmatch(bare)) is not None:
        return Wish("quiet", quiet=_quiet_hours(hours["when"]))
    return _change(bare, now) or _reminder(sentence, low, now) or _order(sentence, low, now)


def when(text: str, now: datetime) -> Moment:
    """The time that ``text`` names and nothing else: words, or ``2026-12-05T09:00``. Raises ``NoMomentError``."""
    return moment_of(_joined(_times(text)), now)


def _times(text: str) -> list[Span]:
    low = " ".join(text.lower().split()).strip(" .!?")
    found = spans(low) or spans(f"in {low}") or spans(f"at {low}")
    if not found or len(low) > _LONGEST_TIME:
        raise NoMomentError(f"“{text[:80]}” is no time; nothing was set.")
    return found


def _change(bare: str, now: datetime) -> Wish | None:
    for action, pattern in _CHANGES:
        if (found := pattern.fullmatch(bare)) is None:
            continue
        groups = found.groupdict()
        plainly = _SAYS_SO.search(bare) is not None
        words = " ".join((groups.get("which") or "").split())
        which = "*" if _ALL.fullmatch(words) else "" if _BARE.fullmatch(words) else _words_of(words)
        if which is None:
            return None
        moment, to = None, ""
        if action in ("move", "snooze"):
            when = re.sub(r"^(?:for|auf)\s+", "", (groups.get("when") or "").strip())
            bare_time = _BY.sub("", when)
            to = next(
                (
                    one
                    for one in (when, f"at {when}" if action == "move" else f"in {bare_time}")
                    if spans(one)
                ),
                "",
            )
            if action == "move" and _BY.match(when) and spans(f"in {bare_time}"):
                to = when
            if not to and (when or action == "move"):
                continue
            moment = moment_of(_joined(spans(to)), now) if to and action == "snooze" else None
        if not plainly and which:
            continue  # "cancel the meeting with mum" is about something else
        return Wish(action, moment=moment, which=which, to=to, plainly=plainly)
    return None


_BY = re.compile(r"(?:by|um)\s+")


def moved(text: str, now: datetime, before: datetime) -> Moment:
    """The time that ``text`` names for a timer that was at ``before``: "ten" is on its day, in its half of the day.

    Raises ``NoMomentError``.
    """
    low = text.strip().lower()
    later = _BY.match(low)
    waits = spans(f"in {low[later.end() :]}") if later else []
    if waits and "wait" in waits[0].pieces:
        shifted = moment_of(_joined(waits), before)
        return Moment(at=shifted.at or before + timedelta(seconds=shifted.wait))
    pieces = _joined(_times(text))
    if pieces.keys() - {"clock", "part"}:
        return moment_of(pieces, now)
    start = before.replace(hour=12 if before.hour >= 12 else 0, minute=0, second=0, microsecond=0)
    found = moment_of(pieces, start - timedelta(seconds=1))
    at = found.at and datetime.combine(before.date(), found.at.time())
    if at is not None and at <= now:
        raise NoMomentError(f"{at:%d %B %Y, %H:%M} is over; nothing was changed.")
    return msgspec.structs.replace(found, at=at)


def _words_of(which: str) -> str | None:
    about = _ABOUT.fullmatch(which)
    return (about["words"] or about["before"]) if about is not None else None


def _reminder(sentence: str, low: str, now: datetime) -> Wish | None:
    found = _REMIND.match(low)
    if found is None:
        if other := _REMIND_OTHERS.match(sentence):
            raise NoMomentError(
                f"Only you are reminded here, not {other['who']}; nothing was set.",
                do=f"Say “remind me tomorrow at 9 to tell {other['who']}”.",
            )
        return None
    begins = found.start("rest")
    rest, shown = low[begins:], sentence[begins:]
    if re.match(r"\s+(?:what|who|where|why|how|which|was|wer|wo|warum|wie)\b", rest):
        return None  # asks for what is known
    word = _bare_time(rest)  # "set a timer for 10 minutes", "set an alarm for 7"
    if word:
        cut = _FOR.match(rest)
        place = cut.end() if cut else 0
        rest, shown = f"{word} {rest[place:]}", f"{word} {shown[place:]}"
    times = spans(rest)
    chosen = _chosen(rest, times)
    what = _without(shown, chosen)
    if not chosen:
        raise NoMomentError(
            f"When? {f'“{what[:60]}”' if what else 'This'} was not set: no time was understood in it."
        )
    check_beside(rest, times, chosen)
    moment = moment_of(_joined(chosen), now, wakes=bool(_WAKES.search(found[0][: begins + 8])))
    return Wish("add", what or ("wake up" if found["wake"] else "the time is up"), moment=moment)


def _order(sentence: str, low: str, now: datetime) -> Wish | None:
    """ "every weekday at seven tell me the weather", "in 20 minutes ask Rose how the garden is"."""
    start = re.compile(_POLITE).match(low)
    begins = start.end() if start else 0
    rest, shown = low[begins:], sentence[begins:]
    times = spans(rest)
    if not times:
        return None
    leading, within = times[0].start == 0, _is_within(rest, times[0])
    trailing = _is_last(rest, times[-1]) and repeats(times[-1].pieces) and _is_exact(times[-1])
    if not (leading or within or trailing):
        return None
    chosen = [times[0] if leading or within else times[-1]]
    what = _without(shown, chosen)
    words = what.lower()
    if len(words.split()) < 2 or _NO_ORDER.match(words) or low.rstrip().endswith("?"):
        return None
    if again := _REMIND.match(words):
        order = _without(what[again.start("rest") :], []) or what
        return Wish("add", order, moment=moment_of(chosen[0].pieces, now, wakes=bool(again["wake"])))
    if leading and not ({"repeat", "wait", "clock"} & times[0].pieces.keys()):
        return None  # "tomorrow is monday", "today I feel fine"
    check_hour(rest, chosen[0])
    plainly = _ORDER.match(words) is not None
    if not plainly and not _is_exact(chosen[0]):
        return None
    try:
        check_beside(rest, times, chosen)
        moment = moment_of(chosen[0].pieces, now)
    except NoMomentError:
        if plainly:
            raise
        return None  # "yesterday at 9 mum called"
    return Wish("add", what, asks=True, moment=moment, plainly=plainly)


_FOR = re.compile(r"\s*(?:(?:for|auf|von|of|über|:)\s+)?")


def _bare_time(rest: str) -> str:
    """The word that makes a time of a bare "10 minutes" or "for 7"; "" where none is needed."""
    remainder = rest[place.end() :] if (place := _FOR.match(rest)) else rest
    times = spans(f"in {remainder}")
    if times and times[0].start == 0 and "wait" in times[0].pieces:
        return "in"
    return "at" if re.match(r"\s*(?:for|auf)\s+\d", rest) and not spans(rest) else ""


_WAKES = re.compile(r"\b(?:wake|wecke?|alarm|wecker)\b")

_ASKS_SOMEBODY = re.compile(
    r"(?:ask|tell|give|show|send|frage?|sage?|zeige?|gib|schicke?|erzähle?)\s+(?!what|who|how|if|was|wer|wie|ob)[\w-]+\s+"
)


_ASKED_FOR = re.compile(r"\s+(?:the|a|an|my|what|how|die|das|den|der|was|wie|meine?)\b")
"""Words behind "tell me every day"; of "show me every day of the week" the days are what is asked for."""


def _is_within(rest: str, span: Span) -> bool:
    """True for "ask Rose in 20 minutes how the garden is": behind an order and its first word."""
    if _ASKS_SOMEBODY.fullmatch(rest, 0, span.start) is None:
        return False
    if {"wait", "clock", "part"} & span.pieces.keys() or "parted" in span.pieces.get("repeat", {}):
        return True
    return repeats(span.pieces) and _ASKED_FOR.match(rest, span.end) is not None


def _is_exact(span: Span) -> bool:
    return bool({"clock", "part"} & span.pieces.keys()) or bool(
        {"unit", "adverb", "parted", "some", "days"} & span.pieces.get("repeat", {}).keys()
    )


def _chosen(rest: str, times: list[Span]) -> list[Span]:
    """The times of a reminder: the one at its beginning, and the one at its end where that adds to it."""
    if not times:
        return []
    first = times[0] if not _JOINTS.sub("", rest[: times[0].start]).strip() else None
    last = times[-1] if _is_last(rest, times[-1]) else None
    if first is None:
        return [last] if last is not None else [times[0]] if len(times) == 1 else []
    if (
        last is not None
        and last is not first
        and not first.pieces.keys() & last.pieces.keys()
        and _adds(first, last)
    ):
        return [first, last]
    return [first]


def _adds(first: Span, last: Span) -> bool:
    return (
        ("wait" not in first.pieces or "clock" in last.pieces)
        and "wait" not in last.pieces
        and not ("clock" in first.pieces and "repeat" not in last.pieces)
    )


def _is_last(rest: str, span: Span) -> bool:
    return not _TAIL.sub("", rest[span.end :]).strip(" .!?")


def _joined(times: list[Span]) -> dict[str, dict[str, str]]:
    pieces: dict[str, dict[str, str]] = {}
    for one in times:
        for kind, piece in one.pieces.items():
            pieces.setdefault(kind, dict(piece))
    return pieces


def _without(shown: str, times: list[Span]) -> str:
    kept, place = "", 0
    for one in times:
        kept += shown[place : one.start].rstrip() + " "
        place = one.end
    kept = (kept + shown[place:]).strip()
    return " ".join(_TAIL.sub("", _JOINTS.sub("", kept)).split())


def _quiet_hours(words: str) -> str:
    if re.search(r"\b(?:off|aus|none|keine|no)\b", words):
        return "off"
    found = _HOURS.fullmatch(words)
    if found is None:
        return ""
    return "-".join(_of_day(*found.group(at, at + 1, at + 2)) for at in (1, 4))


def _of_day(hour: str, minute: str | None, half: str | None) -> str:
    number = int(hour)
    if half and 1 <= number <= 12:
        number = number % 12 + (12 if half == "pm" else 0)
    if number > 24 or int(minute or 0) > 59:
        raise NoMomentError(f"There is no {hour}:{minute or '00'}.", do="Say “quiet hours from 22 to 7”.")
    return f"{number % 24:02}:{int(minute or 0):02}"
