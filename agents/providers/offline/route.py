"""The decision: which agent a message asks for, and with which arguments; and sentences that need none."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from agents.contract.schema_check import fits
from agents.library import quick_answers_agent
from agents.providers.offline.arguments import Filled, fill
from agents.providers.offline.spoken_commands import (
    ASKING,
    DOING,
    REMEMBERING,
    addressed,
    neighborhood_deed,
    plain_order,
    remembered_fact,
    twin_deed,
)
from agents.providers.offline.tool_index import Evidence, Index, Mention, coverage, index_of
from agents.providers.offline.utterance import Utterance
from agents.providers.offline.vocabulary import FAINT_STEMS
from agents.providers.provider import Tool

Talk = Literal["help", "small", "negated", "statement", ""]

_POLITE = r"(?:please |ok(?:ay)? |hey |hi |hello |good (?:morning|afternoon|evening) |so |and |well |oh )*"
_END = r"[\s.!?…:)\-]*$"
_THINGS = r"(?:agents?|tools?|skills?|commands?|abilities|capabilities|features|functions)"
_HELP = re.compile(
    rf"{_POLITE}(?:"
    r"(?:/|\?)?help(?: me)?|\?+|/\?|menu|usage|commands"
    r"|what (?:can|could|do) you (?:do|help(?: me)? with|offer|know)(?: for me)?(?: exactly| all)?"
    r"|what (?:all )?are you (?:able to do|capable of|good at|for)"
    r"|what can i (?:ask|do|say)(?: you)?(?: here| now)?"
    r"|how (?:do|can) i use (?:you|this)|how does this work|how do you work|what now"
    r"|(?:who|what) are you|what is this"
    rf"|(?:list|show|print|name|display|tell me)(?: me)?(?: all)?(?: of)?(?: your| my| the| available| loaded| installed)* {_THINGS}"
    rf"|(?:what|which)(?: kinds? of| sorts? of)? {_THINGS}(?: do you| can you| are| have you| does| is| there)*(?: have| got| know| loaded| "
    r"available| installed| offer| use| run| there| here| you| got)*"
    rf"|what are (?:your|the|my) {_THINGS}|do you have (?:any )?{_THINGS}|{_THINGS}"
    rf"){_END}"
)
_SMALL = re.compile(
    rf"{_POLITE}(?:"
    r"(?:hi|hello|hey|hiya|howdy|yo|greetings|moin|hallo|hola|bonjour|ciao|servus|salut)(?: (?:there|you|all|everyone|again|friend|rappd))*"
    r"|good (?:morning|afternoon|evening|night|day)(?: (?:to you|all|everyone|there))?"
    r"|(?:many |no )?thanks?(?: you)?(?: (?:so|very) much| a lot| again)?|thx|ty|cheers(?: mate)?|danke(?: schön)?|merci|gracias"
    r"|thank you[^?]*|thanks[^?]{0,40}"
    r"|(?:how|how's|hows) (?:are|is|r) (?:you|u|it going|things|everything|life)(?: doing)?(?: today| now)?|how do you do|how's it going"
    r"|what(?:'s| is) up|sup|whats up|nice(?: to meet you)?|cool|great|awesome|perfect|wow|lol|haha+|hm+|ok(?:ay)?(?: cool| great| then| thanks)?"
    r"|(?:good)?bye(?: bye)?[^?]{0,30}|see you[^?]{0,20}|later|good job|well done|never ?mind|forget it|stop it|sorry|yes|no|nope|yep|sure|maybe"
    r"|i(?:'m| am) (?:fine|good|ok|okay|bored|tired|sad|happy|back|here|hungry)|are you (?:there|ok|okay|real|human|alive"
    r"|a (?:real )?(?:person|human|robot|bot|machine|ai))"
    r"|(?:i (?:love|like|hate) you|you(?:'re| are) [^?]{0,40}|do you (?:love|like|hate) me)"
    rf"){_END}"
)
_NEGATED = re.compile(
    rf"{_POLITE}(?:don'?t|do not|never|you (?:must|should) ?n[o']t|you (?:must|should) not|no need to|i don'?t want|i do not want"
    r"|i don'?t need|i do not need|please no|must not|should not)\s+(?!forget|let (?:me|us) forget|know|you (?:know|have|think|want))"
)
_TOLD = re.compile(
    r"(?:i|we|he|she|they|it|my|our|his|her|their|this|that|these|those|someone|everybody|everyone|nobody)(?:'\w+)?\s+"
    r"|you (?:have|had|are|were|look|seem|sound)\b|the (?:\w+ ){1,4}(?:is|are|was|were|has|had)\b"
)
_LORE = re.compile(
    r"(?:how (?:do|can|does|should|would|to|did)\b(?: (?:i|we|you|one|people))?|teach me|who (?!is there)\w+|why (?:do|does|did|should|would)"
    r"|what does \w+ mean|what (?:is|are|was|were) an? \w+(?: \w+)?\W*$)"
)
_ASKED = re.compile(
    r"\?|\b(?:want|wanna|need|would like|'d like|like to|looking for|wonder|please|should be|have to|must|remember|remind me"
    r"|searching for|trying to)\b"
)


_GREETING = re.compile(
    rf"{_POLITE}(?:hi|hello|hey|hiya|howdy|yo|greetings|moin|hallo|hola|bonjour|ciao|servus|salut"
    r"|good (?:morning|afternoon|evening|day))\b"
    rf"|(?:hey|hi|hello){_END}"
)
_HOW = re.compile(
    rf"{_POLITE}(?:(?:how|how's|hows)\b|what(?:'s| is) up|sup\b|whats up|are you (?:there|ok|okay|alive))"
)
_THANKS = re.compile(
    rf"{_POLITE}(?:(?:many )?thanks?\b|thx|ty\b|thank you|cheers|danke|merci|gracias|good job|well done)"
)
_FAREWELL = re.compile(rf"{_POLITE}(?:(?:good)?bye\b|see you|later\b|good night)")

Pleasantry = Literal["greeting", "how", "thanks", "farewell", ""]


def pleasantry(text: str) -> Pleasantry:
    """The kind of small talk that has an answer of its own; "" for any other."""
    plain = re.sub(r"\s*[,;]\s*", " ", _folded(text))
    kinds: tuple[tuple[Pleasantry, re.Pattern[str]], ...] = (
        ("thanks", _THANKS), ("farewell", _FAREWELL), ("how", _HOW), ("greeting", _GREETING),
    )  # fmt: skip
    return next((kind for kind, pattern in kinds if pattern.match(plain)), "")


def _folded(text: str) -> str:
    return " ".join(text[:300].strip("*_`~ ").casefold().replace("’", "'").split())


def kind_of(text: str) -> Talk:
    """``help`` (asks what there is), ``small`` (talk), ``negated`` (asks not to), ``statement`` (tells or wonders about something), or nothing."""
    plain = re.sub(r"\s*[,;]\s*", " ", _folded(text))
    if not re.search(r"\w", plain):
        return "help" if "?" in plain else "small"
    if _HELP.match(plain):
        return "help"
    if _SMALL.match(plain):
        return "small"
    if _NEGATED.match(plain):
        return "negated"
    if _LORE.match(plain) or (_TOLD.match(plain) and not _ASKED.search(plain)):
        return "statement"
    return ""


NOT_AT_ONCE = frozenset({"AskPeer", "Buddy", "HatchEgg", "NeighborhoodRun", "SwarmFactory"})
"""Shipped agents that need something a new home has not: another machine, a buddy, an egg, a workshop."""
SHIPPED_FIRST = (
    "QuickAnswers",
    "ManageMemory",
    "ContextMemory",
    "Timer",
    "HackerNews",
    "LearnNew",
    "Twin",
    "LayEgg",
    "NeighborhoodSnapshot",
    "Fleet",
)
"""The other shipped agents, those first that are of use to anybody."""
SHIPPED = NOT_AT_ONCE | frozenset(SHIPPED_FIRST)


def order_of(name: str) -> int:
    """The place of an agent where agents are listed: the owner's, shipped ones of use to anybody, the others."""
    if name in SHIPPED_FIRST:
        return 1 + SHIPPED_FIRST.index(name)
    return len(SHIPPED) if name in NOT_AT_ONCE else 0


