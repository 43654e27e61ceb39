"""Refusals of model servers: what one means, the server's own sentence, and what helps.

An error comes by status, in a body of status 200, as an event, or in the midst of a stream; all of them are read
here. The meanings are told apart by the codes that servers send beside a sentence (``type``, ``code``), then by the
sentence, then by the status, by the table of ``refusals.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
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


_ROWS: Mapping[Meaning, Mapping[str, Any]] = {
    Meaning(name): row
    for name, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
REMEDIES: Mapping[str, str] = {meaning: row["do"] for meaning, row in _ROWS.items() if "do" in row}
"""Remedies by meaning. The one against silence depends on the server (``ServerWording.do``)."""
_CODES = [(meaning, re.compile(row["codes"], re.I)) for meaning, row in _ROWS.items() if "codes" in row]
_WORDS = [
    (meaning, re.compile("".join(row["words"]), re.I)) for meaning, row in _ROWS.items() if "words" in row
]
_STATUSES = {status: meaning for meaning, row in _ROWS.items() for status in row.get("status", ())}
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
    for meaning, words in _CODES:
        if words.search(codes):
            return meaning
    for meaning, words in _WORDS:
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
