"""The OpenAI chat-completions wire: request bodies out, whole or streamed answers in.

Servers differ in what they leave out, so reading is lenient: anything of a wrong type counts as
absent. Only an answer without any choice is no answer (``NoChoicesError``).
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import orjson

from agents.providers.provider import Completion, ModelRequest, ToolCall


class NoChoicesError(ValueError):
    """The server answered without a single choice."""


def request_body(request: ModelRequest, system: str, model: str, *, usage_in_stream: bool) -> dict[str, Any]:
    """The JSON body. ``tools`` only when there are some; ``tool_choice`` not for o1 models.

    With ``request.on_text`` the answer is asked for as a stream, with usage at its end when
    ``usage_in_stream``.
    """
    messages = [{"role": "system", "content": system}, *request.messages] if system else request.messages
    body: dict[str, Any] = {"model": model, "messages": messages}
    if request.tools:
        body["tools"] = request.tools
        if not model.startswith("o1"):
            body["tool_choice"] = "auto"
    if request.on_text is not None:
        body["stream"] = True
        if usage_in_stream:
            body["stream_options"] = {"include_usage": True}
    return body


def whole(answer: object, asked: str) -> Completion:
    """A completion from one JSON answer: texts of all choices joined, their calls in order."""
    body = _dict(answer)
    gathered = StreamedCompletion(asked)
    gathered.note(body)
    for position, choice in enumerate(_list(body.get("choices"))):
        gathered.choice(position, _dict(_dict(choice).get("message")))
    return gathered.completion()


class _Call(msgspec.Struct):
    id: str = ""
    name: str = ""
    arguments: str = ""
    index: int | None = None


class _Choice(msgspec.Struct):
    texts: list[str] = msgspec.field(default_factory=list)
    refusals: list[str] = msgspec.field(default_factory=list)
    calls: list[_Call] = msgspec.field(default_factory=list)


class StreamedCompletion:
    """Collects streamed chunks until they make a completion."""

    def __init__(self, asked: str) -> None:
        self._model = asked
        self._choices: dict[int, _Choice] = {}
        self._input = 0
        self._output = 0

    def chunk(self, chunk: object) -> str:
        """Takes one chunk in; returns the text that is new."""
        body = _dict(chunk)
        self.note(body)
        new = [
            self.choice(_index(choice), _dict(choice.get("delta") or choice.get("message")))
            for choice in map(_dict, _list(body.get("choices")))
        ]
        return "".join(new)

    def note(self, body: dict[str, Any]) -> None:
        """The model's name and the tokens used, where the body tells them."""
        if name := _str(body.get("model")):
            self._model = name
        usage = _dict(body.get("usage"))
        self._input = _count(usage.get("prompt_tokens")) or self._input
        self._output = _count(usage.get("completion_tokens")) or self._output

    def choice(self, index: int, part: dict[str, Any]) -> str:
        """Takes a message, or a piece of one, into the choice ``index``; returns its text."""
        choice = self._choices.setdefault(index, _Choice())
        text = _text(part.get("content"))
        if text:
            choice.texts.append(text)
        if refusal := _str(part.get("refusal")):
            choice.refusals.append(refusal)
        for piece in map(_dict, _list(part.get("tool_calls"))):
            _take_call(choice.calls, piece)
        return text

    def completion(self) -> Completion:
        if not self._choices:
            raise NoChoicesError
        choices = [self._choices[index] for index in sorted(self._choices)]
        text = "".join(piece for choice in choices for piece in choice.texts)
        calls = [call for choice in choices for call in choice.calls if call.name]
        if not text and not calls:
            text = "".join(piece for choice in choices for piece in choice.refusals)
        asked = tuple(ToolCall(call.id or _new_id(), call.name, call.arguments) for call in calls)
        return Completion(text, asked, self._model, self._input, self._output)


def _take_call(calls: list[_Call], piece: dict[str, Any]) -> None:
    function = _dict(piece.get("function"))
    call_id, name = _str(piece.get("id")), _str(function.get("name"))
    index = piece.get("index") if isinstance(piece.get("index"), int) else None
    call = _continued(calls, call_id, name, index)
    if call is None:
        call = _Call(id=call_id, index=index)
        calls.append(call)
    call.id = call.id or call_id
    if name and name != call.name:
        call.name += name
    arguments = function.get("arguments")
    call.arguments += orjson.dumps(arguments).decode() if isinstance(arguments, dict) else _str(arguments)


def _continued(calls: list[_Call], call_id: str, name: str, index: int | None) -> _Call | None:
    """The call that a piece goes on with. Some servers number every call 0, or none at all."""
    if index is None:
        return None if call_id or name or not calls else calls[-1]
    for call in reversed(calls):
        if call.index == index:
            return None if call_id and call.id and call_id != call.id else call
    return None


def _new_id() -> str:
    return f"call_{uuid.uuid4().hex}"


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(_str(_dict(part).get("text")) for part in _list(content))


def _index(choice: dict[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