TIMING = "Timer"
"""The agent; ``text`` is its parameter."""
_MAY_BE_TIMED = re.compile(
    r"\b(?:remind|erinner|reminder|timer|alarm|wake|weck|snooze|schlummer|quiet\s+hours|ruhezeit|in\s+\w+[\s-]+(?:\w+\s+)?(?:sec|min|hour|stund|sekund|tag|day|week|woch|month|monat)"
    r"|every|each|jede|alle\s+\w+|daily|hourly|weekly|monthly|täglich|stündlich|werktags|tomorrow|tonight|morgen|übermorgen|heute|today"
    r"|at\s+\w+|um\s+\w+|on\s+\w+|am\s+\w+|(?:forget|notify|ping|alert|nudge|buzz|postpone|reschedule|shift|push|change|ändere?|verlege?|cancel|move|verschiebe?|lösche?|storniere?|pause|resume)\b)",
    re.IGNORECASE,
)
"""Sentences without any of these words need not be read for a time."""
ANSWERING = "QuickAnswers"
"""The agent; ``question`` is its parameter."""


def is_quick_question(text: str) -> bool:
    """True when the shipped agent has an answer, or an explanation why there is none."""
    return quick_answers_agent.answer_to(text, datetime.now().astimezone()) is not None


Reason = Literal["call", "missing", "help", "talk", "negated", "unclear", "nothing"]

