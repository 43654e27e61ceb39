"""Words that mean little, stems, and closed lists that arguments are recognised by: languages, currencies, what action words stand for."""

from __future__ import annotations

import re
from functools import lru_cache


def word_set(listed: str) -> frozenset[str]:
    """The words of ``listed``, which are parted by blanks."""
    return frozenset(listed.split())


STOP = word_set("""a about above after again all also am an and any anybody anyone anything are as at back be because been
    before being but by can cannot could couldnt did do does doesnt doing dont down each either else ever every
    for from get gets getting give gives go goes going gonna got had has hasnt have havent he hello her here
    hers hey hi him his how i id if ill im in into is isnt it its itself ive just kindly know let lets like
    long me mine much many more most my need not now of off ok okay on one only onto or other our out over own
    please really right say says shall she should so some something such sure tell tells telling told than thank thanks
    that thats the their them then there these they thing things this those to today tomorrow too u um up us very
    via wanna want was wasnt we well were what whats when where which while who whom whose why will wish with
    without wont would x yeah yes yesterday yet you your yours""")
"""Words that are no evidence for any agent."""

FAINT = word_set("""able access action actions agent agents allow answer app application ask assistant automatic base based
    big call called check choose code content create current data day days default describe description detail
    details different do entire example existing feature few file find first fix format function general
    generate good great handle hand help helper helps home house include info information input item items
    keep kind last latest learn leave line list load lookup look maker make manage manager many message mode month
    move name named new next number object old open operation optional option output parameter people
    perform person place point provide provides put query question quick read real request response
    result return returns run save search send service set several short show simple skill small specific
    start state status step stop string support system take text time title tool topic turn type use used useful
    user using value various view way week whenever win work world write year""")
"""Words that many agents share or that people say about anything: weak evidence."""

VAGUE = STOP - word_set("hello hi hey thanks thank yes no") | word_set(
    "stuff someone somebody somewhere whatever another same new nothing none"
)
"""Words that say nothing by themselves as an argument."""

_KEEP_S = word_set("news gas bus alias canvas always perhaps series species always lens chess")
_ENDINGS = tuple(
    (ending, least)
    for least, endings in (
        (3, "yses ysis yzing yzers yzer yzed yzes yze yse"),
        (
            4,
            "izations isations ations ization isation ation izing ising izers isers izer iser ized ised izes ises",
        ),
        (4, "ating ators ator ated ates ments ment ions ion ers ors ate ize ise er or"),
        (3, "ings ing ed"),
        (2, "s e y"),
    )
    for ending in endings.split()
)
"""Endings that go, and how many letters they must leave; the first that fits is taken."""
_VOWEL = re.compile(r"[aeiouy]")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A light stem: plural, tense and the commonest derivations go; short words stay whole."""
    if not 3 <= len(word) <= 30 or not word.isascii() or word in _KEEP_S:
        return word
    if word.endswith("ies") and len(word) > 4:
        return stem(word[:-3] + "y")
    for ending, least in _ENDINGS:
        if not word.endswith(ending):
            continue
        left = word[: -len(ending)]
        if len(left) < least or not _VOWEL.search(left):
            continue
        if ending == "s":
            return word if left[-1] in "sui" else stem(left)
        if ending == "y" and left[-1] in "aeiou":
            continue
        if least > 2 and len(left) > 3 and left[-1] == left[-2] and left[-1] not in "aeiouls":
            return left[:-1]
        return left
    return word


FAINT_STEMS = frozenset(stem(word) for word in FAINT)
STOP_STEMS = frozenset(stem(word) for word in STOP)


LANGUAGES = {
    "arabic": "ar", "bengali": "bn", "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "croatian": "hr",
    "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "estonian": "et", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu",
    "icelandic": "is", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja", "korean": "ko",
    "latin": "la", "latvian": "lv", "lithuanian": "lt", "mandarin": "zh", "norwegian": "no", "persian": "fa",
    "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "serbian": "sr", "slovak": "sk",
    "slovenian": "sl", "spanish": "es", "swahili": "sw", "swedish": "sv", "thai": "th", "turkish": "tr",
    "ukrainian": "uk", "urdu": "ur", "vietnamese": "vi", "welsh": "cy",
}  # fmt: skip
"""Languages by their English name, with ISO 639-1 codes."""

CURRENCIES = {
    "euro": "EUR", "euros": "EUR", "€": "EUR", "dollar": "USD", "dollars": "USD", "$": "USD", "bucks": "USD",
    "pound": "GBP", "pounds": "GBP", "sterling": "GBP", "£": "GBP", "yen": "JPY", "¥": "JPY", "franc": "CHF",
    "francs": "CHF", "rupee": "INR", "rupees": "INR", "₹": "INR", "yuan": "CNY", "won": "KRW", "₩": "KRW",
    "zloty": "PLN", "peso": "MXN", "pesos": "MXN", "lira": "TRY", "ruble": "RUB", "rubles": "RUB", "bitcoin": "BTC",
    **{
        code.lower(): code
        for code in word_set(
            "AED AUD BRL BTC CAD CHF CNY CZK DKK ETH EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NOK NZD PHP "
            "PLN RON RUB SEK SGD THB TRY TWD UAH USD ZAR"
        )
    },
}  # fmt: skip
"""ISO 4217 codes by what people write."""

MINUTES = {
    "s": 1 / 60, "sec": 1 / 60, "secs": 1 / 60, "second": 1 / 60, "seconds": 1 / 60, "m": 1, "min": 1, "mins": 1,
    "minute": 1, "minutes": 1, "h": 60, "hr": 60, "hrs": 60, "hour": 60, "hours": 60, "d": 1440, "day": 1440,
    "days": 1440, "week": 10_080, "weeks": 10_080,
}  # fmt: skip
"""Lengths of time, in minutes."""

CHOICE_WORDS = {
    "list": "show view see display what which whats read all overview get",
    "show": "list view see display what which whats read",
    "get": "show list view see what which read fetch",
    "view": "show list see what read",
    "read": "show list see what open",
    "search": "find look lookup query",
    "find": "search look lookup",
    "add": "put create new insert append",
    "create": "add new make put book set schedule open",
    "new": "add create make",
    "save": "note remember store write take put add keep",
    "store": "save remember keep put",
    "write": "save note put",
    "log": "did record track",
    "set": "change make put",
    "update": "change edit modify rename set",
    "edit": "change update modify",
    "delete": "remove erase drop forget",
    "remove": "delete erase drop forget",
    "cancel": "delete remove drop",
    "clear": "empty reset delete",
    "done": "complete completed finish finished tick did",
    "complete": "done finish finished tick",
    "finish": "done complete completed",
    "start": "begin launch play run",
    "stop": "end halt quit silence",
    "pause": "hold",
    "resume": "continue unpause",
    "next": "skip",
    "previous": "back last",
    "move": "drag shift put",
    "production": "prod live",
    "staging": "stage",
    "dev": "development",
    "on": "enable",
    "off": "disable",
    "celsius": "centigrade",
    "high": "urgent important",
    "preference": "prefer like love hate favourite favorite dislike enjoy",
    "feed": "eat food snack",
    "pet": "stroke cuddle",
    "task": "todo must need should",
    "insight": "learned realised realized noticed turns",
    "fact": "is are was were has have am were called lives works",
}
"""Values of choices, and the words that stand for them when none is named."""

BOTH_WAYS = frozenset(("on", "off"))
"""Values that are also everyday prepositions: they count only where they switch something."""
