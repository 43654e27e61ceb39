"""One answer of a model server, from its bytes: ``feed`` gives what a person may see at once, ``answer`` the rest.

The reader has no sockets and no clock. It is lenient in form, since servers differ in what they leave out, and strict
about endings: a stream counts as finished only with a reason to finish or ``[DONE]``.
"""

from __future__ import annotations

import math
import uuid
from enum import StrEnum
from typing import Any

import msgspec

from agents.providers.answers.calls import CallJoiner
from agents.providers.answers.framing import AnswerFraming, Done, Frame, Unreadable, Value
from agents.providers.answers.text_pieces import TextPieces, ThoughtSplitter, valid_text
from agents.providers.provider import ToolCall

_MOST_BYTES = 64 << 20
"""Of one answer with its framing: a server that repeats all of the text in every piece needs many."""
_LENGTH = ("length", "max_tokens", "model_length", "max_output_tokens")
_FILTER = (
    "content_filter",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "refusal",
    "guardrail",
)
_REASONING = ("reasoning_content", "reasoning", "thinking")


class Ending(StrEnum):
    """Ways in which an answer ends."""

    FINISHED = "finished"
    LENGTH = "length"
    """At the limit of tokens."""
    FILTER = "filter"
    """Withheld by a filter of the server."""
    REFUSED = "refused"
    """The server sent an error, before or in the midst of the answer."""
    BROKEN = "broken"
    """The bytes ended before the answer did."""
    NO_ANSWER = "no_answer"
    """JSON came, but nothing in it is an answer."""
    NOT_A_MODEL_SERVER = "not_a_model_server"
    """No JSON at all came, but a web page or a proxy's sentence."""
    TOO_LONG = "too_long"
    """A line or body beyond the limits of this reader."""


class Text(msgspec.Struct, frozen=True):
    """New text of the answer."""

    text: str


class Thought(msgspec.Struct, frozen=True):
    """New text of the model's thoughts."""

    text: str


Piece = Text | Thought


class ModelAnswer(msgspec.Struct, frozen=True):
    """A whole answer. ``error`` is what the server sent as one, any JSON; ``stray`` what came in place of JSON.

    ``calls_left_out``: calls beyond the most that one answer may have. ``damaged``: a piece could not be read.
    """

    text: str
    thoughts: str
    calls: tuple[ToolCall, ...]
    ending: Ending
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    error: Any = None
    stray: str = ""
    calls_left_out: int = 0
    damaged: bool = False
    streamed: bool = False


class _Choice:
    def __init__(self) -> None:
        self.text = TextPieces()
        self.thoughts = TextPieces()
        self.splitter = ThoughtSplitter()
        self.calls = CallJoiner()
        self.refusal = TextPieces()
        self.finish = ""
        self.shown: list[str] = []
        self.thought: list[str] = []

    @property
    def empty(self) -> bool:
        return not (self.shown or self.thought or self.calls.calls)

    def take(self, part: dict[str, Any], *, last: bool) -> list[Piece]:
        """One delta, or one whole message."""
        text, thought = _content(part.get("content"))
        thoughts = next((t for key in _REASONING if (t := _texts(part.get(key)))), "") or thought
        for call in _dicts(part.get("tool_calls")):
            self.calls.take(call)
        old = part.get("function_call")
        if isinstance(old, dict) and not part.get("tool_calls"):
            self.calls.take({"function": old, "index": 0})
        self.refusal.feed(_text(part.get("refusal")))
        pieces = self._thought(self.thoughts.feed(thoughts, last=last))
        return pieces + self._split(self.text.feed(text, last=last))

    def end(self) -> list[Piece]:
        pieces = self._thought(self.thoughts.finish())
        pieces += self._split(self.text.finish())
        thought, text = self.splitter.finish()
        return pieces + self._thought(thought) + self._text(text)

    def _split(self, new: str) -> list[Piece]:
        if not new:
            return []
        thought, text = self.splitter.feed(new)
        return self._thought(thought) + self._text(text)

    def _thought(self, text: str) -> list[Piece]:
        if text:
            self.thought.append(text)
        return [Thought(text)] if text else []

    def _text(self, text: str) -> list[Piece]:
        if text:
            self.shown.append(text)
        return [Text(text)] if text else []


