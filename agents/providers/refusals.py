"""Refusals of model servers: what one means, the server's own sentence, and what helps.

An error comes by status, in a body of status 200, as an event, or in the midst of a stream; all of them are read
here. The meanings are told apart by the codes that servers send beside a sentence (``type``, ``code``), then by the
sentence, then by the status. No two meanings share a remedy that does not help.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import msgspec
import orjson

MOST_SAID = 240
"""Characters of a server's sentence that people are shown."""
_MOST_READ = 20_000
"""Characters of an error in which its sentence is looked for."""
_MOST_SEARCHED = 2_000
"""Characters of a sentence in which words are looked for: every pattern together takes some 10 ms for the worst."""
_SECRET = re.compile(r"\b(?:sk-|gh[a-z]_|github_pat_|tid=)[\w\-=;:.]{6,}")
_ADDRESS_LOGIN = re.compile(r"//[^\s/@]{1,200}@")
_MOST_WAIT = 366 * 86_400.0


class Meaning(StrEnum):
    """Reasons why a model server did not answer."""

    NO_MODEL = "no_model"
    NO_TOOLS = "no_tools"
    NO_TOOL_STREAM = "no_tool_stream"
    NO_STREAM_USAGE = "no_stream_usage"
    NO_SYSTEM = "no_system"
    ALTERNATE = "alternate"
    NO_PICTURES = "no_pictures"
    CONTEXT = "context"
    KEY = "key"
    ITSELF = "itself"
    QUOTA = "quota"
    LIMIT = "limit"
    LOADING = "loading"
    BUSY = "busy"
    MEMORY = "memory"
    FILTER = "filter"
    NOT_A_MODEL_SERVER = "not_a_model_server"
    ELSEWHERE = "elsewhere"
    SILENT = "silent"
    SLOW = "slow"
    BROKE_OFF = "broke_off"
    NO_ANSWER = "no_answer"
    TOO_LONG = "too_long"
    SERVER = "server"
    REQUEST = "request"


REMEDIES: Mapping[str, str] = {
    Meaning.NO_MODEL: "choose another model",
    Meaning.NO_TOOLS: "choose a model that can use agents",
    Meaning.NO_TOOL_STREAM: "ask again",
    Meaning.NO_STREAM_USAGE: "ask again",
    Meaning.NO_SYSTEM: "choose another model",
    Meaning.ALTERNATE: "begin a new conversation",
    Meaning.NO_PICTURES: "choose a model that sees pictures, or describe it in words",
    Meaning.CONTEXT: "ask a shorter question, or give the model a larger context",
    Meaning.KEY: "check the key",
    Meaning.ITSELF: "set provider.url to the address of a model server",
    Meaning.QUOTA: "look at your plan there, or choose another model server",
    Meaning.LIMIT: "wait, or choose another model",
    Meaning.LOADING: "ask again in a minute",
    Meaning.BUSY: "ask again",
    Meaning.MEMORY: "choose a smaller model",
    Meaning.FILTER: "say it in other words",
    Meaning.NOT_A_MODEL_SERVER: "check provider.url, and that you are signed in to this network",
    Meaning.ELSEWHERE: "set provider.url to the address where it really is",
    Meaning.SLOW: "ask again, or choose a smaller model",
    Meaning.BROKE_OFF: "ask again",
    Meaning.NO_ANSWER: "check provider.url; it often ends in /v1",
    Meaning.TOO_LONG: "choose another model",
    Meaning.SERVER: "ask again, or choose another model",
    Meaning.REQUEST: "choose another model",
}
"""Remedies by meaning. The one against silence depends on the server (``ServerWording.do``)."""

