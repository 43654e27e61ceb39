"""Words and what they mean to keyword matching: stems, words that mean little, synonyms, and lists that arguments are known by."""

from __future__ import annotations

import re
from dataclasses import dataclass
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


@dataclass(slots=True, frozen=True)
class Word:
    """A word of a text: ``text`` folded to lower case, ``start``/``end`` its place in the original."""

    text: str
    stem: str
    start: int
    end: int


_NAME_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+|[^\W\da-zA-Z_]+")


@lru_cache(maxsize=8_192)
def name_words(name: str) -> tuple[str, ...]:
    """``HackerNews``, ``hacker_news`` and ``hacker-news`` all give ``("hacker", "news")``."""
    return tuple(part.casefold() for part in _NAME_PART.findall(name))


@lru_cache(maxsize=8_192)
def compact(name: str) -> str:
    """A name without case and separators, so that spellings of one name compare equal."""
    return "".join(name_words(name))


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

# words of a parameter's name that tell what shape its value has
_SHAPES = {
    "email": "email mail",
    "url": "url uri link website webpage",
    "guid": "guid uuid",
    "datetime": "datetime timestamp",
    "date": "date day due deadline birthday",
    "time": "time",
    "timezone": "timezone tz zone",
    "path": "path file filename folder directory dir filepath",
    "glob": "pattern glob mask",
    "host": "host hostname ip domain",
    "language": "language lang locale",
    "currency": "currency",
    "unit": "unit units",
    "symbol": "symbol ticker",
    "expression": "expression formula equation calculation",
    "place": "city location place town country region where destination origin",
    "code": "number code sku reference id",
    "text": "text content message prompt task description body note input question request thought idea "
    "comment story instruction instructions sentence statement utterance",
}
SHAPE_OF = {word: shape for shape, listed in reversed(_SHAPES.items()) for word in listed.split()}
OTHER_SHAPES = word_set("type kind color colour style mode format size extension area")
FROM = word_set("from source src base origin start")
TO = word_set("to target dest destination into output end")
ABOUT = word_set("topic subject query keyword keywords about search term terms theme")
NAMED = word_set("name title label nickname")


_STRENGTH = 0.75  # of the first related word; each further one counts a little less
_FADING = 0.92

# what people say: what an agent for it is likely called or described with, likeliest first
_SYNONYMS = """
rain raining rainy: weather forecast
umbrella sunny sun cloudy snow snowing windy storm: weather forecast
warm cold hot: temperature thermometer
degrees: temperature thermometer weather
celsius fahrenheit kelvin: unit convert temperature
km kilometers kilometres miles meters metres feet foot inches cm yards: unit convert length distance
kg kilograms pounds lbs ounces grams: unit convert mass weight
liters litres gallons ml: unit convert volume
conversion exchange: convert
usd eur gbp jpy chf cad aud dollar euro yen francs money: currency convert exchange
calc compute multiply divide plus minus percent: calculator math expression evaluate
equation arithmetic maths: math calculator expression
remember memorize remind: memory store reminder
save: memory store note
forget: memory delete
recall remembered recollect: memory recall context
mail: email
letter message: email mail
email: mail
compose write: draft
todos chore chores task tasks shopping groceries: todo task
appointment meeting event events schedule: calendar schedule meeting
agenda diary: calendar
countdown alarm: timer
clock: time clock
temperature: thermometer weather
price cost worth quote shares: price stock
ticker stocks share: stock
joke funny laugh humor humour pun: joke
cook cooking dinner meal eat lunch dish bake: recipe cook
song songs listen album artist playlist band: music play
lamp lamps bulb: light
space storage: disk
drive: disk
definition: dictionary wikipedia
wiki encyclopedia article: wikipedia
cpu ram uptime load: system
computer machine server os: system machine
running: process
website webpage page site link: url web page fetch
download scrape: fetch web
picture photo: image
bill billing: invoice
ship release rollout rollback: deploy
ticket card cards: kanban card issue
client customer lead prospect: customer crm account
mood tone feeling: sentiment
tldr shorten condense: summary summarize
summary sum: summarize
say: translate
parcel package shipment delivery: parcel package tracking
plane flight flights: flight
headlines press: news headlines
guid guids: uuid
uuids: uuid
reachable alive: ping host
passphrase: password
random: generate
coin flip: coin random
throw toss: roll dice
die d20 d6: dice
quiz trivia: question quiz
barcode: code
mute louder volume quieter: volume music
reminder: remind reminder calendar
bug bugs lint: review code
repo repository commit commits: git
tweet post: post social
spell grammar: spelling grammar
"""

# two or three words that together point somewhere
_PHRASES = {
    ("what", "time"): "clock time",
    ("what", "date"): "date clock",
    ("what", "day"): "date clock",
    ("will", "it"): "forecast",
    ("look", "up"): "lookup",
    ("how", "warm"): "temperature thermometer",
    ("how", "hot"): "temperature thermometer",
    ("how", "cold"): "temperature thermometer",
    ("dont", "forget"): "remember memory store",
    ("keep", "mind"): "remember memory store",
    ("remember", "this"): "save store",
    ("remember", "that"): "save store",
    ("remember", "to"): "save store",
    ("remember", "my"): "save store",
    ("remember", "i"): "save store",
    ("you", "remember"): "recall context",
    ("create", "agent"): "learnnew",
    ("make", "agent"): "learnnew",
    ("build", "agent"): "learnnew",
    ("new", "agent"): "learnnew",
    ("to", "do"): "todo",
    ("turn", "on"): "switch",
    ("turn", "off"): "switch",
}


def related(word: Word) -> tuple[tuple[str, float], ...]:
    """Stems an agent may use where a person says ``word``, each with a strength below 1."""
    return (
        _RELATED.get(word.text) or _RELATED.get(word.stem) or (_DICE if _THROW.fullmatch(word.text) else ())
    )


def phrase(first: Word, second: Word) -> tuple[tuple[str, float], ...]:
    """Like ``related``, for two neighbouring words."""
    return _BY_PHRASE.get((first.text, second.text), ())


def _faded(meant: str) -> tuple[tuple[str, float], ...]:
    return tuple((stem(word), _STRENGTH * _FADING**place) for place, word in enumerate(meant.split()))


def _table() -> dict[str, tuple[tuple[str, float], ...]]:
    table: dict[str, tuple[tuple[str, float], ...]] = {}
    for line in _SYNONYMS.strip().splitlines():
        words, _, meant = line.partition(":")
        for word in words.split():
            for key in (word, stem(word)):
                known = table.get(key, ())
                table[key] = known + tuple(pair for pair in _faded(meant) if pair not in known)
    return table


_RELATED = _table()
_THROW = re.compile(r"\d{0,3}d\d{1,3}")
_DICE = ((stem("dice"), 1.0),)
_BY_PHRASE = {pair: _faded(meant) for pair, meant in _PHRASES.items()}
