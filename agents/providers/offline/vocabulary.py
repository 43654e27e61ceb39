"""Closed lists that arguments are recognised by: languages, currencies, what action words stand for."""

from __future__ import annotations

from agents.providers.offline.tokens import word_set

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
