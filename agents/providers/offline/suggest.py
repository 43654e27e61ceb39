"""An example of what to type for an agent, checked by routing it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import islice

from agents.providers.offline.route import route
from agents.providers.offline.schema import Param, Profile, parsed, profile_of, raw
from agents.providers.offline.tokens import FAINT, STOP, name_words, stem, word_set
from agents.providers.provider import Tool

_LONGEST_DESCRIBED = 6  # words of a description that still make a thing one would say

# what people say to agents of well-known kinds; used only where routing it comes back to the agent
_SAYINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("weather", ("will it rain?", "will it rain in Berlin?")),
    ("forecast", ("will it rain?", "will it rain in Berlin?")),
    ("quickanswers", ("what day is it in 10 days?", "17% of 80", "what time is it?")),
    ("hackernews", ("hacker news?",)),
    ("dice", ("roll two dice",)),
    ("joke", ("tell me a joke",)),
    ("clock", ("what time is it?",)),
    ("time", ("what time is it?",)),
    ("thermometer", ("how warm are you?",)),
    ("temperature", ("how warm is it?",)),
    ("context", ("what do you remember?",)),
    ("recall", ("what do you remember?",)),
    ("twin", ("who lives here?",)),
    ("layegg", ("pack this brainstem",)),
    ("neighborhoodsnapshot", ("snapshot my machines",)),
    ("neighborhoodrun", ("plan the restore of the last snapshot",)),
    ("memory", ("remember that my car is red", "what do you remember?")),
    ("translate", ("translate good morning to French",)),
    ("todo", ("add milk to my todo list",)),
    ("note", ("note: buy stamps",)),
    ("timer", ("set a timer for 10 minutes",)),
    ("light", ("turn on the lights in the kitchen", "turn on the lights")),
    ("music", ("play some jazz",)),
    ("disk", ("how full is the disk?",)),
    ("currency", ("convert 50 USD to EUR",)),
    ("unit", ("convert 10 miles to km",)),
    ("calculator", ("what is 12 * 7?",)),
    ("password", ("generate a password",)),
    ("recipe", ("find a recipe with eggs and rice",)),
    ("wikipedia", ("look up Ada Lovelace on wikipedia",)),
    ("learn", ("create an agent that counts words",)),
    ("calendar", ("show my calendar",)),
    ("email", ("draft an email to ann@example.org",)),
    ("stock", ("stock price of MSFT",)),
    ("summarize", ("summarize: paste the text here",)),
    ("news", ("what's in the news?",)),
    ("ping", ("ping localhost",)),
)
_BY_STEM = {stem(word): sayings for word, sayings in _SAYINGS}
_SAMPLES = {
    "place": "Berlin", "email": "ann@example.org", "url": "https://example.org", "date": "tomorrow", "time": "9:00",
    "path": "notes.txt", "glob": "*.txt", "host": "localhost", "language": "French", "symbol": "MSFT",
    "expression": "12 * 7", "timezone": "Europe/Berlin", "text": "“good morning”", "integer": "3", "number": "3",
    "array": "eggs and rice", "datetime": "tomorrow at 9:00",
}  # fmt: skip
_TAILS = word_set("agent tool helper manager service handler")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # what terminals obey
_ANY_DAY = date(2026, 1, 15)  # a suggestion must not change overnight


def suggest(tool: Tool, tools: Sequence[Tool] | None = None) -> str:
    """A short thing to type that ``route`` takes to ``tool`` among ``tools`` (by default alone); the plain name when nothing better does.

    An ellipsis stands for what only the person can fill in.
    """
    others = tuple(raw(other) for other in tools) if tools is not None else ()
    return _suggested(raw(tool), others)


def suggestions(tool: Tool, tools: Sequence[Tool], most: int) -> list[str]:
    """Up to ``most`` different things to type for ``tool``, each as ``suggest`` finds it."""
    return list(_found(raw(tool), tuple(raw(other) for other in tools), most))


def _suggested(content: bytes, others: tuple[bytes, ...]) -> str:
    profile = profile_of(content)
    found = _found(content, others, 1)
    return found[0] if found else profile.name if profile is not None else ""


@lru_cache(maxsize=1_024)
def _found(content: bytes, others: tuple[bytes, ...], most: int) -> tuple[str, ...]:
    profile = profile_of(content)
    if profile is None:
        return ()
    tools = [parsed(other) for other in others if profile_of(other) is not None] or [parsed(content)]
    reached = (saying for saying in dict.fromkeys(_sayings(profile)) if _reaches(saying, profile, tools))
    return tuple(islice(reached, most))


def _reaches(saying: str, profile: Profile, tools: Sequence[Tool]) -> bool:
    decision = route(saying, tools, today=_ANY_DAY)
    return decision.name == profile.name and (decision.ready or saying.endswith("…"))


def _sayings(profile: Profile) -> Iterator[str]:
    named = name_words(profile.name)
    keys = [stem("".join(named)), *(stem(word) for word in named)]
    for key in dict.fromkeys(keys):
        yield from _BY_STEM.get(key, ())
    plain = " ".join(word for word in named if word not in _TAILS) or " ".join(named)
    samples = [_sample(param) for param in profile.required()]
    described = imperative(profile.first_sentence)
    if described and len(described.split()) <= _LONGEST_DESCRIBED and not samples:
        yield described
    if all(samples):
        yield " ".join([plain, *samples])
        yield " ".join(
            [plain, *(f"{p.name}={_bare(s)}" for p, s in zip(profile.required(), samples, strict=True))]
        )
    yield f"{plain} …" if samples else plain
    yield f"{profile.name} …" if samples else profile.name


def imperative(sentence: str) -> str:
    """``Gets the weather.`` as what one would order: ``get the weather``; empty if it does not start so."""
    sentence = plain_line(sentence).rstrip(".!:;")
    first, _, rest = sentence.partition(" ")
    verb = first.lower()
    if (
        not re.fullmatch(r"[a-z]{2,20}", verb)
        or (verb in STOP and verb.removesuffix("s") not in _BASE_VERBS)
        or not rest
    ):
        return ""
    if verb in _NOT_VERBS or first.isupper():
        return ""
    if verb.endswith("ies") and len(verb) > 4:
        verb = verb[:-3] + "y"
    elif verb.endswith(("ches", "shes", "sses", "xes", "zzes")):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    elif verb not in _BASE_VERBS:
        return ""
    return f"{verb} {rest}"


def plain_line(text: str) -> str:
    """A stranger's text on one line, without control characters and marks that pages would act on."""
    text = _ESCAPE.sub("", text)
    return " ".join(
        "".join(" " if not sign.isprintable() or sign in "<>[]`" else sign for sign in text).split()
    )


def _sample(param: Param) -> str:
    if param.choices:
        return str(param.choices[0])
    if param.example and len(param.example) <= 30 and param.example.isprintable():
        return param.example
    if param.kind in ("integer", "number") and not param.least <= 3 <= param.most:
        return str(int(max(param.least, min(param.most, 3))))
    return _SAMPLES.get(param.kind, "")


def _bare(sample: str) -> str:
    sample = sample.strip("“”")
    return f'"{sample}"' if " " in sample else sample


_NOT_VERBS = FAINT & frozenset("various different news status details access")
_BASE_VERBS = word_set(
    "add analyze analyse answer ask browse build calculate call change check clean compare compute control convert "
    "cook count create decode delete deploy describe detect display download draft edit encode estimate evaluate "
    "execute explain explore export extract fetch fill find fix format generate get give handle help import inspect "
    "keep learn list log look make manage measure monitor move open parse plan play post predict print process "
    "produce query read recall record recommend remember remove rename render report research retrieve review rewrite "
    "roll run save scan schedule score search send set share show sort start stop store suggest summarize summarise "
    "switch take tell test track transform translate turn update upload validate verify view watch write"
)