_CODES: tuple[tuple[Meaning, str], ...] = (
    (Meaning.ITSELF, r"asked_itself"),
    (Meaning.CONTEXT, r"context_length|exceed_context|context_window|string_above_max_length"),
    (Meaning.QUOTA, r"insufficient_quota|billing|credit|payment"),
    (Meaning.FILTER, r"content_filter|content_policy|responsibleai|moderation|safety"),
    (Meaning.NO_MODEL, r"model_not_found|deploymentnotfound|model_not_exist|invalid_model"),
    (Meaning.KEY, r"invalid_api_key|authentication|unauthorized|permission_denied"),
    (Meaning.LIMIT, r"rate_limit|resource_exhausted|too_many_requests"),
    (Meaning.BUSY, r"overloaded"),
)
_SENTENCES: tuple[tuple[Meaning, str], ...] = (
    (
        Meaning.NO_TOOL_STREAM,
        r"stream\w*.{0,60}\b(?:tools?|functions?)\b.{0,40}not|not.{0,20}stream.{0,20}\btools?\b"
        r"|tools?.{0,40}(?:not|cannot|can't).{0,40}stream|(?:cannot|can't|unable to) (?:use|combine) tools? with stream",
    ),
    (
        Meaning.NO_TOOLS,
        r"(?:not|n't|no endpoints?.{0,20}|without) (?:yet )?support(?:ing|ed)?.{0,20}(?:\btools?\b|tool[ _-]use|function)"
        r"|(?:\btools?\b|tool[ _-]?(?:use|calls?|calling|choice)|functions?|function[ _-]calling).{0,40}"
        r"(?:not (?:be )?(?:supported|enabled|available|allowed|permitted)|unsupported|un(?:known|recognized))"
        r"|(?:unsupported|unknown|unrecognized|extra|unexpected|invalid).{0,30}\b(?:tools|tool_choice|functions)\b"
        r"|tools? param requires|requires --jinja|enable-auto-tool-choice|tool-call-parser"
        r"|tools?: extra inputs|only user and assistant roles",
    ),
    (Meaning.NO_STREAM_USAGE, r"stream_options|include_usage"),
    (
        Meaning.NO_SYSTEM,
        r"system (?:role|messages?|prompts?|instructions?).{0,30}not (?:be )?(?:supported|enabled|allowed)"
        r"|(?:not|n't) support.{0,20}system|developer instruction is not enabled|unsupported.{0,20}\bsystem\b",
    ),
    (
        Meaning.ALTERNATE,
        r"roles? must alternate|must start with a user|must be alternating|alternat\w+ between|after the optional system message"
        r"|(?:first|last) message must be|consecutive \w+ messages|expected .{0,20}role.{0,20}user",
    ),
    (
        Meaning.CONTEXT,
        r"(?:context|prompt|input|sequence|request|messages?|conversation)\b.{0,80}"
        r"(?:exceed|too long|too large|longer than|is over|overflow|does not fit|doesn't fit)"
        r"|exceed\w*.{0,60}(?:context|maximum.{0,20}(?:tokens?|length)|n_ctx|max_model_len|token limit)"
        r"|(?:maximum|max)\.? (?:context|model|input|prompt|sequence)[ _]?(?:length|len|window|tokens?)"
        r"|too many (?:input |prompt )?tokens|reduce (?:the|your) (?:length|prompt|input)|context[ _](?:length|window|size|overflow)",
    ),
    (
        Meaning.MEMORY,
        r"out of memory|more (?:system |gpu |video )?memory|(?:insufficient|not enough|low on).{0,20}(?:memory|vram|ram)\b"
        r"|\boom\b|failed to (?:allocate|load model)|unable to (?:allocate|load model)|cudamalloc|alloc(?:ation)? fail",
    ),
    (
        Meaning.NO_PICTURES,
        r"(?:image|picture|vision|multi-?modal|image_url)s?\b.{0,60}(?:not|n't|unsupported|unknown|invalid)"
        r"|(?:not|n't|unsupported|invalid|unknown).{0,40}\b(?:image|picture|vision|multi-?modal|image_url)s?\b|mmproj",
    ),
    (Meaning.QUOTA, r"quota|billing|credits?\b|insufficient (?:balance|funds)|payment|usage limit"),
    (
        Meaning.FILTER,
        r"content (?:filter|management|policy)|flagged|moderat|safety (?:system|setting|filter)|guardrail",
    ),
    (
        Meaning.NO_MODEL,
        r"models?\b.{0,120}(?:not (?:be )?(?:found|exist|loaded|available|known|recognized|deployed)|n't (?:exist|found)|unknown)"
        r"|(?:no such|unknown|invalid|unsupported|no|not a valid|can(?:not|'t) find|could not find) model"
        r"|try pulling|pull it first|model name|no models? (?:is |are )?loaded|deployment.{0,40}not exist",
    ),
    (Meaning.LOADING, r"loading|warming up|starting up|not (?:yet )?ready|initializ"),
    (Meaning.KEY, r"api[ _-]?key|unauthori[sz]ed|authenticat|access token|forbidden|credentials"),
    (Meaning.LIMIT, r"rate[ _-]?limit|too many requests|slow down|requests per|tokens per"),
    (
        Meaning.BUSY,
        r"overloaded|at capacity|\bbusy\b|no (?:available )?slots?|queue.{0,20}full|try again later",
    ),
)
_STATUSES: Mapping[int, Meaning] = {
    401: Meaning.KEY, 402: Meaning.QUOTA, 403: Meaning.KEY, 404: Meaning.NO_MODEL, 413: Meaning.CONTEXT,
    429: Meaning.LIMIT, 502: Meaning.BUSY, 503: Meaning.BUSY, 504: Meaning.BUSY, 529: Meaning.BUSY,
}  # fmt: skip
_COMPILED_CODES = tuple((meaning, re.compile(words, re.IGNORECASE)) for meaning, words in _CODES)
_COMPILED = tuple((meaning, re.compile(words, re.IGNORECASE)) for meaning, words in _SENTENCES)
_TRIED_AGAIN = frozenset(
    {Meaning.LIMIT, Meaning.LOADING, Meaning.BUSY, Meaning.SERVER, Meaning.BROKE_OFF, Meaning.SILENT}
)


