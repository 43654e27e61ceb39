"""Request bodies of OpenAI chat completions, made so that this model and its server take them."""

from __future__ import annotations

from typing import Any

import orjson

from agents.providers.abilities import Abilities
from agents.providers.answers.text_pieces import valid_text
from agents.providers.constant_text import with_first_text
from agents.providers.provider import Message, ModelRequest

_NEWER = {"max_tokens": "max_completion_tokens"}


def request_body(
    request: ModelRequest, messages: list[Message], system: str, model: str, abilities: Abilities
) -> dict[str, Any]:
    """The JSON body. ``stream`` is always said: some servers stream unless they are told not to.

    ``tools`` only when there are some; ``tool_choice`` not for o1 models, which refuse it. Parameters of the asking program
    that the model refused before are left out; of two names of one limit the newer is tried then.
    """
    tools = request.tools if abilities.tools else []
    shaped = _parsable(messages) if abilities.tools else _in_words(messages)
    system = with_first_text(system)
    shaped = (
        [{"role": "system", "content": system}, *shaped] if abilities.system else _said_first(system, shaped)
    )
    if not abilities.repeated_roles:
        shaped = _alternating(shaped)
    streamed = request.on_text is not None and (abilities.tool_stream or not tools)
    body: dict[str, Any] = {"model": model, "messages": shaped, "stream": streamed}
    if tools:
        body["tools"] = tools
        if not model.startswith("o1"):
            body["tool_choice"] = "auto" if "tool_choice" in abilities.refused else request.tool_choice
    if streamed and abilities.stream_usage:
        body["stream_options"] = {"include_usage": True}
    for name, value in request.parameters.items():
        if name in abilities.refused:
            name = _NEWER.get(name, name)
        if name not in abilities.refused and (tools or name != "parallel_tool_calls"):
            body[name] = value
    return body


def encoded(body: object) -> bytes:
    """A body, or a part of one, as JSON; half characters that a client's text may hold are replaced."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return orjson.dumps(_valid(body))


def question(messages: list[Message]) -> str:
    """The text of the last sentence of the person."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return "\n".join(str(part.get("text", "")) for part in _parts(message.get("content")))
    return ""


def _parsable(messages: list[Message]) -> list[Message]:
    """The messages with arguments of earlier calls that parse: vLLM and llama.cpp refuse a request with others."""
    return [_with_parsable_calls(one) if one.get("tool_calls") else one for one in messages]


def _with_parsable_calls(message: Message) -> Message:
    calls = []
    for call in message["tool_calls"]:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        calls.append({**call, "function": {**function, "arguments": _object_text(arguments)}})
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**rest, "tool_calls": calls} if calls else rest


def _object_text(arguments: object) -> str:
    if isinstance(arguments, dict):
        return orjson.dumps(arguments).decode()
    try:
        return arguments if isinstance(orjson.loads(str(arguments)), dict) else "{}"  # type: ignore[return-value]
    except orjson.JSONDecodeError:
        return "{}"


def _in_words(messages: list[Message]) -> list[Message]:
    """The messages with calls and their results as words, for a model that knows neither."""
    found: list[Message] = []
    for message in messages:
        if message.get("role") == "tool":
            name = str(message.get("name") or "an agent")
            found.append({"role": "user", "content": f"[{name} answered: {message.get('content')}]"})
            continue
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        if rest.get("content") or not message.get("tool_calls"):
            found.append(rest)
    return found


def _said_first(system: str, messages: list[Message]) -> list[Message]:
    """The messages with the system text before the first sentence of the person."""
    for at, message in enumerate(messages):
        if message.get("role") == "user":
            joined = {**message, "content": _joined(system, message.get("content"))}
            return [*messages[:at], joined, *messages[at + 1 :]]
    return [{"role": "user", "content": system}, *messages]


def _alternating(messages: list[Message]) -> list[Message]:
    """The messages with neighbours of one role joined, and none of the model's before the first of the person."""
    found: list[Message] = []
    for message in messages:
        role = message.get("role")
        if role == "assistant" and not any(one.get("role") == "user" for one in found):
            continue
        if found and found[-1].get("role") == role and role in ("user", "assistant"):
            before = found[-1]
            calls = [*(before.get("tool_calls") or ()), *(message.get("tool_calls") or ())]
            found[-1] = {**before, "content": _joined(before.get("content"), message.get("content"))}
            if calls:
                found[-1]["tool_calls"] = calls
        else:
            found.append(message)
    return found


def _joined(first: Any, second: Any) -> Any:
    """Two contents as one: texts by an empty line, parts one after the other."""
    if isinstance(first, list) or isinstance(second, list):
        return [*_parts(first), *_parts(second)]
    return "\n\n".join(filter(None, (first, second)))


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, dict):
        return {_valid(key): _valid(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_valid(inner) for inner in value]
    return value