class AnswerReader:
    """Reads one answer; ``asked`` is the model's name, in case that the server tells none."""

    def __init__(self, asked: str) -> None:
        self._framing = AnswerFraming()
        self._choices: dict[int, _Choice] = {}
        self._model = asked
        self._input = self._output = 0
        self._bytes = 0
        self._values = 0
        self._error: Any = None
        self._done = self._damaged = self._too_long = self._ended = self._deltas = False
        self._stray = ""

    @property
    def complete(self) -> bool:
        """True once nothing of the answer can follow: ``[DONE]``, an error, a whole JSON body, a limit."""
        return self._done or self._error is not None or self._too_long

    @property
    def finished(self) -> bool:
        """True once each choice has a reason to finish; what may follow is usage and ``[DONE]``."""
        return self.complete or (bool(self._choices) and all(one.finish for one in self._choices.values()))

    def feed(self, octets: bytes) -> list[Piece]:
        """The pieces for people in these bytes."""
        if self.complete:
            return []
        self._bytes += len(octets)
        if self._bytes > _MOST_BYTES:
            self._too_long = True
            return []
        return self._take(self._framing.feed(octets))

    def pause(self) -> list[Piece]:
        """Called when the server is silent: a whole JSON body is an answer although its connection stays open."""
        return [] if self.complete else self._take(self._framing.pause())

    def finish(self) -> list[Piece]:
        """The pieces that the end of the bytes completes, or that were held back."""
        pieces = [] if self.complete else self._take(self._framing.finish())
        if not self._ended:
            self._ended = True
            for choice in self._choices.values():
                pieces += choice.end()
        return pieces

    def answer(self) -> ModelAnswer:
        """The whole answer, after ``finish``."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        text = "".join(piece for choice in choices for piece in choice.shown)
        calls = _named(choices)
        if not text and not calls:
            text = "".join(choice.refusal.text for choice in choices)
        return ModelAnswer(
            text=text,
            thoughts="".join(piece for choice in choices for piece in choice.thought),
            calls=calls,
            ending=self._ending(choices),
            model=self._model,
            input_tokens=self._input,
            output_tokens=self._output,
            error=self._error,
            stray=valid_text(self._stray or self._framing.stray),
            calls_left_out=sum(choice.calls.left_out for choice in choices),
            damaged=self._damaged,
            streamed=self._deltas,
        )

    def _ending(self, choices: list[_Choice]) -> Ending:
        if self._error is not None:
            return Ending.REFUSED
        if self._too_long:
            return Ending.TOO_LONG
        if not self._values and not self._done:
            return Ending.NOT_A_MODEL_SERVER if self._stray or self._framing.stray else Ending.BROKEN
        if not choices:
            return Ending.NO_ANSWER
        reasons = {choice.finish for choice in choices}
        if reasons & set(_FILTER):
            return Ending.FILTER
        if reasons & set(_LENGTH):
            return Ending.LENGTH
        if "error" in reasons:
            return Ending.REFUSED
        return Ending.FINISHED if self._done or all(reasons) else Ending.BROKEN

    def _take(self, frames: list[Frame]) -> list[Piece]:
        pieces: list[Piece] = []
        for frame in frames:
            if self.complete:
                break
            if isinstance(frame, Done):
                self._done = True
            elif isinstance(frame, Unreadable):
                self._stray = self._stray or frame.text
                self._too_long |= frame.too_long
                self._damaged |= bool(self._values)
            else:
                pieces += self._value(frame)
        return pieces

    def _value(self, frame: Value) -> list[Piece]:
        body = frame.value
        if isinstance(body, list) and len(body) == 1:  # a body in a list, as Google sends errors
            body = body[0]
        if not isinstance(body, dict):
            return []
        self._values += 1
        error = _error_of(body, frame.event)
        choices = _dicts(body.get("choices"))
        self._note(body, choices)
        pieces: list[Piece] = []
        for position, choice in enumerate(choices):
            pieces += self._choice(position, choice)
        if not choices and error is None:
            pieces += self._ollama(body)
        if error is not None:
            self._error = error
        return pieces

    def _choice(self, position: int, body: dict[str, Any]) -> list[Piece]:
        index = body.get("index")
        choice = self._choices.setdefault(index if isinstance(index, int) else position, _Choice())
        reason = body.get("finish_reason")
        finish = reason.lower() if isinstance(reason, str) else ""
        delta, message = body.get("delta"), body.get("message")
        pieces: list[Piece] = []
        if isinstance(delta, dict):
            self._deltas = True
            pieces = choice.take(delta, last=bool(finish))
        # A whole message repeats what its pieces said; it counts only where there were none.
        if isinstance(message, dict) and choice.empty:
            pieces += choice.take(message, last=True)
            self._done |= not self._deltas and not isinstance(delta, dict)
        elif isinstance(body.get("text"), str) and delta is None and message is None:
            pieces += choice.take({"content": body["text"]}, last=bool(finish))
        choice.finish = choice.finish or finish
        return pieces

    def _ollama(self, body: dict[str, Any]) -> list[Piece]:
        """A line of Ollama's own way of answering, where an address leads there."""
        message = body.get("message")
        if not isinstance(message, dict) or not isinstance(body.get("done"), bool):
            return []
        choice = self._choices.setdefault(0, _Choice())
        self._deltas = True
        if body["done"]:
            choice.finish = _text(body.get("done_reason")).lower() or "stop"
        return choice.take(message, last=body["done"])

    def _note(self, body: dict[str, Any], choices: list[dict[str, Any]]) -> None:
        """The model's name and the tokens used, where the body tells them."""
        if name := _text(body.get("model")):
            self._model = valid_text(name)[:200]
        for usage in (body.get("usage"), *(choice.get("usage") for choice in choices)):
            if isinstance(usage, dict):
                self._input = _count(usage.get("prompt_tokens")) or self._input
                self._output = _count(usage.get("completion_tokens")) or self._output