class Refusal(msgspec.Struct, frozen=True):
    """A refusal. ``server_sentence`` is the server's sentence, "" without one; ``sent`` what it sent, for the log.

    ``wait`` are the seconds that it asks to wait. ``context_tokens`` and ``needed`` are tokens, where it names them for a
    context that is exceeded.
    """

    meaning: Meaning
    server_sentence: str = ""
    sent: str = ""
    status: int = 0
    wait: float = 0.0
    context_tokens: int = 0
    needed: int = 0

    @property
    def may_pass(self) -> bool:
        """True when the same request may be answered a moment later."""
        return self.meaning in _TRIED_AGAIN


def read(error: object, status: int, wait: float = 0.0, secrets: Iterable[str] = ()) -> Refusal:
    """The refusal in ``error``: the JSON of a body or event, or text. ``status`` 0 or 200 says nothing."""
    sent = error if isinstance(error, str) else _json(error)
    sent = scrub(sent[:_MOST_READ], secrets)
    if sent[:1] == "<":
        return Refusal(Meaning.NOT_A_MODEL_SERVER, "", sent, status, wait)
    sentence = scrub(_sentence(error)[:_MOST_READ], secrets)
    meaning = _meaning(_codes(error), (sentence or sent)[:_MOST_SEARCHED], status)
    context_tokens, needed = _tokens(error, sentence) if meaning is Meaning.CONTEXT else (0, 0)
    return Refusal(meaning, shown(sentence), sent, status, wait or _asked_wait(error), context_tokens, needed)


def scrub(text: str, secrets: Iterable[str]) -> str:
    """``text`` on one line, with the given secrets and anything that looks like a key or a login blotted out."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    text = _ADDRESS_LOGIN.sub("//***@", _SECRET.sub("***", text))
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def shown(sentence: str) -> str:
    """A sentence at a length for people."""
    return sentence if len(sentence) <= MOST_SAID else f"{sentence[: MOST_SAID - 1].rstrip()}…"


def seconds_to_wait(headers: Mapping[str, str], now: float) -> float:
    """Seconds that ``Retry-After`` or ``retry-after-ms`` ask for, 0 without; ``now`` is the epoch time."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        try:
            wait = float(text) * unit
        except ValueError:
            wait = _until(text, now) if name == "retry-after" else 0.0
        if 0 < wait <= _MOST_WAIT:
            return wait
    return 0.0


def _until(date: str, now: float) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError, TypeError):
        return 0.0