_THRESHOLD = 1.35
_TOLD_THRESHOLD = 4.0  # for sentences that tell rather than ask
_MARGIN = 0.04  # by which share the best agent must lead
_CANDIDATES = 6
_BASE = 0.2  # share of its evidence that an agent keeps when no other meaningful word speaks for it
_HOPELESS = 0.4  # share of the strongest evidence below which arguments cannot make up for the words
EXPLICIT = 10.0
"""The score of a decision that the sentence leaves no doubt about."""
_LONGEST_TEXT = 200_000


@dataclass(slots=True, frozen=True)
class Decision:
    """``tool`` is the agent meant, if any; call it only when ``missing`` is empty.

    ``reason`` says what to answer otherwise: ``missing`` arguments, ``help`` wanted, ``talk``, ``negated`` (asked not to),
    ``unclear`` between ``tools`` named in ``rivals``, or ``nothing`` fits.
    """

    tool: Tool | None
    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    score: float = 0.0
    reason: Reason = "nothing"
    rivals: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool's name, empty without one."""
        return str(self.tool["function"]["name"]) if self.tool is not None else ""

    @property
    def ready(self) -> bool:
        """True when the tool can be called as it is."""
        return self.tool is not None and not self.missing


def route(text: str, tools: Sequence[Tool], *, today: date | None = None) -> Decision:
    """Decide on ``text``.

    A machine that it is for by name wins, then an agent asked for by its exact name, then one whose
    description quotes the whole sentence, otherwise the best score above the threshold. ``today`` (the
    machine's date by default) is what "tomorrow" counts from. Never raises.
    """
    if "remember" in text.casefold():
        text = plain_order(text)
    utterance = Utterance(text[:_LONGEST_TEXT], today or date.today())
    index = index_of(tools)
    kind = kind_of(text)
    mentions = index.mentions(utterance)
    if kind == "negated":
        return Decision(None, reason="negated")
    timer = _of_a_timer(text, tools, index)
    if timer is not None and timer.score and _of_the_neighborhood(text, tools, index) is None:
        return timer  # "back up all machines every night" has a schedule of its own
    if timer is None and index.named(REMEMBERING) is not None and _wants_a_timer(text):
        # "stored" would be no reminder
        tools = [one for one in tools if one["function"]["name"] != REMEMBERING]
        index = index_of(tools)
        mentions = index.mentions(utterance)
    elsewhere = _for_a_machine(text, tools, index, mentions, only_tells=kind in ("statement", "small"))
    if elsewhere is not None:
        return elsewhere
    if mentions and mentions[0].explicit:
        profile = index.profiles[mentions[0].tool]
        filled = fill(profile, utterance) if profile.params else Filled()
        return _decision(tools, index, mentions[0].tool, filled, EXPLICIT)
    neighborhood = _of_the_neighborhood(text, tools, index)
    if neighborhood is not None and neighborhood.score:
        return neighborhood
    deed = _of_a_twin(text, tools, index)
    if deed is not None and deed.score:
        return deed
    kept = _to_remember(text, tools, index)
    if kept is not None and kept.score:
        return kept
    quoting = None if kind == "help" else index.quoted_by(text)
    if quoting is not None and timer is not None and index.profiles[quoting].name == TIMING:
        return timer
    if quoting is not None:
        return _decision(tools, index, quoting, fill(index.profiles[quoting], utterance), EXPLICIT)
    if kind in ("help", "small"):
        return Decision(None, reason="help" if kind == "help" else "talk")
    quick = _quick_question(text, tools, index)
    apart = (ANSWERING,) if timer is not None else (ANSWERING, TIMING)  # whose sentences were read above
    ranked = [one for one in _ranked(index, utterance, mentions) if index.profiles[one[1]].name not in apart]
    if not ranked or ranked[0][0] < (_TOLD_THRESHOLD if kind == "statement" else _THRESHOLD):
        nothing = Decision(None, score=ranked[0][0] if ranked else 0.0)
        return quick or kept or timer or deed or neighborhood or nothing
    if timer is not None and index.profiles[ranked[0][1]].name == TIMING:
        return timer
    if quick is not None and index.profiles[ranked[0][1]].name in SHIPPED:
        return quick  # an agent of the owner's comes before it, another shipped one does not
    score, number, filled = ranked[0]
    close = [other for other in ranked[1:] if other[0] > score * (1 - _MARGIN)]
    if close and bool(close[0][2].missing) == bool(filled.missing):
        names = tuple(index.profiles[one[1]].name for one in (ranked[0], *close))
        return Decision(None, score=score, reason="unclear", rivals=names)
    return _decision(tools, index, number, filled, score)


