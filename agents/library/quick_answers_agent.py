"""QuickAnswers tells the time and the date, works out sums, and turns one unit into another.

Say "what time is it?", "what time is it in Tokyo?", "what day is it in 10 days?", "how many days until
Christmas?", "17% of 80", "12*(3+4)", "5 miles in km" or "70 F in C". Argument: `question`, the sentence.

The answer is one sentence, "Error: …" where there is none. It needs no network and no key. Sums are exact, and
read by a parser of their own: nothing that is typed is ever run. Sizes of sums are bounded.
"""

from __future__ import annotations

import ast
import re
import sys
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    try:
        from openrappter.agents.basic_agent import BasicAgent  # type: ignore[import-not-found,no-redef]  # elsewhere
    except ImportError:

        class BasicAgent:  # type: ignore[no-redef]  # stands in where the file runs as a script
            def __init__(self, name: str = "", metadata: dict[str, Any] | None = None) -> None:
                self.name, self.metadata = name, metadata or {}


__manifest__ = {
    "schema": "rapp-agent/1.0",
    "name": "@rappd/quick_answers_agent",
    "version": "1.0.0",
    "display_name": "QuickAnswers",
    "description": "The time, the date, sums and units, without a model and without a network.",
    "summary": "Tells time, date, sums and units.",
    "author": "rappd",
    "tags": ["time", "date", "calculator", "units"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "idempotent": True,
    "needs": {},
}

_LONGEST = 200
"""Characters of a question; the patterns below are tried on no longer text."""
_MOST_BITS = 20_000
"""Size of a number within a sum: 9^9^9 would fill the memory."""
_MOST_POWER = 5_000
_MOST_DIGITS = 40
_MOST_DAYS = 400_000
_NOTHING_KNOWN = (
    "Error: I answer the time, dates, sums and units, such as “what time is it in Tokyo?”, "
    "“what day is it in 10 days?”, “17% of 80” or “5 miles in km”."
)


class QuickAnswersAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "QuickAnswers"
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Tells the current time, the date and the weekday, here, in other cities or some days from "
            "now, and works out sums, percentages and conversions of units exactly. Use it rather than computing, "
            "converting or guessing the time yourself.",
            "parameters": {
                "type": "object",
                "properties": {
                    "question": {
                        "type": "string",
                        "description": "One question in English, such as: 12*(3+4); 70 F in C; "
                        "what time is it in Tokyo; what day is it in 10 days.",
                    }
                },
                "required": ["question"],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        answer = answer_to(str(kwargs.get("question") or ""), datetime.now().astimezone())
        return _NOTHING_KNOWN if answer is None else answer


class _NoAnswerError(ValueError):
    """The question is understood, and has no answer; the text says why."""


def answer_to(question: str, now: datetime) -> str | None:
    """The answer, "Error: …" where there is none, or None for what is no question of this kind."""
    asked = _plain(question)
    if not asked:
        return None
    for answering in (_time, _day, _conversion, _sum):
        try:
            if (answer := answering(asked, now)) is not None:
                return answer
        except _NoAnswerError as problem:
            return f"Error: {problem}"
    return None


_POLITE = re.compile(
    r"(?:(?:please|hey|hi|hello|ok|okay|so|and|now|(?:can|could|would|will) you(?: please)?|do you know|tell me"
    r"|i(?:'d| would) like to know|i (?:want|need) to know)[\s,]+)+",
    re.IGNORECASE,
)


def _plain(question: str) -> str:
    """The question without politeness and without its last sign; "" for one that is too long."""
    text = " ".join(question.replace("’", "'").split())
    if not text or len(text) > _LONGEST:
        return ""
    if polite := _POLITE.match(text):
        text = text[polite.end() :]
    return re.sub(r"(?:[\s,]+please)?[\s?.!=…]*$", "", text, flags=re.IGNORECASE)


# Sums

_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)
_TENS = re.compile(r"\b([2-9]0)[\s-]+([1-9])\b(?![.,]?\d)")
_ASKS_SUM = re.compile(
    r"(?:what(?:'s| is| are| does| do)?|whats|how much (?:is|are|does)|calculate|compute|work out|solve|evaluate|equals)\s+",
    re.IGNORECASE,
)
_SIGNS: tuple[tuple[str, str], ...] = (
    (r"\s*(?:percent|per cent)\b", "%"),
    (r"(\d(?:[\d.]*\d)?)\s*%\s*off\s+(?:of\s+)?(?=[\d(])", r"(1-\1/100)*"),
    (r"%\s*of\s+", "/100*"),
    (r"(?<=\d)\s+of\s+(?=[\d(])", "*"),
    (r"\s*\bmod(?:ulo)?\s+", "%"),
    (r"\bhalf of\s+(?=[\d(])", "1/2*"),
    (r"\b(?:the )?square root of\s*|√\s*", "sqrt "),
    (r"\s*\b(?:to the power of|raised to(?: the power of)?)\s+", "**"),
    (r"\s*\bsquared\b", "**2"),
    (r"\s*\bcubed\b", "**3"),
    (r"\s*\b(?:divided by|over)\s+|\s*[÷:]\s*", "/"),
    (r"\s*\b(?:multiplied by|times)\s+|\s*[×·]\s*", "*"),
    (r"(?<=[\d)])\s*x\s*(?=[\d(.-])", "*"),
    (r"\s*\bplus\s+", "+"),
    (r"\s*\bminus\s+|[−–]", "-"),
    (r"\s*\^\s*", "**"),
)
_COMPILED_SIGNS = tuple((re.compile(pattern, re.IGNORECASE), sign) for pattern, sign in _SIGNS)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_ADDED_PERCENT = re.compile(r"(.+[\d)])\s*([+-])\s*(\d+(?:\.\d+)?)\s*%")
_NOT_SUMS = re.compile(r"\d{4}-\d\d?-\d\d?|0\d+[-/ ][\d -/]+|\+?\d{3,}-\d{3,}(?:-\d+)*|\d{1,2}:\d\d")
"""A day, a telephone number and a time of day."""


def _sum(asked: str, _now: datetime) -> str | None:
    lead = _ASKS_SUM.match(asked)
    typed = (asked[lead.end() :] if lead else asked).strip()
    if not typed or _NOT_SUMS.fullmatch(typed):
        return None
    text = _NUMBER_WORD.sub(lambda found: str(_WORDS[found[1].lower()]), typed)
    text = _TENS.sub(lambda found: str(int(found[1]) + int(found[2])), text)
    for pattern, sign in _COMPILED_SIGNS:
        text = pattern.sub(sign, text)
    text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    if added := _ADDED_PERCENT.fullmatch(text):
        text = f"({added[1]})*(1{added[2]}{added[3]}/100)"
    text = re.sub(r"(\d(?:[\d.]*\d)?)\s*%(?!\s*[\d(])", r"(\1/100)", text)
    text = re.sub(r"sqrt\s+(\d+(?:\.\d+)?)", r"sqrt(\1)", text)
    text = re.sub(r"(?<![\d.])0+(?=\d)", "", text)
    if not re.fullmatch(r"(?:[\d.+\-*/%()\s]|sqrt)+", text) or not re.search(r"\d", text):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if isinstance(tree.body, ast.Constant):
        return None  # a number alone asks nothing
    return f"{typed} = {_shown(_worked_out(tree.body))}"


def _worked_out(node: ast.expr) -> Fraction:
    """The value of a sum. Raises ``_NoAnswerError`` for what has none, or one of no bearable size."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if number in (float("inf"), float("-inf")):
                raise _NoAnswerError("That number is too large.")
            return _bounded(Fraction(str(number)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_worked_out(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _worked_out(operand)
        case ast.BinOp(left=left, op=operation, right=right):
            return _bounded(_combined(_worked_out(left), operation, _worked_out(right)))
        case ast.Call(func=ast.Name(id="sqrt"), args=[operand], keywords=[]):
            return _root(_worked_out(operand))
    raise _NoAnswerError("That is no sum that I can work out.")


def _combined(left: Fraction, operation: ast.operator, right: Fraction) -> Fraction:
    match operation:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Pow():
            return _power(left, right)
        case ast.Div() | ast.FloorDiv() | ast.Mod():
            if not right:
                raise _NoAnswerError("Nothing can be divided by zero.")
            if isinstance(operation, ast.Div):
                return left / right
            return Fraction(left // right) if isinstance(operation, ast.FloorDiv) else left % right
    raise _NoAnswerError("That is no sum that I can work out.")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) > _MOST_POWER or (size > 1 and size * abs(exponent) > _MOST_BITS):
        raise _NoAnswerError("That number is too large.")
    if not base and exponent < 0:
        raise _NoAnswerError("Nothing can be divided by zero.")
    if exponent.denominator == 1:
        return base**exponent.numerator
    if base < 0:
        raise _NoAnswerError("A negative number has no such root.")
    try:
        return Fraction(str(float(base) ** float(exponent)))
    except (OverflowError, ValueError) as error:
        raise _NoAnswerError("That number is too large.") from error


def _root(number: Fraction) -> Fraction:
    if number < 0:
        raise _NoAnswerError("A negative number has no square root.")
    from math import isqrt

    above, below = isqrt(number.numerator), isqrt(number.denominator)
    if above * above == number.numerator and below * below == number.denominator:
        return Fraction(above, below)
    return _power(number, Fraction(1, 2))


def _bounded(number: Fraction) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise _NoAnswerError("That number is too large.")
    return number


def _shown(number: Fraction) -> str:
    text, rounded = _figures(number, 12)
    return text + rounded


def _figures(number: Fraction, digits: int) -> tuple[str, str]:
    """A number for people, exact where it is short, else rounded to ``digits`` figures; then " (rounded)"."""
    if number.denominator == 1 and number.numerator.bit_length() < 3.3 * _MOST_DIGITS:
        return f"{number.numerator:,}", ""
    from decimal import Context, Decimal

    context = Context(prec=digits, Emin=-999_999, Emax=999_999)
    value = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    exact = Fraction(value) == number
    value = value.normalize(context)
    far = value and not -7 < value.adjusted() < 15
    text = f"{value:e}".replace("e+", " × 10^").replace("e-", " × 10^-") if far else f"{value:,f}"
    return text, "" if exact else " (rounded)"


# Units

_UNITS: tuple[tuple[str, str, str, str], ...] = (
    # kind, factor to the kind's first unit, name for people, spellings
    ("length", "1", "m", "m metre metres meter meters"),
    ("length", "1000", "km", "km kms kilometre kilometres kilometer kilometers"),
    ("length", "0.01", "cm", "cm centimetre centimetres centimeter centimeters"),
    ("length", "0.001", "mm", "mm millimetre millimetres millimeter millimeters"),
    ("length", "1609.344", "miles", "mi mile miles"),
    ("length", "0.9144", "yards", "yd yds yard yards"),
    ("length", "0.3048", "feet", "ft foot feet '"),
    ("length", "0.0254", "inches", 'in inch inches "'),
    ("length", "1852", "nautical miles", "nmi nautical_mile nautical_miles"),
    ("mass", "1", "kg", "kg kgs kilo kilos kilogram kilograms kilogramme kilogrammes"),
    ("mass", "0.001", "g", "g gram grams gramme grammes"),
    ("mass", "0.000001", "mg", "mg milligram milligrams"),
    ("mass", "1000", "tonnes", "t tonne tonnes metric_ton metric_tons"),
    ("mass", "907.18474", "US tons", "ton tons us_ton us_tons short_ton short_tons"),
    ("mass", "0.45359237", "pounds", "lb lbs pound pounds"),
    ("mass", "0.028349523125", "ounces", "oz ounce ounces"),
    ("mass", "6.35029318", "stone", "st stone stones"),
    ("volume", "1", "litres", "l litre litres liter liters"),
    ("volume", "0.001", "ml", "ml millilitre millilitres milliliter milliliters cc"),
    ("volume", "0.01", "cl", "cl centilitre centilitres centiliter centiliters"),
    ("volume", "1000", "cubic metres", "m3 m³ cubic_metre cubic_metres cubic_meter cubic_meters"),
    ("volume", "3.785411784", "US gallons", "gal gallon gallons us_gallon us_gallons"),
    ("volume", "4.54609", "UK gallons", "uk_gallon uk_gallons imperial_gallon imperial_gallons"),
    ("volume", "0.946352946", "US quarts", "qt quart quarts"),
    ("volume", "0.473176473", "US pints", "pt pint pints us_pint us_pints"),
    ("volume", "0.56826125", "UK pints", "uk_pint uk_pints imperial_pint imperial_pints"),
    ("volume", "0.2365882365", "US cups", "cup cups"),
    ("volume", "0.0295735295625", "US fluid ounces", "fl_oz floz fluid_ounce fluid_ounces"),
    ("volume", "0.01478676478125", "tablespoons", "tbsp tablespoon tablespoons"),
    ("volume", "0.00492892159375", "teaspoons", "tsp teaspoon teaspoons"),
    ("time", "1", "seconds", "s sec secs second seconds"),
    ("time", "0.001", "milliseconds", "ms millisecond milliseconds"),
    ("time", "60", "minutes", "min mins minute minutes"),
    ("time", "3600", "hours", "h hr hrs hour hours"),
    ("time", "86400", "days", "d day days"),
    ("time", "604800", "weeks", "wk week weeks"),
    ("time", "31557600", "years", "yr yrs year years"),
    ("speed", "1", "m/s", "m/s mps metres_per_second meters_per_second"),
    ("speed", "5/18", "km/h", "km/h kmh kph km_per_hour kilometres_per_hour kilometers_per_hour"),
    ("speed", "0.44704", "mph", "mph mi/h miles_per_hour miles_an_hour"),
    ("speed", "463/900", "knots", "kn kt kts knot knots"),
    ("speed", "0.3048", "feet per second", "ft/s fps feet_per_second"),
    ("data", "1", "bytes", "b byte bytes"),
    ("data", "1/8", "bits", "bit bits"),
    ("data", "1000", "kB", "kb kilobyte kilobytes"),
    ("data", "1000000", "MB", "mb megabyte megabytes"),
    ("data", "1000000000", "GB", "gb gigabyte gigabytes"),
    ("data", "1000000000000", "TB", "tb terabyte terabytes"),
    ("data", "1024", "KiB", "kib kibibyte kibibytes"),
    ("data", "1048576", "MiB", "mib mebibyte mebibytes"),
    ("data", "1073741824", "GiB", "gib gibibyte gibibytes"),
    ("data", "1099511627776", "TiB", "tib tebibyte tebibytes"),
    ("data", "125", "kilobits", "kbit kilobit kilobits"),
    ("data", "125000", "megabits", "mbit megabit megabits"),
    ("data", "125000000", "gigabits", "gbit gigabit gigabits"),
    ("temperature", "1", "°C", "c °c celsius centigrade degrees_c degree_c degrees_celsius degree_celsius"),
    ("temperature", "5/9", "°F", "f °f fahrenheit degrees_f degree_f degrees_fahrenheit degree_fahrenheit"),
    ("temperature", "1", "K", "k kelvin kelvins degrees_kelvin"),
)
_ZEROS = {"°F": Fraction(-160, 9), "K": Fraction("-273.15")}
"""Degrees Celsius at zero of the other scales."""
_BY_SPELLING = {
    spelling.replace("_", " "): (kind, Fraction(factor), name)
    for kind, factor, name, spellings in _UNITS
    for spelling in spellings.split()
}
_ONE_OF = {"feet": "foot", "inches": "inch"} | {
    name: name.removesuffix("s")
    for _, _, name, _ in _UNITS
    if name.endswith("s") and name not in ("m/s", "inches")
}
_UNIT = "|".join(re.escape(spelling) for spelling in sorted(_BY_SPELLING, key=len, reverse=True))
_AMOUNT = (
    rf"-?(?:\d+(?:[.,]\d+)*|an?|half an?|one|two|three|four|five|six|seven|eight|nine|ten)\s*(?:{_UNIT})"
)
_CONVERTED = re.compile(
    rf"(?:(?:convert|change|turn|what(?:'s| is| are)|whats|how much (?:is|are)|how (?:long|far|heavy|fast|warm|hot|cold) (?:is|are))\s+)?"
    rf"(?P<amounts>{_AMOUNT}(?:(?:\s+and\s+|[\s,]*){_AMOUNT})*)\s*(?:in|into|to|as|=)\s*(?P<unit>{_UNIT})",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(
    rf"how (?:many|much)\s+(?P<unit>{_UNIT})\s*(?:are|is|=|make up|make)?\s*(?:there\s+)?(?:in\s+)?"
    rf"(?P<amounts>{_AMOUNT}(?:(?:\s+and\s+|[\s,]*){_AMOUNT})*)(?:\s+have|\s+has)?",
    re.IGNORECASE,
)
_ONE_AMOUNT = re.compile(
    rf"(?P<number>-?\d+(?:[.,]\d+)*|[a-z]+(?: an?)?)\s*(?P<unit>{_UNIT})(?=$|[\s,\d-])", re.IGNORECASE
)


def _conversion(asked: str, _now: datetime) -> str | None:
    found = _CONVERTED.fullmatch(asked) or _HOW_MANY.fullmatch(asked)
    if found is None:
        return None
    kind, factor, wanted = _BY_SPELLING[found["unit"].lower()]
    total, amounts = Fraction(0), []
    for amount in _ONE_AMOUNT.finditer(found["amounts"]):
        unit_kind, unit_factor, name = _BY_SPELLING[amount["unit"].lower()]
        if unit_kind != kind:
            raise _NoAnswerError(f"{name} measures {unit_kind}, and {wanted} {kind}.")
        number = _amount(amount["number"])
        total += number * unit_factor + _ZEROS.get(name, Fraction(0))
        amounts.append(f"{_shown(number)} {_ONE_OF.get(name, name) if number == 1 else name}")
    if not amounts or (kind == "temperature" and len(amounts) > 1):
        return None
    if kind == "temperature" and total < Fraction("-273.15"):
        raise _NoAnswerError("Nothing is that cold: the lowest temperature is -273.15 °C.")
    result = _bounded((total - _ZEROS.get(wanted, Fraction(0))) / factor)
    text, rounded = _figures(result, 6)
    return f"{' '.join(amounts)} = {text} {_ONE_OF.get(wanted, wanted) if text == '1' else wanted}{rounded}"


def _amount(text: str) -> Fraction:
    word = text.lower()
    if word.startswith("half"):
        return Fraction(1, 2)
    if word in _WORDS or word in ("a", "an"):
        return Fraction(_WORDS.get(word, 1))
    if _THOUSANDS.fullmatch(word.lstrip("-")):
        return Fraction(word.replace(",", ""))
    if word.count(",") == 1 and "." not in word:
        word = word.replace(",", ".")  # 2,5 as most of Europe writes it
    try:
        return Fraction(word.replace(",", ""))
    except ValueError as error:
        raise _NoAnswerError(f"“{text}” is no number.") from error


# Time

_TIME = re.compile(
    r"(?:what(?:'s| is)?\s+(?:the\s+)?(?:current\s+|local\s+|exact\s+)?time(?:\s+(?:is\s+it|is\s+it\s+now|it\s+is|now|right\s+now))?"
    r"|what\s+time\s+(?:it\s+is|is\s+it|do\s+we\s+have|will\s+it\s+be|have\s+you\s+got)|whats\s+the\s+time|what\s+time"
    r"|how\s+late\s+is\s+it|(?:the\s+)?(?:current\s+|local\s+)?time(?:\s+now)?|have\s+you\s+got\s+the\s+time)"
    r"(?:\s+(?:right\s+)?now)?(?:\s+(?:over\s+)?(?:in|at|for)\s+(?P<where>[^\d?]{2,60}?)|\s+in\s+(?P<later>\d{1,5})\s+(?P<unit>minutes?|hours?))?"
    r"(?:\s+(?:right\s+)?now)?(?:\s+here)?",
    re.IGNORECASE,
)
_HERE = frozenset(("here", "my city", "my town", "my place"))
_BESIDES = {
    "san francisco": "America/Los_Angeles", "seattle": "America/Los_Angeles", "san diego": "America/Los_Angeles",
    "las vegas": "America/Los_Angeles", "california": "America/Los_Angeles", "boston": "America/New_York",
    "washington": "America/New_York", "philadelphia": "America/New_York", "miami": "America/New_York",
    "atlanta": "America/New_York", "nyc": "America/New_York", "dallas": "America/Chicago",
    "houston": "America/Chicago", "austin": "America/Chicago", "ottawa": "America/Toronto",
    "montreal": "America/Toronto", "rio": "America/Sao_Paulo", "rio de janeiro": "America/Sao_Paulo",
    "germany": "Europe/Berlin", "munich": "Europe/Berlin", "hamburg": "Europe/Berlin", "cologne": "Europe/Berlin",
    "frankfurt": "Europe/Berlin", "france": "Europe/Paris", "england": "Europe/London", "uk": "Europe/London",
    "scotland": "Europe/London", "edinburgh": "Europe/London", "manchester": "Europe/London",
    "ireland": "Europe/Dublin", "spain": "Europe/Madrid", "barcelona": "Europe/Madrid", "italy": "Europe/Rome",
    "milan": "Europe/Rome", "switzerland": "Europe/Zurich", "geneva": "Europe/Zurich", "austria": "Europe/Vienna",
    "netherlands": "Europe/Amsterdam", "belgium": "Europe/Brussels", "poland": "Europe/Warsaw",
    "sweden": "Europe/Stockholm", "norway": "Europe/Oslo", "denmark": "Europe/Copenhagen",
    "finland": "Europe/Helsinki", "greece": "Europe/Athens", "ukraine": "Europe/Kyiv",
    "india": "Asia/Kolkata", "delhi": "Asia/Kolkata", "new delhi": "Asia/Kolkata", "mumbai": "Asia/Kolkata",
    "bangalore": "Asia/Kolkata", "china": "Asia/Shanghai", "beijing": "Asia/Shanghai", "korea": "Asia/Seoul",
    "south korea": "Asia/Seoul", "thailand": "Asia/Bangkok", "vietnam": "Asia/Ho_Chi_Minh", "osaka": "Asia/Tokyo",
    "abu dhabi": "Asia/Dubai", "cape town": "Africa/Johannesburg", "kenya": "Africa/Nairobi",
    "nigeria": "Africa/Lagos", "hawaii": "Pacific/Honolulu", "new zealand": "Pacific/Auckland",
    "wellington": "Pacific/Auckland", "canberra": "Australia/Sydney",
}  # fmt: skip


def _time(asked: str, now: datetime) -> str | None:
    found = _TIME.fullmatch(asked)
    if found is None:
        return None
    if found["later"]:
        hours = found["unit"].lower().startswith("hour")
        then = now + timedelta(minutes=int(found["later"]) * (60 if hours else 1))
        day = "today" if then.date() == now.date() else f"on {_long(then.date())}"
        return f"It will be {then:%H:%M} {day}."
    where = re.sub(r"^the\s+", "", (found["where"] or "").strip(" ,").casefold())
    where = re.sub(r"\s+(?:now|right now|today|time)$", "", where)
    if not where or where in _HERE:
        return f"It is {now:%H:%M} on {_long(now.date())}."
    try:
        zone, name = _zone(where)
    except _NoAnswerError:
        if not asked.casefold().startswith(("what", "how")):
            return None  # "time in a bottle"
        raise
    there = now.astimezone(zone)
    return f"It is {there:%H:%M} on {_long(there.date())}, in {name}."


def _zone(where: str) -> tuple[Any, str]:
    """The time zone of a place, and the place's name. Raises ``_NoAnswerError`` for one that is not known."""
    if where in ("utc", "gmt", "greenwich"):
        return timezone.utc, "UTC"  # noqa: UP017 - `datetime.UTC` is not everywhere
    import unicodedata
    from zoneinfo import ZoneInfo, available_timezones  # reads folders: only who asks for a place pays

    known = available_timezones()
    if not known:
        raise _NoAnswerError("This computer has no table of time zones. Install the package tzdata.")
    bare = "".join(sign for sign in unicodedata.normalize("NFD", where) if not unicodedata.combining(sign))
    typed, city = where.partition(",")[0].strip(), bare.partition(",")[0].strip()
    key = _BESIDES.get(bare) or _BESIDES.get(city)
    if key is None:
        wanted = city.replace(" ", "_")
        whole = bare.replace(" ", "_")
        fits = (
            zone for zone in sorted(known)
            if "/" in zone and not zone.startswith(("Etc/", "SystemV/", "posix/", "right/"))
            and (zone.casefold() == whole or zone.casefold().rpartition("/")[2] == wanted)
        )  # fmt: skip
        key = next(fits, None) or next((zone for zone in known if zone.casefold() == whole), None)
    if key is None or key not in known:
        raise _NoAnswerError(f"I do not know the time in “{where}”. Name a large city in the same time zone.")
    return ZoneInfo(key), " ".join(
        word if word in ("de", "of") else word.capitalize() for word in typed.split()
    )


# Days

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_NEAR = {
    "today": 0,
    "tomorrow": 1,
    "yesterday": -1,
    "the day after tomorrow": 2,
    "the day before yesterday": -2,
}
_ASKS_DAY = (
    r"(?:what(?:'s| is| was| will be)?\s+(?:the\s+)?(?:day(?:\s+of\s+the\s+(?:week|month|year))?|weekday|date|day\s+and\s+date)"
    r"|whats\s+the\s+(?:day|date)|which\s+(?:day(?:\s+of\s+the\s+week)?|weekday|date)|on\s+(?:what|which)\s+(?:week)?day)"
)
_TODAY = re.compile(
    rf"{_ASKS_DAY}(?:\s+(?:is|was|will)\s+(?:it|today)(?:\s+be)?)?(?:\s+(?:today|now|right\s+now|here))?|(?:today'?s?|the)\s+(?:date|day)|date",
    re.IGNORECASE,
)
_SHIFTED = re.compile(
    rf"(?P<asks>{_ASKS_DAY}\s*(?:(?:is|was|will|would)\s*(?:it\s*)?(?:be\s*)?|it\s+will\s+be\s*)?(?:the\s+date\s*)?)?"
    r"(?P<how>in|after|)\s*(?P<count>\d{1,6}|an?|one|two|three|four|five|six|seven|ten)\s+(?P<unit>days?|weeks?|months?|years?)"
    r"(?P<way>\s+(?:from\s+(?:now|today)|ago|time|later|before\s+today))?(?:\s+(?:will|would)\s+it\s+be)?",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?:{_ASKS_DAY}\s+(?P<near>(?:the\s+day\s+(?:after|before)\s+)?(?:tomorrow|yesterday))|{_ASKS_DAY}\s+(?:is|was|will|does|did|will\s+be|is\s+on)\s+(?:it\s+)?(?:on\s+)?(?P<day>.{{3,40}}?)(?:\s+(?:fall\s+on|be|on))?"
    r"|how\s+(?:many\s+days|long)\s+(?:(?:is\s+it|are\s+there|are\s+left|left)\s+)?(?:until|till|til|to)\s+(?P<until>.{3,40}))",
    re.IGNORECASE,
)


def _day(asked: str, now: datetime) -> str | None:
    today = now.date()
    if _TODAY.fullmatch(asked):
        return f"It is {_long(today)}."
    if shifted := _SHIFTED.fullmatch(asked):
        way = " ".join((shifted["way"] or "").split())
        if not way and not (shifted["how"] and shifted["asks"]):
            return None  # "in 3 days" may answer a question of another agent
        back = way in ("ago", "before today")
        number = shifted["count"].lower()
        count = int(number) if number.isdecimal() else _WORDS.get(number, 1)
        day = _moved(today, -count if back else count, shifted["unit"].lower().rstrip("s"))
        distance = f"{count} {shifted['unit'] if count != 1 else shifted['unit'].rstrip('sS')}"
        return f"{distance} ago it was {_long(day)}." if back else f"In {distance} it will be {_long(day)}."
    named = _NAMED.fullmatch(asked)
    meant = _read_day(named["near"] or named["day"] or named["until"], today) if named is not None else None
    return _told(meant, today, counted=bool(named and named["until"])) if meant is not None else None


def _told(day: date, today: date, *, counted: bool) -> str:
    if counted:
        left = (day - today).days
        name = _long(day)
        if left < 0:
            return f"{name} was {-left:,} {'day' if left == -1 else 'days'} ago."
        return f"{left:,} {'day' if left == 1 else 'days'} until {name}."
    verb = "is" if day == today else "was" if day < today else "will be"
    return f"It {verb} {_long(day)}."


def _moved(day: date, count: int, unit: str) -> date:
    if unit in ("month", "year"):
        months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        if not 1 <= year <= 9998:
            raise _NoAnswerError("That day is too far away.")
        last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
        return date(year, month + 1, min(day.day, last))
    days = count * (7 if unit == "week" else 1)
    try:
        if abs(days) > _MOST_DAYS:
            raise OverflowError
        return day + timedelta(days=days)
    except OverflowError as error:
        raise _NoAnswerError("That day is too far away.") from error


def _read_day(text: str, today: date) -> date | None:
    """A day as people write it; without a year the next one. None for what is none."""
    day_text = re.sub(r"^(?:on\s+)?(?:the\s+)?", "", text.strip(" ,.").casefold())
    if text.strip().casefold() in _NEAR:
        return today + timedelta(days=_NEAR[text.strip().casefold()])
    feasts = {"christmas": (12, 25), "christmas day": (12, 25), "christmas eve": (12, 24), "new year": (1, 1),
              "new year's day": (1, 1), "new year's eve": (12, 31), "halloween": (10, 31)}  # fmt: skip
    year: int | None = None
    if day_text in feasts:
        month, number = feasts[day_text]
    elif found := re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})", day_text):
        year, month, number = (int(part) for part in found.groups())
    elif found := re.fullmatch(r"(\d{1,2})\.\s*(\d{1,2})\.\s*(\d{4})?", day_text):
        number, month, year = int(found[1]), int(found[2]), int(found[3]) if found[3] else None
    elif found := re.fullmatch(
        r"(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?([a-z]{3,9})\.?,?\s*(\d{4})?", day_text
    ):
        number, month, year = int(found[1]), _month(found[2]), int(found[3]) if found[3] else None
    elif found := re.fullmatch(
        r"([a-z]{3,9})\.?\s+(?:the\s+)?(\d{1,2})(?:st|nd|rd|th)?,?\s*(\d{4})?", day_text
    ):
        number, month, year = int(found[2]), _month(found[1]), int(found[3]) if found[3] else None
    else:
        return None
    try:
        if year is not None:
            return date(year, month, number)
        day = date(today.year, month, number)
        return day if day >= today else date(today.year + 1, month, number)
    except ValueError:
        return None


def _month(word: str) -> int:
    return next((number for number, name in enumerate(_MONTHS, 1) if name.startswith(word)), 0)


def _long(day: date) -> str:
    """A day in words, without the computer's own language."""
    return f"{_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1].capitalize()} {day.year}"


if __name__ == "__main__":
    sys.stdout.write(
        QuickAnswersAgent().perform(question=" ".join(sys.argv[1:]) or "what time is it?") + "\n"
    )