def _meaning(codes: str, sentence: str, status: int) -> Meaning:
    for meaning, words in _COMPILED_CODES:
        if words.search(codes):
            return meaning
    for meaning, words in _COMPILED:
        if words.search(sentence):
            return meaning
    if status in _STATUSES:
        return _STATUSES[status]
    if 300 <= status < 400:
        return Meaning.ELSEWHERE
    return Meaning.REQUEST if 400 <= status < 500 else Meaning.SERVER


def _codes(error: object) -> str:
    """Words for programs in an error, as one text."""
    found = []
    while isinstance(error, dict):
        found += [value for key in ("type", "code", "status") if isinstance(value := error.get(key), str)]
        inner = error.get("innererror")
        error = error.get("error") or inner
    return " ".join(found)[:500]


def _sentence(error: object, depth: int = 0) -> str:
    """The sentence for people in an error, whatever its shape; "" without one."""
    if isinstance(error, str):
        return _inside(error, depth)
    if isinstance(error, list):
        return "; ".join(filter(None, (_sentence(one, depth + 1) for one in error[:3]))) if depth < 4 else ""
    if not isinstance(error, dict) or depth > 4:
        return ""
    metadata = error.get("metadata")  # OpenRouter: the words of the server behind it
    if isinstance(metadata, dict) and (raw := _sentence(metadata.get("raw"), depth + 1)):
        return raw
    for key in ("message", "error", "detail", "msg", "error_description", "title", "reason"):
        if sentence := _sentence(error.get(key), depth + 1):
            where = error.get("loc")  # FastAPI: the field that is meant
            return f"{where[-1]}: {sentence}" if isinstance(where, list) and where else sentence
    return ""


def _inside(text: str, depth: int) -> str:
    """A text, or the sentence of the JSON that it is or ends with."""
    start = text.find("{")
    if depth > 3 or start < 0 or len(text) > _MOST_READ:
        return text
    end = text.rfind("}")
    try:
        inner = orjson.loads(text[start : end + 1])
    except orjson.JSONDecodeError:
        return text
    return _sentence(inner, depth + 1) or text


_NUMBERS = re.compile(r"\d{3,8}")
_LIMIT = re.compile(r"(?:context|maximum|window|limit)[^\d]{0,30}(\d{3,8})", re.IGNORECASE)
_HELD_KEYS = ("n_ctx", "max_context_length", "max_model_len")
_NEEDED_KEYS = ("n_prompt_tokens", "prompt_tokens")


def _tokens(error: object, sentence: str) -> tuple[int, int]:
    """Tokens that the context holds and the request needs, 0 where a refusal does not name them."""
    context_tokens = needed = 0
    while isinstance(error, dict):
        context_tokens = context_tokens or _first(error, _HELD_KEYS)
        needed = needed or _first(error, _NEEDED_KEYS)
        error = error.get("error")
    numbers = sorted({int(found) for found in _NUMBERS.findall(sentence)})
    named = _LIMIT.search(sentence)
    if numbers:
        context_tokens = context_tokens or (int(named[1]) if named else numbers[0])
        needed = needed or (numbers[-1] if numbers[-1] > context_tokens else 0)
    return (context_tokens, needed) if not needed or needed > context_tokens else (context_tokens, 0)


def _first(error: dict[str, Any], keys: Iterable[str]) -> int:
    for key in keys:
        if isinstance(value := error.get(key), int) and 0 < value < 1 << 31:
            return value
    return 0


_TRY_IN = re.compile(r"(?:try|retry|wait)[^.\d]{0,40}?(\d{1,5}(?:\.\d{1,4})?)\s?(ms|s|m)", re.IGNORECASE)


def _asked_wait(error: object) -> float:
    """Seconds that a sentence asks to wait ("try again in 6.5s"), 0 without."""
    match = _TRY_IN.search(_sentence(error)[:1000])
    if match is None:
        return 0.0
    return float(match[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[match[2].lower()]


def _json(error: object) -> str:
    try:
        return orjson.dumps(error, default=str).decode()
    except (TypeError, orjson.JSONEncodeError):
        return str(error)
