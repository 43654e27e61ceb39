"""Sentences that need no agent: greetings, thanks, questions about the brain itself, orders not to do something."""

from __future__ import annotations

import re
from typing import Literal

Talk = Literal["help", "small", "negated", "told", ""]

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
    r"|i don'?t need|i do not need|please no|must not|should not)\s+(?!forget|know|you (?:know|have|think|want))"
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
    """``help`` (asks what there is), ``small`` (talk), ``negated`` (asks not to), ``told`` (tells or wonders about something), or nothing."""
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
        return "told"
    return ""