def _error_of(body: dict[str, Any], event: str) -> Any:
    """The error in a body, None where there is none."""
    error = body.get("error")
    if error:
        return error
    if event == "error" or body.get("object") == "error" or body.get("type") == "error":
        return body
    has_answer = (
        "choices" in body or "usage" in body or ("message" in body and isinstance(body["message"], dict))
    )
    if not has_answer and any(isinstance(body.get(key), str) and body[key] for key in ("detail", "message")):
        return body
    if not has_answer and isinstance(body.get("detail"), list):
        return body
    return None


def _named(choices: list[_Choice]) -> tuple[ToolCall, ...]:
    """The calls with a name, each with an id of its own."""
    found: list[ToolCall] = []
    seen: set[str] = set()
    for call in (call for choice in choices for call in choice.calls.calls):
        name = valid_text(call.name).strip()
        if not name:
            continue
        id = valid_text(call.id)[:200]
        if not id or id in seen:
            id = f"call_{uuid.uuid4().hex}"
        seen.add(id)
        found.append(ToolCall(id, name[:200], valid_text(call.arguments)))
    return tuple(found)


def _content(content: object) -> tuple[str, str]:
    """Text and thoughts of a message's content: a text, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    text, thought = [], []
    for part in _dicts(content):
        kind = part.get("type")
        if kind in ("thinking", "reasoning"):
            thought.append(_texts(part.get("thinking") or part.get("reasoning") or part.get("text")))
        else:
            text.append(_text(part.get("text")))
    return "".join(text), "".join(thought)


def _texts(value: object) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, str):
        return value
    return "".join(_text(part.get("text")) for part in _dicts(value))


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 53 else 0
