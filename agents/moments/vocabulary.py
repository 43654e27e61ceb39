"""Words for numbers, days, months and parts of the day in English and German."""

from __future__ import annotations

import re

NUMBERS = {
    **dict.fromkeys(
        ("a", "an", "once", "einmal", "one", "ein", "eine", "einer", "einem", "einen", "eins"), 1.0
    ),
    **dict.fromkeys(("two", "zwei", "a couple of", "ein paar"), 2.0),
    **dict.fromkeys(("three", "drei"), 3.0),
    **dict.fromkeys(("four", "vier"), 4.0),
    **dict.fromkeys(("five", "fünf", "fuenf"), 5.0),
    **dict.fromkeys(("six", "sechs"), 6.0),
    **dict.fromkeys(("seven", "sieben"), 7.0),
    **dict.fromkeys(("eight", "acht"), 8.0),
    **dict.fromkeys(("nine", "neun"), 9.0),
    **dict.fromkeys(("ten", "zehn"), 10.0),
    **dict.fromkeys(("eleven", "elf"), 11.0),
    **dict.fromkeys(("twelve", "zwölf", "zwoelf"), 12.0),
    **dict.fromkeys(("fifteen", "fünfzehn", "fuenfzehn"), 15.0),
    **dict.fromkeys(("twenty", "zwanzig"), 20.0),
    **dict.fromkeys(("twenty-five", "twenty five", "fünfundzwanzig"), 25.0),
    **dict.fromkeys(("thirty", "dreißig", "dreissig"), 30.0),
    **dict.fromkeys(("forty", "vierzig"), 40.0),
    **dict.fromkeys(("forty-five", "forty five", "fünfundvierzig"), 45.0),
    **dict.fromkeys(("fifty", "fünfzig"), 50.0),
    **dict.fromkeys(("sixty", "sechzig"), 60.0),
    **dict.fromkeys(("ninety", "neunzig"), 90.0),
    **dict.fromkeys(
        ("half", "halbe", "half a", "half an", "a half", "einer halben", "eine halbe", "halben"), 0.5
    ),
    **dict.fromkeys(("an hour and a half", "anderthalb", "eineinhalb", "one and a half"), 1.5),
    **dict.fromkeys(("zweieinhalb", "two and a half"), 2.5),
}
HOURS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "eins", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
)  # fmt: skip
MINUTES = {
    **dict.fromkeys(("ten", "zehn"), 10), **dict.fromkeys(("fifteen", "fünfzehn"), 15), **dict.fromkeys(("twenty", "zwanzig"), 20),
    **dict.fromkeys(("twenty-five", "twenty five", "fünfundzwanzig"), 25), **dict.fromkeys(("thirty", "dreißig", "dreissig"), 30),
    **dict.fromkeys(("forty", "vierzig"), 40), **dict.fromkeys(("forty-five", "forty five", "fünfundvierzig"), 45),
    **dict.fromkeys(("fifty", "fünfzig"), 50),
}  # fmt: skip
"""Minutes said after an hour: "nine thirty"."""
ORDINALS = {
    **dict.fromkeys(("first", "ersten", "erste", "erster"), 1), **dict.fromkeys(("second", "zweiten", "zweite", "zweiter"), 2),
    **dict.fromkeys(("third", "dritten", "dritte", "dritter"), 3), **dict.fromkeys(("fourth", "vierten", "vierte", "vierter"), 4),
    **dict.fromkeys(("fifth", "fünften"), 5), **dict.fromkeys(("tenth", "zehnten"), 10), **dict.fromkeys(("fifteenth", "fünfzehnten"), 15),
    **dict.fromkeys(("twentieth", "zwanzigsten"), 20), **dict.fromkeys(("last", "letzten", "letzte", "letzter"), -1),
}  # fmt: skip
HOLIDAYS = {
    **dict.fromkeys(("new year's eve", "new years eve", "silvester"), (12, 31)),
    **dict.fromkeys(("new year's day", "new year's", "new years day", "neujahr"), (1, 1)),
    **dict.fromkeys(("christmas eve", "heiligabend", "heilig abend", "weihnachten"), (12, 24)),
    **dict.fromkeys(("christmas day", "christmas"), (12, 25)), "boxing day": (12, 26), "halloween": (10, 31),
    **dict.fromkeys(("valentine's day", "valentines day", "valentinstag"), (2, 14)), "nikolaus": (12, 6),
}  # fmt: skip
"""Days with a name: month and day."""
NEVER_CONTENT = ("new year's eve", "new years eve", "heiligabend", "heilig abend", "silvester", "neujahr")
"""Holidays that are a time without "on" before them."""
UNKNOWN_DAYS = (
    "easter", "ostern", "whitsun", "pfingsten", "thanksgiving", "ramadan", "hanukkah", "diwali", "birthday", "geburtstag",
    "anniversary", "sunrise", "sunset", "dawn", "dusk", "sonnenaufgang", "sonnenuntergang", "dinner", "lunch", "breakfast",
)  # fmt: skip
"""Times that nothing here can know."""
UNITS = {
    "second": 1.0, "sec": 1.0, "sekunde": 1.0, "minute": 60.0, "min": 60.0, "hour": 3600.0, "hr": 3600.0, "h": 3600.0, "m": 60.0, "s": 1.0,
    "stunde": 3600.0, "std": 3600.0, "day": 86400.0, "tag": 86400.0, "week": 604800.0, "woche": 604800.0,
    "quarter of an hour": 900.0, "viertelstunde": 900.0, "dreiviertelstunde": 2700.0, "fortnight": 1209600.0,
}  # fmt: skip
MONTH_UNITS = {"month": 1, "monat": 1, "year": 12, "jahr": 12}
"""Months of a unit whose length varies."""
WEEKDAYS = (
    ("monday", "mon", "montag"), ("tuesday", "tue", "tues", "dienstag"), ("wednesday", "wed", "mittwoch"),
    ("thursday", "thu", "thurs", "donnerstag"), ("friday", "fri", "freitag"), ("saturday", "sat", "samstag", "sonnabend"),
    ("sunday", "sun", "sonntag"),
)  # fmt: skip
MONTHS = (
    ("january", "jan", "januar", "jänner"), ("february", "feb", "februar"), ("march", "mar", "märz", "maerz"),
    ("april", "apr"), ("may", "mai"), ("june", "jun", "juni"), ("july", "jul", "juli"), ("august", "aug"),
    ("september", "sep", "sept"), ("october", "oct", "oktober", "okt"), ("november", "nov"),
    ("december", "dec", "dezember", "dez"),
)  # fmt: skip
DAY_OF = {name: number for number, names in enumerate(WEEKDAYS) for name in names}
MONTH_OF = {name: number for number, names in enumerate(MONTHS, 1) for name in names}
PARTS = {
    **dict.fromkeys(("morning", "morgen", "morgens", "früh", "frueh", "vormittag", "vormittags"), 9),
    **dict.fromkeys(("noon", "midday", "lunchtime", "mittag", "mittags"), 12),
    **dict.fromkeys(("afternoon", "nachmittag", "nachmittags"), 15),
    **dict.fromkeys(("evening", "abend", "abends", "tonight"), 19),
    **dict.fromkeys(("night", "nacht", "nachts"), 21),
}
"""The hour that a part of the day stands for where no other is said."""
LATER_PARTS = frozenset({15, 19, 21})
"""Parts in which "at 7" is 19:00."""


def any_of(words: object) -> str:
    """A pattern for any of the words, the longest first."""
    return "(?:" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + ")"  # type: ignore[call-overload]


NUMBER = rf"(?:\d{{1,4}}(?:[.,]\d)?|{any_of(NUMBERS)})"
UNIT = rf"(?:{any_of(UNITS.keys() - {'m', 's'})}|{any_of(MONTH_UNITS)})(?:en|n|e|s|\.)?"
WEEKDAY = rf"{any_of(DAY_OF)}"
MONTH = rf"{any_of(MONTH_OF)}"


def number_of(text: str) -> float:
    """The value of a text that ``NUMBER`` matches."""
    return NUMBERS[text] if text in NUMBERS else float(text.replace(",", "."))


def unit_of(text: str) -> str:
    """The unit of a text that ``UNIT`` matches, without its plural."""
    for end in ("", "en", "n", "e", "s", "."):
        stem = text.removesuffix(end) if end else text
        if stem in UNITS or stem in MONTH_UNITS:
            return stem
    raise AssertionError(text)