def _for_a_machine(
    text: str, tools: Sequence[Tool], index: Index, mentions: list[Mention], *, only_tells: bool
) -> Decision | None:
    """The question that goes to another machine because the sentence names it, whatever agents are here."""
    number = index.named(ASKING)
    if number is None or (mentions and mentions[0].explicit and mentions[0].tool == number):
        return None
    tool = tools[index.places[number]]
    found = addressed(text[:_LONGEST_TEXT], tool, only_tells=only_tells)
    if found is None or index.is_called(found.peer, text):
        return None
    if not found.text:
        return Decision(tool, {"peer": found.peer}, ["text"], EXPLICIT, "missing")
    arguments = {"peer": found.peer, "text": found.text}
    return _call(ASKING, arguments, True, tools, index)


def _of_a_twin(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a sentence that names a twin.

    Where the sentence does not say that it is about a twin, it has no score: it only counts when no other
    agent is meant.
    """
    deed = twin_deed(text)
    return _call(DOING, dict(deed.arguments), deed.plainly, tools, index) if deed is not None else None


def _of_a_timer(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a sentence that wants something at a time; without a score where it may be about something else."""
    plainly = _wants_a_timer(text) if index.named(TIMING) is not None else None
    return _call(TIMING, {"text": text}, plainly, tools, index) if plainly is not None else None


def _wants_a_timer(text: str) -> bool | None:
    """True for a sentence that plainly wants something at a time, False for one that may; None for any other."""
    if _MAY_BE_TIMED.search(text) is None:
        return None
    from agents.moments.errors import NoMomentError  # what most sentences need not load
    from agents.moments.wishes import wish_of

    try:
        wish = wish_of(text, datetime.now())
    except NoMomentError:
        return True  # the agent says what is wrong with it
    return wish.plainly if wish is not None else None


def _to_remember(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a sentence that asks to remember something; without a score where an agent for notes may be meant."""
    found = remembered_fact(text)
    return _call(REMEMBERING, *found, tools, index) if found is not None else None


def _quick_question(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a question about time, days, sums or units."""
    if index.named(ANSWERING) is None or not is_quick_question(text):
        return None
    return _call(ANSWERING, {"question": text}, True, tools, index)


def _of_the_neighborhood(text: str, tools: Sequence[Tool], index: Index) -> Decision | None:
    """Routes a sentence about snapshots of all machines; without a score where it may be about something else."""
    deed = neighborhood_deed(text)
    return _call(*deed, tools, index) if deed is not None else None


def _call(
    name: str, arguments: dict[str, Any], plainly: bool, tools: Sequence[Tool], index: Index
) -> Decision | None:
    """The call of a shipped agent, without a score unless the sentence is ``plainly`` for it.

    None where no agent of that name is here, or the one that is takes other arguments.
    """
    if (number := index.named(name)) is None:
        return None
    tool = tools[index.places[number]]
    fitting = fits(arguments, tool["function"].get("parameters"))
    return Decision(tool, arguments, [], EXPLICIT if plainly else 0.0, "call") if fitting else None


def _ranked(index: Index, utterance: Utterance, mentions: list[Mention]) -> list[tuple[float, int, Filled]]:
    evidence = index.evidence(utterance)
    for mention in mentions:
        named = evidence.setdefault(mention.tool, Evidence())
        named.score += 1.2 if mention.length > 1 else 0.8 if mention.start == 0 else 0.4
    likely = heapq.nlargest(_CANDIDATES, evidence, key=lambda number: evidence[number].score)
    least = max((found.score for found in evidence.values()), default=0.0) * _HOPELESS
    ranked = []
    for number in likely:
        if evidence[number].score < least:
            break
        profile = index.profiles[number]
        filled = fill(profile, utterance)
        own = {one for one in profile.name_stems if one not in FAINT_STEMS} or set(profile.name_stems)
        named_share = len(own & evidence[number].name_stems) / len(own) if own else 0.0
        if any(mention.tool == number for mention in mentions):
            named_share = 1.0
        spans = ((place.start, place.end) for place in filled.used)
        share = coverage(utterance, evidence[number], spans)
        score = evidence[number].score * (0.8 + 0.2 * named_share) * (_BASE + (1 - _BASE) * share)
        if filled.missing:
            score -= 0.25
        elif profile.required():
            score += 0.3
        ranked.append((score, number, filled))
    return sorted(ranked, key=lambda one: (-one[0], one[1]))


def _decision(tools: Sequence[Tool], index: Index, number: int, filled: Filled, score: float) -> Decision:
    tool = tools[index.places[number]]
    reason: Reason = "missing" if filled.missing else "call"
    return Decision(tool, filled.arguments, filled.missing, score, reason)
